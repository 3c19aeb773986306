"""Measures the pipeline on a broker of its own: `make bench`, or this file with --help for less than all."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backfill import backfill
from floor import floor
from follow import follow_throughput, memory
from hot_key import hot_key
from latency import latency
from processes import say
from report import Result, as_json, keep, machine, median, show
from stage import QUICK, Sizes, Stage
from swap import swap

from liveboard.errors import LiveboardError
from liveboard.kafka.broker import Broker

_HERE = Path(__file__).parent
_MEASURES: dict[str, Callable[[Stage], list[Result]]] = {
    "latency": latency,
    "backfill": backfill,
    "follow_throughput": follow_throughput,
    "hot_key": hot_key,
    "swap": swap,
    "memory": memory,
    "floor": floor,
}


def main() -> int:
    """Runs the chosen measures; the exit code tells whether all of them could be made, not their figures."""
    options = _options()
    output: Path = options.output or (_HERE / ("results/quick.json" if options.quick else "pipeline.json"))
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "machine": machine(),
    }
    results: list[Result] = []
    failed: dict[str, str] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="liveboard-bench-", ignore_cleanup_errors=True) as temporary:
        directory = Path(temporary)
        say("starting the broker")
        with Broker(directory / "broker") as broker:
            sizes = QUICK if options.quick else Sizes(latency_s=options.seconds)
            stage = Stage(broker.bootstrap_servers, directory, sizes)
            for name in options.only:
                kept: dict[str, Any] = {**about, "sizes": asdict(stage.sizes)}
                try:
                    measured = median([_MEASURES[name](stage) for _ in range(options.rounds)])
                    kept["results"] = [as_json(result) for result in measured]
                    results += measured
                except LiveboardError as error:
                    say(f"{name} failed: {error}")
                    kept["failed"] = failed[name] = str(error)
                keep(output, {name: kept})
    show(results)
    for name, why in failed.items():
        print(f"{name} failed: {why}")
    print(f"{time.monotonic() - started:.0f} s; kept in {output}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the pipeline on a broker of its own.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs, not how fast")
    parser.add_argument(
        "--only",
        type=_names,
        default=list(_MEASURES),
        metavar="NAME[,NAME]",
        help=f"some of {', '.join(_MEASURES)}; the others' kept figures stay",
    )
    parser.add_argument("--rounds", type=_positive, default=1, metavar="N", help="take the median of N rounds")
    parser.add_argument(
        "--seconds", type=_positive, default=120, metavar="N", help="how long each rate of latency is measured"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where figures are kept (bench/pipeline.json; bench/results/quick.json with --quick)",
    )
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in _MEASURES]:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(_MEASURES)}, found {', '.join(unknown)}")
    return names


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text}")
    return int(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; the measures that were finished are kept")
