"""What pip cannot install: the Java libraries. `make setup` runs this, and whoever builds an image can.

Arguments: `s3` also fetches what checkpoints in S3 need, `caches` also makes what lets Java start faster, and `caches
later` does that as time permits.
"""

import os
import sys
from functools import partial

from liveboard.contract.errors import LiveboardError
from liveboard.install import libraries, progress
from liveboard.kafka import broker
from liveboard.pipeline import spark_cache

_GENTLE = 19


def main() -> int:
    """Fetches the libraries and what else the arguments ask for."""
    try:
        progress.provide_libraries("[4/6] Java libraries")
        if "s3" in sys.argv:
            libraries.extra_jars("s3", partial(print, flush=True))
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
