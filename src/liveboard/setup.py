"""What pip cannot install: Java, where there is none, and the Java libraries. `make setup` runs this."""

import sys
import time

from liveboard import java, libraries
from liveboard.errors import LiveboardError
from liveboard.kafka import broker
from liveboard.pipeline import archive, session


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


def main() -> int:
    try:
        _java()
        _libraries()
    except LiveboardError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _java() -> None:
    try:
        java.find_java()
    except LiveboardError:
        line = Line("[4/6] Java, for this project alone")
        line.done(f"Java {java.install_java(line).major} in {java.own_directory()}")


def _libraries() -> None:
    if libraries.fetched() and broker.has_archive() and session.archive().exists():
        return
    line = Line("[4/6] Java libraries")
    if not libraries.fetched():
        libraries.fetch(line)
    notes = ""
    for what, kept, make in (
        ("the broker", broker.has_archive, broker.make_archive),
        ("Spark (half a minute)", session.archive().exists, archive.make),
    ):
        if kept():
            continue
        line(f"trying {what}, so that it starts faster from now on")
        try:
            make()
        except LiveboardError as error:
            notes += f"; {error}"
    line.done(f"{len(libraries.jars('spark')) + len(libraries.jars('broker'))} jars{notes}")


if __name__ == "__main__":
    sys.exit(main())
