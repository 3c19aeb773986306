"""What pip cannot install: the Java libraries. `make setup` runs this."""

import os
import sys
import time

from liveboard.contract.errors import LiveboardError
from liveboard.install import libraries
from liveboard.kafka import broker
from liveboard.pipeline import spark_cache

_GENTLE = 19


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
    """Fetches the libraries; with the argument `caches` also makes the caches, with `caches later` as time permits."""
    try:
        _fetch()
        if "later" in sys.argv:
            os.nice(_GENTLE)
        if "caches" in sys.argv:
            _make_caches()
    except LiveboardError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _fetch() -> None:
    if not libraries.fetched():
        line = Line("[4/6] Java libraries")
        libraries.fetch(line)
        line.done(f"{len(libraries.jars('spark')) + len(libraries.jars('broker'))} jars")


def _make_caches() -> None:
    for what, cache, make in (
        ("The broker", libraries.cache("broker"), broker.make_cache),
        ("Spark, half a minute", libraries.cache("spark"), spark_cache.make),
    ):
        if not cache.exists():
            print(f"[+] {what}: a first run, so that it starts faster from now on ...", flush=True)
            try:
                make()
            except LiveboardError as error:
                # Everything works without it, only slower.
                print(f"      left out: {error}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
