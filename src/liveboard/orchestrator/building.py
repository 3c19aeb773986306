"""Builds generations: from what has to be there before, to the moment when the tables' names can be switched."""

from __future__ import annotations

import time

from msgspec.structs import replace as changed

from liveboard.contract.board import Wiring
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import generation_id
from liveboard.contract.status import GenerationRecord, Phase, Progress, State
from liveboard.contract.tables import table_columns
from liveboard.counting.following import counted
from liveboard.kafka import trouble
from liveboard.kafka.admin import total
from liveboard.orchestrator import generations, leftovers
from liveboard.orchestrator.catching_up import CatchingUp
from liveboard.orchestrator.counting import Counting
from liveboard.orchestrator.ending import keeping
from liveboard.orchestrator.repairing import Repairing
from liveboard.orchestrator.workplace import Workplace, partitions
from liveboard.pipeline import session

_PROGRESS_S = 0.5
_AWAIT_TOPICS_S = 0.5
# So few records are not worth a build: the stream follows from the beginning, and is there sooner.
_FOLLOWED_AT_ONCE = 5_000


class Builds:
    """Begins builds and sees them through; what fails is a LiveboardError or an error of Spark."""

    def __init__(self, work: Workplace, repairing: Repairing, counting: Counting) -> None:
        self._work = work
        self._repairing = repairing
        self._counting = counting
        self._catching_up: dict[str, CatchingUp] = {}
        self._look_for_topics_at = 0.0
        self._started = 0.0
        self._progress_at = 0.0

    @property
    def waits_for_topics(self) -> bool:
        """Whether it is too early to look again for topics that were missing."""
        return time.monotonic() < self._look_for_topics_at

    def begin(self, goal: Wiring) -> None:
        """Begins to build the wiring, or says what has to be there first."""
        work = self._work
        missing = set(goal.topics.values()) - work.admin.partitions().keys()
        if work.settings.kafka.embedded and goal == work.board.wiring:
            work.admin.create(missing)
        elif not work.status.request and (awaited := self._awaited(goal, missing)):
            self._look_for_topics_at = time.monotonic() + _AWAIT_TOPICS_S
            return self.say_waiting(awaited)
        there = work.admin.require(goal.topics.values())
        shuffles = self._check_slots(goal, there)
        name = generation_id(work.status.newest + 1)
        record = GenerationRecord(
            state=State.BUILDING,
            wiring=goal,
            tables=table_columns(work.board.wired(goal)),
            starting_offsets=work.admin.offsets(there, work.settings.kafka.start_from),
            topics=work.admin.topic_ids(there),
            fingerprint={**work.fingerprint, leftovers.SHUFFLES: shuffles},
        )
        # On record before anything of it exists, so that whatever a crash leaves is known.
        work.usable.add(name)
        work.keep(generations.begun(work.status, name, record))
        return self.start(name)

    def start(self, name: str) -> None:
        """Starts the build of a generation that is on record."""
        work = self._work
        record = work.status.generations[name]
        generation = work.running[name]
        generation.prepare()
        work.admin.create_generation(work.names, name, record.tables)
        work.losses.tell_replaced(name)
        end = work.admin.offsets(partitions(record), "latest")
        rows = total(end) - total(record.starting_offsets)
        self._started = time.monotonic()
        self._show_progress(name, Progress(0, rows, 0.0))
        must_be_complete = rows > 0 and work.status.live is not None
        # Only who reads the records as Spark does can tell which of them have a row in a table by key. And windows that
        # have long ended would be shown for a moment.
        is_built = any(source.by_key for source in work.board.sources.values()) or keeping(work.board)
        if rows > _FOLLOWED_AT_ONCE or (must_be_complete and is_built):
            return generation.build()
        generation.forget()
        if must_be_complete:
            self._catching_up[name] = CatchingUp(work.plan(name), end, work.kafka.client_config, work.admin)
        return None

    def is_complete(self, name: str) -> bool:
        """Whether the names can be switched to the generation; what comes next of its build is done here."""
        work = self._work
        record, generation = work.status.generations[name], work.running[name]
        if work.running.is_held_up(name):
            if waiting := self._catching_up.get(name):
                waiting.be_patient()
            self.say_waiting(work.schemas.problem)
            return False
        if name in work.running.following:
            if problem := work.running.problem(name):
                raise LiveboardError(problem)
            return work.running.is_seen(name) and self._has_caught_up(name) and self._counting.is_complete(name)
        if generation.is_built():
            work.losses.look_at_build(name)
            work.running.follow(name)
        elif record.progress and generation.is_written() and not record.complete_at and self._can_be_shown():
            # Readers show the tables from now on: they have all that was there when the build began. What came since
            # follows as soon as it is all remembered. Should that fail, readers go back to what is live.
            work.log(f"the rows of {name} are written")
            self._show_progress(name, record.progress, complete_at=work.ends(name))
        elif record.progress and time.monotonic() - self._progress_at > _PROGRESS_S:
            rows = max(record.progress.rows, int(generation.part_built() * record.progress.total))
            self._show_progress(name, Progress(rows, record.progress.total, rows / (time.monotonic() - self._started)))
        return False

    def drop(self, name: str) -> None:
        """Ends the connections for the generation."""
        if name in self._catching_up:
            self._catching_up.pop(name).close()

    def say_waiting(self, message: str) -> None:
        """Says what a build waits for, once; while something is live, that is what the board is."""
        status = self._work.status
        if message and message != status.message:
            self._work.log(message)
            phase = Phase.LIVE if status.live else Phase.WAITING
            self._work.keep(changed(status, phase=phase, message=message))

    def _has_caught_up(self, name: str) -> bool:
        """Whether the tables are complete; where there was nothing to see before, they are shown as they fill."""
        waiting = self._catching_up.get(name)
        return waiting is None or (waiting.is_done() and not self._repairing.is_pending(name))

    def _can_be_shown(self) -> bool:
        """Whether all tables of a build are complete when Spark has written its rows; a first one is shown anyway."""
        return not self._work.status.live or not counted(self._work.board)

    def _awaited(self, goal: Wiring, missing: set[str]) -> str:
        if refused := self._work.admin.unreadable(goal.topics.values()):
            return trouble.permission(refused)
        return f"waiting for the topics {', '.join(sorted(missing))}, which do not exist yet" if missing else ""

    def _check_slots(self, goal: Wiring, there: dict[str, int]) -> int:
        """In how many partitions the joins are computed; refuses what Spark has no task slots for beside the rest."""
        work, master = self._work, self._work.settings.spark.master
        found = session.slots(work.spark)
        inputs = session.slots_needed(work.board.wired(goal), there, 0)
        configured = session.configured_shuffle_partitions(work.settings.spark)
        shuffles = configured or session.derived_shuffle_partitions(found, inputs)
        free = 0 if session.is_local(master) else session.BATCH_SLOTS
        session.check_slots(master, found, inputs + shuffles + work.slots_held() + free)
        if not configured:
            work.log(f"the cluster has {found} task slots; joins are computed in {shuffles} partitions")
        work.spark.conf.set("spark.sql.shuffle.partitions", str(shuffles))
        return shuffles

    def _show_progress(self, name: str, progress: Progress, **changes: object) -> None:
        self._progress_at = time.monotonic()
        record = changed(self._work.status.generations[name], progress=progress, **changes)
        is_swapped = self._work.status.live is not None and record.complete_at
        left = progress.seconds_left
        text = f"{name} is shown and soon follows" if is_swapped else f"building {name}"
        text += f": {progress.percent:.0f} % of {progress.total:,} records"
        if not progress.total:
            text = f"starting {name}: its topics have no records yet"
        text += f", {progress.rate:,.0f} a second, {left:.0f} s left" if left is not None else ""
        self._keep(name, record, phase=Phase.CATCHING_UP if is_swapped else Phase.BUILDING, message=text)

    def _keep(self, name: str, record: GenerationRecord, **changes: object) -> None:
        status = self._work.status
        self._work.keep(changed(status, generations={**status.generations, name: record}, **changes))
