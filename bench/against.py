"""liveboard and Deephaven side by side, on one broker, in turn: `make bench`, or this file with --help for less."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from peer import backfill, browser, crowd, figures, growth, latency, swap
from peer.figures import Figure
from peer.stage import QUICK, Sizes, Stage
from processes import say
from report import machine

from liveboard.errors import LiveboardError
from liveboard.kafka.broker import Broker

_HERE = Path(__file__).parent
_PEER = _HERE / "peer"
Extra = dict[str, Any]
"""What is kept of a run beside its figures."""


def _latency(stage: Stage) -> tuple[list[Figure], Extra]:
    measured, curves = latency.latency(stage)
    return measured, {"curves": curves}


def _backfill(how: str) -> Callable[[Stage], tuple[list[Figure], Extra]]:
    return lambda stage: (backfill.backfill(stage, how), {})


def _viewers(stage: Stage) -> tuple[list[Figure], Extra]:
    return crowd.crowd(stage), {}


def _swap(stage: Stage) -> tuple[list[Figure], Extra]:
    return swap.swap(stage), {}


def _growth(stage: Stage) -> tuple[list[Figure], Extra]:
    measured, points = growth.growth(stage)
    return measured, {"points": points}


def _long(stage: Stage) -> tuple[list[Figure], Extra]:
    return latency.long(stage), {}


def _browser(stage: Stage) -> tuple[list[Figure], Extra]:
    return browser.browser(stage), {}


_MEASURES: dict[str, Callable[[Stage], tuple[list[Figure], Extra]]] = {
    "latency": _latency,
    **{f"backfill-{how}": _backfill(how) for how in backfill.KINDS},
    "viewers": _viewers,
    "swap": _swap,
    "growth": _growth,
    "long": _long,
    "browser": _browser,
}
# Long by themselves, and made of many samples or sizes.
_ONCE = ("growth", "long")


def main() -> int:
    """Runs the chosen measures; the exit code tells whether all of them could be made, not their figures."""
    options = _options()
    output: Path = options.output or (_HERE / ("results/quick-against.json" if options.quick else "results.json"))
    about: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {**machine(), "deephaven": "42.7"},
    }
    sizes = QUICK if options.quick else Sizes()
    if options.seconds:
        sizes = replace(sizes, latency_s=options.seconds)
    failed: dict[str, str] = {}
    measured: list[figures.Row] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="liveboard-bench-", ignore_cleanup_errors=True) as temporary:
        directory = Path(temporary)
        say("starting the broker")
        with Broker(directory / "broker") as broker:
            stage = Stage(broker.bootstrap_servers, latency.broker_processes(), directory, sizes)
            for name in options.only:
                began = datetime.now(UTC).isoformat(timespec="seconds")
                rounds: list[list[Figure]] = []
                extra: Extra = {}
                times = 1 if name in _ONCE else options.rounds
                for number in range(1, times + 1):
                    say(f"{name}: round {number} of {times}")
                    try:
                        found, extra = _MEASURES[name](stage)
                    except LiveboardError as error:
                        say(f"{name} failed: {error}")
                        failed[name] = str(error)
                        break
                    rounds.append(found)
                    run = {
                        "date": began,
                        "command": shlex.join(sys.argv),
                        "load": [about["machine"]["load_before"], round(os.getloadavg()[0], 2)],
                        "sizes": asdict(sizes),
                        **extra,
                    }
                    figures.keep(output, about, name, run, figures.rows(rounds))
                measured += figures.rows(rounds)
    figures.show(measured)
    for name, why in failed.items():
        print(f"{name} failed: {why}")
    if not options.quick:
        subprocess.run([_PEER / ".venv/bin/python", _PEER / "plots.py", output, _HERE.parent / "docs"], check=True)
    print(f"{time.monotonic() - started:.0f} s; kept in {output}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures liveboard and Deephaven side by side, in turn.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one round: shows that it runs")
    parser.add_argument(
        "--only",
        type=_names,
        default=list(_MEASURES),
        metavar="NAME[,NAME]",
        help=f"some of {', '.join(_MEASURES)}; the others' kept figures stay",
    )
    parser.add_argument(
        "--rounds", type=_positive, metavar="N", help="how often all but growth and long is measured (3)"
    )
    parser.add_argument("--seconds", type=_positive, metavar="N", help="how long each rate of latency is measured (30)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where figures are kept (bench/results.json; bench/results/quick-against.json with --quick)",
    )
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in _MEASURES]:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(_MEASURES)}, found {', '.join(unknown)}")
    return names


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text}")
    return int(text)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # Whoever ends it, and however it was started: the systems under measurement end with it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; the rounds that were finished are kept")
