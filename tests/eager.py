"""`liveboard` in every way but one: a server writes snapshots at once, for few records, and in many small pieces."""

from __future__ import annotations

import sys

from liveboard.commands.cli import main
from liveboard.serving import snapshots

snapshots.EVERY_S = 0.1
snapshots.WORTH_RECORDS = 10
snapshots._SLICE = 1

if __name__ == "__main__":
    sys.exit(main())
