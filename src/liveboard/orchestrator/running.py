"""The queries of all generations in this process, kept running."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from liveboard.backoff import Backoff
from liveboard.contract.errors import LiveboardError
from liveboard.orchestrator.schemas import Schemas
from liveboard.pipeline.checkpoints import Damaged
from liveboard.pipeline.generation import Generation, reason

# A ConnectionError is among them, and is to be raised before: Java is gone, and everything in this process with it.
SPARK_ERRORS = (PySparkException, Py4JJavaError, OSError)
# A query that dies again of the same cause does so within this time.
_STEADY_AFTER_S = 3.0
# A stream that cannot go on from its checkpoint so many times in a row never will.
_TRIES = 3
# How Spark says that a stream has too few task slots.
NO_SLOTS = "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
# What has nothing to do with the checkpoint, and passes: Kafka, the disk, the memory, and workers of a cluster that are
# lost, or have a batch job where the stream was a moment ago.
_PASSING = (
    "org.apache.kafka",
    "No space left on device",
    "java.lang.OutOfMemoryError",
    "ExecutorLostFailure",
    NO_SLOTS,
)


class Running:
    """Generations by name. Those that follow are started again when they die, ever less eagerly.

    One that has met a schema which it does not know is held up, and started again as soon as the schema is known.
    """

    def __init__(
        self,
        make: Callable[[str], Generation],
        schemas: Schemas,
        log: Callable[[str], None],
        explain: Callable[[str], str],
        misses: Callable[[str], bool],
    ) -> None:
        """`misses` looks for records that are gone before a generation has read them, and has it go on after them."""
        self._make = make
        self._schemas = schemas
        self._log = log
        self._explain = explain
        self._misses = misses
        self._generations: dict[str, Generation] = {}
        self._following: set[str] = set()
        self._starts: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._held_up: set[str] = set()
        self._down: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._failures: Counter[str] = Counter()
        self._steady_at: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._generations

    def __getitem__(self, name: str) -> Generation:
        if name not in self._generations:
            self._generations[name] = self._make(name)
        return self._generations[name]

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(self._generations)

    @property
    def following(self) -> set[str]:
        """Those that follow their topics, or will again."""
        return set(self._following)

    def starts(self, name: str) -> int:
        """How often the generation was started here; at every start it writes some of its rows once more."""
        return self._starts[name]

    def is_seen(self, name: str) -> bool:
        """Whether the generation was seen to follow since it was started last."""
        if name in self._following - self._seen and self[name].is_following():
            self._seen.add(name)
        return name in self._seen

    def was_seen(self, name: str) -> bool:
        """The same, as of the last look; for other threads."""
        return name in self._seen

    def is_held_up(self, name: str) -> bool:
        """Whether the generation waits for a schema."""
        return name in self._held_up

    def hopeless(self) -> dict[str, str]:
        """Those that can never go on from their checkpoint, with the reason: it is damaged, or of another Spark."""
        return {name: self._why[name] for name in self._following if self._failures[name] >= _TRIES}

    def problem(self, name: str) -> str:
        """Why the generation's tables stand still; empty while they do not, or only for a moment."""
        return self._schemas.problem if name in self._held_up else self._down.get(name, "")

    def follow(self, name: str) -> None:
        """Has the generation follow its topics from now on."""
        self._following.add(name)
        self._starts[name] += 1
        try:
            self[name].follow(anew=self._misses(name))
        except ConnectionError:
            raise
        except (LiveboardError, *SPARK_ERRORS) as error:
            self._note_down(
                name, reason(error), passes=isinstance(error, LiveboardError) and not isinstance(error, Damaged)
            )
        else:
            if name in self._down:
                self._steady_at[name] = time.monotonic() + _STEADY_AFTER_S

    def heal(self) -> None:
        """Starts again what has died, once it has waited long enough."""
        for name in self._following:
            if name in self._held_up:
                if not self._schemas.waiting:
                    self._held_up.discard(name)
                    self.follow(name)
            elif name in self._down and name not in self._steady_at:
                if self._backoffs[name].over:
                    self.follow(name)
            elif why := self[name].failure():
                if self._schemas.learn(why):
                    self._hold_up(name)
                else:
                    self._note_down(name, why)
            elif time.monotonic() >= self._steady_at.get(name, math.inf):
                del self._down[name], self._steady_at[name]
                self._failures.pop(name, None)

    def drop(self, name: str) -> None:
        """Stops the generation, if it is there, and forgets it."""
        if name in self._generations:
            self._generations.pop(name).stop()
        self._following.discard(name)
        self._seen.discard(name)
        self._held_up.discard(name)
        self._down.pop(name, None)
        self._failures.pop(name, None)
        self._steady_at.pop(name, None)
        self._backoffs.pop(name, None)

    def stop(self) -> None:
        """Stops all of them."""
        for generation in self._generations.values():
            generation.stop()

    def _hold_up(self, name: str) -> None:
        self._seen.discard(name)
        self._steady_at.pop(name, None)
        self._down.pop(name, None)
        self._held_up.add(name)

    def _note_down(self, name: str, why: str, passes: bool = False) -> None:
        if not passes and not any(word in why for word in _PASSING):
            self._failures[name] += 1
        self._seen.discard(name)
        self._steady_at.pop(name, None)
        pause = self._backoffs.setdefault(name, Backoff()).failed()
        self._why[name] = self._explain(why)
        self._down[name] = f"{name} starts again in {pause:.0f} s: {self._why[name]}"
        self._log(self._down[name])
