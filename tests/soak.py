"""A seeded nemesis: random faults upon a whole system under load, and the oracle after each.

    make soak MINUTES=30 SEED=7

Every fault is one line: what was done, for how long, and how long it took until every table and every viewer was right
again. At the end come memory, threads and open files of each process with their slopes, how late a viewer saw events
between the faults, and how long each process took to end. The same seed does the same again.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil
import system
from system import Fault, System

_LONGEST_S = 4.0
_MB = 1024 * 1024
# What waits for an answer of Kafka itself, or takes it away, happens alone.
_ALONE = ("broker", "control", "swap")


class Soak:
    """Does random things to a system, and keeps what was seen."""

    def __init__(self, target: System, seed: int, rate: int, say: Callable[[str], None]) -> None:
        self._system = target
        self._random = Random(seed)
        self._rate = rate
        self._say = say
        self._began = time.monotonic()
        self._seen: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        self.lags: list[float] = []
        self.faults = 0

    def fault(self, *faults: Fault) -> None:
        """These faults, or one or two by chance, under load; then everything has to be right again."""
        chosen = faults or self._chosen()
        held = self._random.uniform(0.1, _LONGEST_S)
        with self._system.board.load(0, self._rate):
            for fault in chosen:
                fault.begin(self._system)
            time.sleep(held)
            for fault in reversed(chosen):
                fault.heal(self._system)
        healed = time.monotonic()
        self._system.expect_healed()
        self.faults += len(chosen)
        names = " while ".join(fault.name for fault in chosen)
        self._say(f"{self.faults:4} {names}: {held:.1f} s, right again after {time.monotonic() - healed:.1f} s")
        self._look()

    def report(self) -> None:
        """Says what was seen of memory and lag."""
        for who, seen in sorted(self._seen.items()):
            for column, what in enumerate(("MB of memory", "threads", "open files"), 1):
                first, last, slope = seen[0][column], seen[-1][column], _slope(seen, column)
                self._say(f"{who}: {first:.0f} {what} at first, {last:.0f} at last, {slope:+.2f} a minute")
        lags = sorted(self.lags)
        if lags:
            p50, p99 = (lags[int(part * (len(lags) - 1))] * 1000 for part in (0.5, 0.99))
            self._say(f"a viewer between faults, {len(lags)} events: p50 {p50:.0f} ms, p99 {p99:.0f} ms")
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

    def _chosen(self) -> list[Fault]:
        first = self._random.choice(system.FAULTS)
        second = self._random.choice(system.FAULTS)
        alone = any(fault.name.startswith(_ALONE) or " swap " in fault.name for fault in (first, second))
        return [first] if alone or first == second or self._random.random() < 0.7 else [first, second]

    def _look(self) -> None:
        self.lags += [self._system.lag() for _ in range(5)]
        now = (time.monotonic() - self._began) / 60
        for who, processes in self._system.processes().items():
            memory = sum(process.memory_info().rss for process in processes) / _MB
            threads, files = (
                sum(f(p) for p in processes) for f in (psutil.Process.num_threads, psutil.Process.num_fds)
            )
            self._seen[who].append((now, memory, threads, files))


def _slope(seen: list[tuple[float, ...]], column: int) -> float:
    """How much it grows in a minute, over the second half: at first, tables and caches fill."""
    half = seen[len(seen) // 2 :]
    minutes, values = [row[0] for row in half], [row[column] for row in half]
    return statistics.linear_regression(minutes, values).slope if len(half) > 1 else 0.0


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=100, help="events a second, while a fault lasts")
    asked = parser.parse_args()
    print(f"seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory() as directory, system.running(Path(directory)) as target:
        target.expect_healed()
        soak = Soak(target, asked.seed, asked.rate, lambda text: print(text, flush=True))
        until = time.monotonic() + 60 * asked.minutes
        while time.monotonic() < until:
            soak.fault()
        soak.report()
        soak.end()


if __name__ == "__main__":
    main()
