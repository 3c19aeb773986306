"""What the user sees while the Java libraries are fetched."""

import sys
import time

from liveboard.install import libraries


class Line:
    """One line of progress: rewritten in place on a terminal, else repeated every few seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = 0.0
        print(title, "...", flush=True)

    def __call__(self, text: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\033[K      {text}", end="", flush=True)
        elif time.monotonic() - self._shown > 3:
            print(f"      {text}", flush=True)
            self._shown = time.monotonic()

    def done(self, text: str) -> None:
        print(f"\r\033[K      {text}" if sys.stdout.isatty() else f"      {text}", flush=True)


def provide_libraries(title: str) -> None:
    """Fetches the Java libraries if they are not there, and says so under a title."""
    if not libraries.fetched():
        line = Line(title)
        libraries.provide(line)
        line.done(f"{len(libraries.jars('spark')) + len(libraries.jars('broker'))} jars")
