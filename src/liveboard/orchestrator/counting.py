"""The aggregates over tables by key, of all generations that follow: each generation has a thread that makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from confluent_kafka import KafkaException

from liveboard.backoff import Backoff
from liveboard.contract.errors import LiveboardError
from liveboard.counting.following import CountedTables, counted
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.ownership import OwnershipLost
from liveboard.orchestrator.workplace import Workplace

_END_S = 5.0


class Counting:
    """Has a thread for each generation; what fails is tried again, and stops nothing else."""

    def __init__(self, work: Workplace, is_sure: Callable[[], bool]) -> None:
        self._work = work
        self._is_sure = is_sure
        self._generations: dict[str, Counter] = {}

    def advance(self) -> None:
        """Begins with generations that have begun to follow; returns at once."""
        if counted(self._work.board):
            for name in self._work.running.following - self._generations.keys():
                self._generations[name] = Counter(self._work, name, self._is_sure)

    def is_complete(self, name: str) -> bool:
        """Whether the generation's groups have all that was in its tables when it began to follow."""
        return not counted(self._work.board) or (name in self._generations and self._generations[name].is_complete())

    def drop(self, name: str) -> None:
        """Ends the generation's thread."""
        if name in self._generations:
            self._generations.pop(name).end()


class Counter:
    """The thread of one generation."""

    def __init__(self, work: Workplace, name: str, is_sure: Callable[[], bool]) -> None:
        self._work = work
        self._name = name
        self._is_sure = is_sure
        self._following: CountedTables | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"counting {name}", daemon=True)
        self._thread.start()

    def is_complete(self) -> bool:
        """Whether what was in the tables when it began is counted, and written."""
        return self._following is not None and self._following.is_begun

    def end(self) -> None:
        """Ends the thread."""
        self._ending.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        backoff, said, work = Backoff(), "", self._work
        while not self._ending.is_set():
            try:
                self._follow()
            except OwnershipLost:
                return
            except Exception as error:
                # Whatever it is, the other tables go on.
                known = isinstance(error, LiveboardError | KafkaException)
                why = f"aggregates of {self._name} over tables by key stand still: {error if known else repr(error)}"
                if why != said:
                    work.log(f"{why}; trying again")
                said = why
                self._ending.wait(backoff.failed())

    def _follow(self) -> None:
        work, config = self._work, self._work.kafka.client_config
        board = work.board.wired(work.status.generations[self._name].wiring)
        following = CountedTables(config, work.names, Admin(config), board, self._name, self._is_sure)
        try:
            self._following = following
            while not self._ending.is_set():
                following.advance()
        finally:
            self._following = None
            following.close()
