"""A load on a whole system for as long as it runs, and how late a viewer sees it."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from boards import FIRST_MS
from confluent_kafka import Producer
from harness import PATIENCE_S, Event, Patience
from swapping import event, wiring

from liveboard.client.update import Update
from liveboard.contract.board import Board

PROBE = "probe"
# Of the load of a second: a key has few records, however fast they come.
_KEYS_OF_A_SECOND = 100
_PROBES_PER_S = 20
_TICK_S = 0.02
# So much of the load comes late, by the times of its records.
_LATE_MS = 5_000


def probed_user() -> Event:
    """The user in whose row probes are seen: the first in order of time."""
    return Event("users", f'{{"userId":"{PROBE}"}}'.encode(), FIRST_MS - 1)


class Load:
    """So many events per second for the topics of one wiring after the other, in a thread of its own.

    Among them are probes: accounts of one user, whose balance is their number.
    """

    def __init__(self, bootstrap: str, board: Board, rate: int, seed: int) -> None:
        self.number = 0
        self._board = board
        self._rate = rate
        self._keys = rate * _KEYS_OF_A_SECOND
        self._random = Random(f"load {seed}")
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "log_level": 0})
        self._running = threading.Event()
        self._ending = threading.Event()
        self._working = threading.Lock()
        self.sent: list[float] = [0.0]
        """When each probe was sent."""
        self.seen: list[tuple[int, float]] = []
        """Up to which probe was seen, and when."""
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    @contextmanager
    def going(self) -> Iterator[None]:
        """Produces, and has given all of it to Kafka at the end."""
        self._running.set()
        try:
            yield
        finally:
            self.pause()

    def begin(self) -> None:
        """Produces from now on."""
        self._running.set()

    def pause(self) -> None:
        """Produces nothing from now on, and has given all that it produced to Kafka."""
        self._running.clear()
        with self._working:
            assert self._producer.flush(PATIENCE_S) == 0, "Kafka did not take the load"

    def close(self) -> None:
        """Ends the thread."""
        self._ending.set()
        self._running.set()
        self._thread.join()

    def look(self, update: Update) -> None:
        """Listens for probes in a window of the join that shows the user."""
        row = next((row for row in update.rows if row[0] == PROBE), None)
        number = row[5] if row else None
        if isinstance(number, float) and (not self.seen or number > self.seen[-1][0]):
            self.seen.append((int(number), time.monotonic()))

    def await_probe(self) -> float:
        """Waits until a probe that is sent from now on was seen; returns when it was."""
        number, patience = len(self.sent), Patience()
        while not self.seen or self.seen[-1][0] < number:
            assert not patience.is_over, "waited in vain for an event to be shown"
            time.sleep(0.005)
        return self.seen[-1][1]

    def lags(self, begin: float, end: float) -> list[tuple[float, float]]:
        """When each probe of that time was sent, and how long it took to be seen."""
        numbers, times = [number for number, _ in self.seen], [at for _, at in self.seen]
        found = []
        for number, sent in enumerate(self.sent):
            place = bisect_left(numbers, number)
            if begin <= sent < end and place < len(times):
                found.append((sent, times[place] - sent))
        return found

    def _run(self) -> None:
        while self._running.wait() and not self._ending.is_set():
            with self._working:
                began, produced, probes = time.monotonic(), 0, 0
                while self._running.is_set() and not self._ending.wait(_TICK_S):
                    elapsed = time.monotonic() - began
                    due, probes_due = int(elapsed * self._rate), int(elapsed * _PROBES_PER_S)
                    now_ms = int(time.time() * 1000)
                    for _ in range(due - produced):
                        made = event(self._random, self.number, self._keys, self._board, now_ms - _LATE_MS)
                        self._produce(made)
                    for _ in range(probes_due - probes):
                        value = f'{{"userId":"{PROBE}","accountType":"{PROBE}","balance":{len(self.sent)}}}'.encode()
                        self.sent.append(time.monotonic())
                        self._produce(Event("accounts", value, now_ms))
                    produced, probes = due, probes_due
                    self._producer.poll(0)

    def _produce(self, made: Event) -> None:
        topic = wiring(self.number).topics[made.source]
        while not self._ending.is_set():
            try:
                return self._producer.produce(
                    topic, made.value, made.key, partition=made.partition, timestamp=made.timestamp_ms
                )
            except BufferError:
                self._producer.poll(0.1)
        return None
