"""A seeded nemesis: random faults upon a whole system under load, and the oracle after each group of them.

    make soak MINUTES=30 SEED=7

Every group of faults is one line: what was done, for how long, and how long it took until every table, every viewer,
every alert and a view in SQL were right again. At the end come memory, threads and open files of each process with
their slopes, how late a viewer saw events outside the faults, and how long each process took to end. The same seed does
the same again.
"""

from __future__ import annotations

import argparse
import math
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import nemesis
import psutil
import system
from nemesis import Fault
from system import System

_LONGEST_S = 1.2
_GROUP = 8
_PAUSE_S = 0.3
_OVERLAPPING = 0.25
_MB = 1024 * 1024
_UNDISTURBED_S = 60.0
_MANY_SWAPS = 10
_REST_S = 120
# How long after a fault events may still be late: all of these are told.
_MARGINS_S = (0.0, 2.0, 5.0)


class Soak:
    """Does random things to a system, and keeps what was seen."""

    def __init__(self, target: System, seed: int, say: Callable[[str], None], every_s: float = 0.0) -> None:
        """`every_s` is the time from the beginning of one fault to that of the next; 0: one after the other."""
        self._system = target
        self._random = Random(seed)
        self._say = say
        self._every_s = every_s
        self._began = time.monotonic()
        self._seen: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        self._windows: list[tuple[float, float]] = []
        self._undisturbed: tuple[float, float] = (0.0, 0.0)
        self._next: list[Fault] = []
        self.faults = 0

    def watch_undisturbed(self, seconds: float) -> None:
        """Lets the load go on for a while before anything happens: until Java is warm, then to be measured."""
        load = self._system.load
        with load.going():
            load.await_probe()
            time.sleep(seconds)
            begun = time.monotonic()
            time.sleep(seconds)
            self._undisturbed = (begun, time.monotonic())
        self._system.expect_healed()

    def group(self, *faults: Fault) -> None:
        """These faults, or some by chance, under load; then everything has to be right again."""
        chosen = [[fault] for fault in faults] or self._chosen()
        load, told = self._system.load, []
        with load.going():
            load.await_probe()
            for together in chosen:
                began = time.monotonic()
                held = self._random.uniform(0.1, _LONGEST_S) + max(fault.least_s for fault in together)
                names = " while ".join(fault.name for fault in together)
                for fault in together:
                    fault.begin(self._system)
                time.sleep(held)
                for fault in reversed(together):
                    fault.heal(self._system)
                told.append(f"{names} for {held:.1f} s")
                if self._every_s:
                    self._windows.append((began, load.await_probe()))
                    time.sleep(max(0.0, began + self._every_s - time.monotonic()))
                else:
                    time.sleep(_PAUSE_S)
        healed = time.monotonic()
        try:
            self._system.expect_healed()
        except BaseException:
            self._say(f"after {self.faults}: {'; '.join(told)}: not right after {time.monotonic() - healed:.1f} s")
            raise
        self.faults += sum(map(len, chosen))
        self._say(f"{self.faults:4} {'; '.join(told)}: right again after {time.monotonic() - healed:.1f} s")
        self._look()
        self._system.move_on()

    def swaps(self, count: int) -> None:
        """So many swaps in a row, each until it is live; what is left of the former generations is counted."""
        target = self._system
        for number in range(1, count + 1):
            wanted = target.there if number % 2 else target.here
            target.board.ask(wanted)
            target.board.wait_until_live(wanted)
            if number % 10 == 1 or number == count:
                target.board.wait_for(lambda status: len(status.generations) == 1)
                target.board.expect_nothing_left_behind()
                self._look()
                self._say(f"{number:4} swaps: {self._told(-1)}")
        if count % 2:
            target.board.ask(target.here)
        target.expect_healed()
        if count > _MANY_SWAPS:
            # Kafka and Spark put away what they do not need any more within a minute or two.
            time.sleep(_REST_S)
            self._look()
            self._say(f"{_REST_S} s later: {self._told(-1)}")

    def report(self) -> None:
        """Says what was seen of memory and lag."""
        for who, seen in sorted(self._seen.items()):
            for column, what in enumerate(("MB of memory", "threads", "open files"), 1):
                first, last, slope = seen[0][column], seen[-1][column], _slope(seen, column)
                self._say(f"{who}: {first:.0f} {what} at first, {last:.0f} at last, {slope:+.2f} a minute")
        if self._every_s:
            load = self._system.load
            undisturbed = [lag for _, lag in load.lags(*self._undisturbed)]
            self._say(f"a viewer before the faults: {_percentiles(undisturbed)}")
            probes = load.lags(self._undisturbed[1], math.inf)
            for margin in _MARGINS_S:
                outside = [lag for sent, lag in probes if not self._is_disturbed(sent, lag, margin)]
                words = f"from {margin:g} s after the first event that was shown after it"
                self._say(f"a viewer outside the faults, {words}: {_percentiles(outside)}")
        self._say(f"{self.faults} faults, no wrong row, no lost row, no viewer that had to reload")

    def end(self) -> None:
        """Ends every process by SIGTERM, the broker last, and says how long each took."""
        processes = self._system.processes()
        for who in ("server 1", "server 2", "pipeline", "broker"):
            began = time.monotonic()
            for process in processes[who]:
                process.send_signal(signal.SIGTERM)
            psutil.wait_procs(processes[who] + (processes["spark"] if who == "pipeline" else []), timeout=60)
            self._say(f"{who} ended {time.monotonic() - began:.1f} s after SIGTERM")

    def _chosen(self) -> list[list[Fault]]:
        """What happens one after the other until all is compared; some of it at the same time."""
        chosen: list[list[Fault]] = []
        while sum(map(len, chosen)) < _GROUP:
            fault = self._next.pop() if self._next else self._drawn()
            if fault.alone and fault.weight < 1:
                if not chosen:
                    return [[fault]]
                # It gets a comparison of its own.
                self._next.append(fault)
                return chosen
            is_second = chosen and len(chosen[-1]) == 1 and not fault.alone and not chosen[-1][0].alone
            if is_second and chosen[-1][0] != fault and self._random.random() < _OVERLAPPING:
                chosen[-1].append(fault)
            else:
                chosen.append([fault])
        return chosen

    def _drawn(self) -> Fault:
        return self._random.choices(nemesis.FAULTS, [fault.weight for fault in nemesis.FAULTS])[0]

    def _is_disturbed(self, sent: float, lag: float, margin: float) -> bool:
        return any(sent <= end + margin and sent + lag >= begin for begin, end in self._windows)

    def _look(self) -> None:
        now = (time.monotonic() - self._began) / 60
        for who, processes in self._system.processes().items():
            memory = sum(process.memory_info().rss for process in processes) / _MB
            threads, files = (
                sum(f(p) for p in processes) for f in (psutil.Process.num_threads, psutil.Process.num_fds)
            )
            self._seen[who].append((now, memory, threads, files))

    def _told(self, look: int) -> str:
        """What one look has seen."""
        return ", ".join(
            f"{who} {seen[look][1]:.0f} MB {seen[look][2]:.0f} threads {seen[look][3]:.0f} files"
            for who, seen in self._seen.items()
        )


def _percentiles(lags: list[float]) -> str:
    if not lags:
        return "no event"
    p50, p99 = (sorted(lags)[int(part * (len(lags) - 1))] * 1000 for part in (0.5, 0.99))
    return f"{len(lags)} events, p50 {p50:.0f} ms, p99 {p99:.0f} ms"


def _slope(seen: list[tuple[float, ...]], column: int) -> float:
    """How much it grows in a minute, over the second half: at first, tables and caches fill."""
    half = seen[len(seen) // 2 :]
    minutes, values = [row[0] for row in half], [row[column] for row in half]
    return statistics.linear_regression(minutes, values).slope if len(half) > 1 else 0.0


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--faults", type=int, default=10**9, help="ends after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=50, help="events a second")
    parser.add_argument("--viewers", type=int, default=0, help="so many more, in a process of their own")
    parser.add_argument("--every", type=float, default=0.0, help="seconds from fault to fault; 0: without a pause")
    parser.add_argument("--only", default="", help="each fault once that has these words in its name")
    parser.add_argument("--swaps", type=int, default=0, help="so many swaps in a row, and nothing else")
    parser.add_argument("--broker-disk", default="1g", help="how large the broker's disk is")
    parser.add_argument("--directory", type=Path, help="is left as it is at the end")
    asked = parser.parse_args()
    print(f"seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        directory = asked.directory or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        with system.running(directory, asked.rate, asked.viewers, asked.seed, asked.broker_disk) as target:
            _soak(target, asked)


def _soak(target: System, asked: argparse.Namespace) -> None:
    target.expect_healed()
    soak = Soak(target, asked.seed, lambda text: print(f"{time.strftime('%H:%M:%S')} {text}", flush=True), asked.every)
    until = time.monotonic() + 60 * asked.minutes
    if asked.swaps:
        soak.swaps(asked.swaps)
    elif asked.only:
        for fault in nemesis.FAULTS:
            if asked.only in fault.name:
                soak.group(fault)
    else:
        if asked.every:
            soak.watch_undisturbed(_UNDISTURBED_S)
        with suppress(KeyboardInterrupt):
            while time.monotonic() < until and soak.faults < asked.faults:
                soak.group()
    soak.report()
    soak.end()


if __name__ == "__main__":
    # However it is ended: all that it has started ends with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
