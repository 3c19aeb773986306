"""What pip cannot install: the Java libraries. `make setup` runs this, and whoever builds an image can."""

import os
import sys

from liveboard.contract.errors import LiveboardError
from liveboard.install import libraries, progress
from liveboard.kafka import broker
from liveboard.pipeline import spark_cache

_GENTLE = 19


def main() -> int:
    """Fetches the libraries; with the argument `caches` also makes the caches, with `caches later` as time permits."""
    try:
        progress.provide_libraries("[4/6] Java libraries")
        if "later" in sys.argv:
            os.nice(_GENTLE)
        if "caches" in sys.argv:
            _make_caches()
    except LiveboardError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


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
