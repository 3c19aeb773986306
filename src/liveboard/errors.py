"""The one base of every error that is the user's to read."""


class LiveboardError(Exception):
    """An error whose message is clear to the user as it stands; the CLI prints it and exits 1."""
