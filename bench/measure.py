"""Runs a suite of measures on a broker of its own: `make bench`, `make bench-parts`, or this file with --help."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import FrameType

import report
from processes import say
from stage import QUICK, Sizes, Stage, Suite

from liveboard.contract.errors import LiveboardError
from liveboard.kafka.broker import Broker

_HERE = Path(__file__).parent
SUITES = ("against", "pipeline", "serving", "scaling", "limits", "page")
# The tests know where the browser is.
sys.path.append(str(_HERE.parent / "tests"))


def main() -> int:
    """Runs the chosen measures; the exit code tells whether all of them could be made, not their figures."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s SUITE [options], or SUITE --help")
    parser.add_argument("suite", choices=SUITES)
    name = parser.parse_args(sys.argv[1:2]).suite
    # Imported only now: every helper process imports this file and all that it imports at once.
    suite: Suite = import_module(name).SUITE
    options = _options(name, suite)
    sizes = QUICK if options.quick else Sizes(seconds=suite.seconds)
    if options.seconds:
        sizes = replace(sizes, seconds=options.seconds)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="liveboard-bench-", ignore_cleanup_errors=True) as temporary:
        directory = Path(temporary)
        say("starting the broker")
        with Broker(directory / "broker") as broker:
            assert broker.pid
            stage = Stage(broker.bootstrap_servers, broker.pid, directory, sizes)
            measured, failed = _measure(suite, stage, options)
    report.show(measured, suite.title)
    for name, why in failed.items():
        print(f"{name} failed: {why}")
    if suite.draw and not options.quick:
        suite.draw(options.output)
    print(f"{time.monotonic() - started:.0f} s; kept in {options.output}")
    return 1 if failed else 0


def _measure(suite: Suite, stage: Stage, options: argparse.Namespace) -> tuple[list[report.Row], dict[str, str]]:
    """Keeps what each round adds; returns the rows of all measures, and why a measure failed."""
    measured: list[report.Row] = []
    failed: dict[str, str] = {}
    about = {"command": shlex.join(sys.argv), "machine": {**report.machine(), **suite.versions}}
    for name in options.only:
        began, load = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
        rounds: list[list[report.Figure]] = []
        times = 1 if name in suite.once else options.rounds
        for number in range(1, times + 1):
            say(f"{name}: round {number} of {times}")
            try:
                found = suite.measures[name](stage)
            except LiveboardError as error:
                say(f"{name} failed: {error}")
                failed[name] = str(error)
                break
            figures, extra = found if isinstance(found, tuple) else (found, {})
            rounds.append(figures)
            loads = {"load_before": round(load, 2), "load_after": round(os.getloadavg()[0], 2)}
            run = {"date": began, **about, **loads, "sizes": asdict(stage.sizes), **extra}
            report.keep(options.output, name, run, report.rows(rounds))
        measured += report.rows(rounds)
    return measured, failed


def _options(name: str, suite: Suite) -> argparse.Namespace:
    names = ", ".join(suite.measures)
    kept, quick = _HERE / suite.file, _HERE / "results" / f"quick-{name}.json"

    def some(text: str) -> list[str]:
        asked = text.split(",")
        if unknown := [each for each in asked if each not in suite.measures]:
            raise argparse.ArgumentTypeError(f"expected some of {names}, found {', '.join(unknown)}")
        return asked

    once = f"all but {' and '.join(suite.once)}" if suite.once else "everything"
    parser = argparse.ArgumentParser(prog=f"measure.py {name}", description=f"Measures {suite.title}.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one round: shows that it runs")
    parser.add_argument(
        "--only",
        type=some,
        default=list(suite.measures),
        metavar="NAME[,NAME]",
        help=f"some of {names}; the others' kept figures stay",
    )
    parser.add_argument("--rounds", type=_positive, metavar="N", help=f"how often {once} is measured ({suite.rounds})")
    parser.add_argument("--seconds", type=_positive, metavar="N", help=f"how long an even load lasts ({suite.seconds})")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"where figures are kept (bench/{suite.file}; bench/results/{quick.name} with --quick)",
    )
    options = parser.parse_args(sys.argv[2:])
    options.rounds = options.rounds or (1 if options.quick else suite.rounds)
    options.output = options.output or (quick if options.quick else kept)
    return options


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
