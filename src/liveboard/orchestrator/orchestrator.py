"""Carries out what control messages ask for, with Spark and Kafka."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace as changed
from pyspark.sql import SparkSession

from liveboard.config import Settings
from liveboard.contract.names import changelog_topic, generation_id, parse_changelog_topic
from liveboard.contract.status import BEAT_S, BoardStatus, GenerationRecord, Phase, Progress, State, Wiring
from liveboard.contract.tables import table_columns
from liveboard.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin, total
from liveboard.kafka.trouble import KafkaUnavailable
from liveboard.orchestrator import generations, hearing, leftovers
from liveboard.orchestrator.backoff import Backoff
from liveboard.orchestrator.control import ControlTopic, Message, judge
from liveboard.orchestrator.generations import Do, Step
from liveboard.orchestrator.hearing import Verdict
from liveboard.orchestrator.record import Record
from liveboard.orchestrator.running import SPARK_ERRORS, Running, reason
from liveboard.pipeline import session
from liveboard.pipeline.generation import Generation, one_line
from liveboard.pipeline.queries import Plan

_TICK_S = 0.05
_PROGRESS_S = 0.5
_AWAIT_TOPICS_S = 0.5
_STANDING_STILL = (Phase.STARTING, Phase.RESTARTING)

Log = Callable[[str], None]


class Connection(NamedTuple):
    """Kafka, as both clients see it."""

    client_config: Mapping[str, str]
    """Of librdkafka."""
    spark_options: Callable[[], Mapping[str, str]]
    """With the certificates as they are now."""
    admin: Admin


class Orchestrator:
    """Moves the board from wiring to wiring; the document that it keeps in the record is its whole memory."""

    def __init__(
        self,
        settings: Settings,
        kafka: Connection,
        spark: SparkSession,
        record: Record,
        directory: Path,
        log: Log,
        left: BoardStatus,
    ) -> None:
        self._settings = settings
        self._board = settings.board
        self._kafka = kafka
        self._admin = admin = kafka.admin
        self._spark = spark
        self._record = record
        self._directory = directory
        self._log = log
        self._running = Running(self._generation, log, self._explain)
        self._unheard: list[Message] = []
        self._hear_again = Backoff()
        self._deaf = ""
        self._retry = Backoff()
        self._look_for_topics_at = 0.0
        self._build_started = 0.0
        self._progress_at = 0.0
        self._kept_at = 0.0
        self._tombstones = 0
        self._fingerprint = leftovers.fingerprint(settings, admin)
        self._usable = leftovers.usable(left, self._board, self._fingerprint, admin)
        self.status = leftovers.taken_up(left, self._board, admin, directory)
        leftovers.sweep(self.status, admin, directory)

    def run(self, control: ControlTopic, stopping: threading.Event) -> None:
        """Works until `stopping` is set, then stops all queries."""
        for name in sorted(self._usable):
            if self.status.generations[name].state in (State.LIVE, State.RETIRING):
                self._running.follow(name)
        self._log("ready")
        self._log(f"control listener on '{control.topic}'")
        self._hear(control.backlog())
        while not stopping.is_set():
            self._keep_running()
            self._advance_build()
            self._take_steps()
            self._beat()
            self._hear(control.read(_TICK_S))
            self._tell_whether_heard(control.problem)
        self._running.stop()

    def _hear(self, messages: Sequence[Message]) -> None:
        """Judges the messages; while Kafka does not answer, they wait."""
        self._unheard += messages
        if not self._unheard or not self._hear_again.over:
            return
        try:
            status, verdicts = hearing.heard(self.status, self._unheard, self._judge)
        except KafkaUnavailable as error:
            self._hear_again.failed()
            return self._log(str(error))
        self._unheard.clear()
        self._tell(verdicts, status)
        self._keep(status)

    def _tell_whether_heard(self, problem: str) -> None:
        """Says it while control messages cannot be read, and no longer."""
        if problem != self._deaf:
            self._log(problem or "control messages can be read again")
            message = problem if problem or self.status.message == self._deaf else self.status.message
            self._deaf = problem
            self._keep(changed(self.status, message=message))

    def _judge(self, message: Message) -> Wiring:
        wiring = judge(message.value, self._board, self._settings.control.topic)
        topics = self._admin.require(wiring.topics.values())
        if refused := self._admin.unreadable(topics):
            raise LiveboardError(trouble.permission(refused))
        return wiring

    def _tell(self, verdicts: Sequence[Verdict], status: BoardStatus) -> None:
        for verdict in verdicts:
            self._record.keep_verdict(verdict)
            if verdict.word == hearing.REJECTED:
                self._log(f"rejected control message {verdict.message.place}: {verdict.reason}")
            elif verdict.word == hearing.BUILDING and status.request:
                self._log(f"applying control: {_described(status.request.wiring, ', ')}")

    def _keep_running(self) -> None:
        """Heals what has died, and says so about what is live."""
        self._running.heal()
        live = self.status.live or ""
        problem = self._running.problem(live)
        if problem and problem != self.status.message:
            self._keep(changed(self.status, phase=Phase.RESTARTING, message=problem))
        elif not problem and live in self._running and self.status.phase in _STANDING_STILL:
            self._log(f"{live} is live")
            self._keep(changed(self.status, phase=Phase.LIVE, message=""))

    def _take_steps(self) -> None:
        """Does what can be done at once; a build is begun here and goes on in `_advance_build`."""
        goal = generations.target(self.status, self._board)
        while (step := self._next_step(goal)).do is not Do.NOTHING:
            try:
                self._take(step, goal)
            except (LiveboardError, *SPARK_ERRORS) as error:
                return self._give_up(step, error)
            if step.do is Do.BUILD:
                return None
        return None

    def _next_step(self, goal: Wiring) -> Step:
        step = generations.next_step(self.status, goal, self._usable, time.time())
        waiting = not self._retry.over or time.monotonic() < self._look_for_topics_at
        return Step(Do.NOTHING) if step.do in (Do.BUILD, Do.REMOVE) and waiting else step

    def _take(self, step: Step, goal: Wiring) -> None:
        match step.do:
            case Do.BUILD:
                self._begin(goal)
            case Do.SWITCH:
                self._switch(step.generation)
            case Do.CLOSE:
                self._log(f"closing {step.generation}, which was {self.status.generations[step.generation].state}")
                self._keep(generations.closed(self.status, step.generation))
            case Do.REMOVE:
                self._remove(step.generation)

    def _begin(self, goal: Wiring) -> None:
        """Begins to build the wiring, or says what has to be there first."""
        missing = set(goal.topics.values()) - self._admin.partitions().keys()
        if self._settings.kafka.embedded and goal == generations.configured(self._board):
            self._admin.create(missing)
        elif not self.status.request and (awaited := self._awaited(goal, missing)):
            self._look_for_topics_at = time.monotonic() + _AWAIT_TOPICS_S
            return self._say(Phase.WAITING, awaited)
        partitions = self._admin.require(goal.topics.values())
        self._check_slots(goal, partitions)
        name = generation_id(self.status.newest + 1)
        record = GenerationRecord(
            state=State.BUILDING,
            wiring=goal,
            tables=table_columns(generations.wired(self._board, goal)),
            checkpoint=str(self._directory / name),
            starting_offsets=self._admin.offsets(partitions, self._settings.kafka.start_from),
            fingerprint=self._fingerprint,
        )
        # On record before anything of it exists, so that whatever a crash leaves is known.
        self._usable.add(name)
        self._keep(generations.begun(self.status, name, record))
        return self._start_build(name)

    def _awaited(self, goal: Wiring, missing: set[str]) -> str:
        if refused := self._admin.unreadable(goal.topics.values()):
            return trouble.permission(refused)
        return f"waiting for the topics {', '.join(sorted(missing))}, which do not exist yet" if missing else ""

    def _check_slots(self, goal: Wiring, partitions: dict[str, int]) -> None:
        """Refuses what Spark has no task slots for, beside the generations that are there."""
        there = [self.status.generations[name] for name in self._running.names]
        wirings = [(goal, partitions), *((record.wiring, _partitions(record)) for record in there)]
        shuffles = session.shuffle_partitions(self._settings.spark)
        boards = [(generations.wired(self._board, wiring), counts) for wiring, counts in wirings]
        session.check_slots(self._spark, sum(session.slots_needed(board, at, shuffles) for board, at in boards))

    def _start_build(self, name: str) -> None:
        record = self.status.generations[name]
        self._admin.create_changelogs(changelog_topic(name, table) for table in record.tables)
        rows = total(self._admin.offsets(_partitions(record), "latest")) - total(record.starting_offsets)
        self._build_started = time.monotonic()
        self._show_progress(name, Progress(0, rows, 0.0))
        generation = self._running[name]
        if rows or Path(record.checkpoint).exists():
            generation.build()

    def _advance_build(self) -> None:
        goal = generations.target(self.status, self._board)
        for name, record in self.status.generations.items():
            if record.state is not State.BUILDING or record.wiring != goal or name not in self._usable:
                continue
            try:
                if name in self._running:
                    self._check_build(name, record)
                else:
                    self._log(f"taking up the build of {name}")
                    self._start_build(name)
            except (LiveboardError, *SPARK_ERRORS) as error:
                self._fail(name, error)

    def _check_build(self, name: str, record: GenerationRecord) -> None:
        generation = self._running[name]
        if generation.is_built():
            self._running.follow(name)
            self._switch(name)
        elif record.progress and time.monotonic() - self._progress_at > _PROGRESS_S:
            rows = max(record.progress.rows, int(generation.part_built() * record.progress.total))
            elapsed = time.monotonic() - self._build_started
            self._show_progress(name, Progress(rows, record.progress.total, rows / elapsed))

    def _switch(self, name: str) -> None:
        changelogs = {table: changelog_topic(name, table) for table in self.status.generations[name].tables}
        ends = self._admin.offsets(dict.fromkeys(changelogs.values(), 1), "latest")
        # Before the switch: a crash between the two has the request carried out and answered again.
        self._tell(hearing.on_request(self.status, hearing.APPLIED), self.status)
        status = generations.switched(
            self.status,
            name,
            now=time.time(),
            complete_at={table: ends[topic]["0"] for table, topic in changelogs.items()},
            retire_after=self._settings.control.retire_after,
            old_usable=self.status.live in self._usable,
        )
        self._keep(changed(status, phase=Phase.LIVE, message=""))
        self._log(f"topics set {_described(status.generations[name].wiring, ' ')}")

    def _give_up(self, step: Step, error: Exception) -> None:
        """A step could not be taken: a build fails, anything else is tried again."""
        building = [name for name, record in self.status.generations.items() if record.state is State.BUILDING]
        if step.do is Do.BUILD and building:
            self._fail(building[-1], error)
        elif step.do is Do.BUILD:
            self._fail("", error)
        else:
            self._retry.failed()
            self._log(f"{step.do.name.lower()} {step.generation}: {self._explain(error)}; trying again")

    def _fail(self, name: str, error: Exception) -> None:
        """A build has failed; without a name, before there was anything of it."""
        why = f"{name or 'the new wiring'} could not be built: {self._explain(error)}"
        if not self.status.request:
            self._retry.failed()
        self._tell(hearing.on_request(self.status, hearing.FAILED, why), self.status)
        status = generations.failed(self.status, name) if name else changed(self.status, request=None)
        self._log(why)
        self._keep(changed(status, phase=Phase.LIVE if self.status.live else Phase.FAILED, message=why))

    def _remove(self, name: str) -> None:
        """Deletes the generation's queries, topics and checkpoint."""
        self._running.drop(name)
        self._usable.discard(name)
        topics = {topic: parse_changelog_topic(topic) for topic in self._admin.partitions()}
        self._admin.delete(topic for topic, parsed in topics.items() if parsed and parsed[0] == name)
        shutil.rmtree(self._directory / name, ignore_errors=True)
        self._keep(generations.removed(self.status, name))

    def _generation(self, name: str) -> Generation:
        record = self.status.generations[name]
        board = generations.wired(self._board, record.wiring)

        def plan() -> Plan:
            return Plan(name, board, record.starting_offsets, self._kafka.spark_options())

        interval = f"{self._settings.spark.checkpoint_interval.milliseconds} milliseconds"
        return Generation(self._spark, plan, self._directory / name, interval)

    def _explain(self, error: Exception | str) -> str:
        """What an error of Spark, Kafka or the disk means, in one line."""
        text = error if isinstance(error, str) else reason(error)
        return one_line(trouble.of_spark(self._kafka.client_config, text))

    def _show_progress(self, name: str, progress: Progress) -> None:
        self._progress_at = time.monotonic()
        left = progress.seconds_left
        text = f"building {name}: {progress.percent:.0f} % of {progress.total:,} records"
        text += f", {progress.rate:,.0f} a second, {left:.0f} s left" if left is not None else ""
        record = changed(self.status.generations[name], progress=progress)
        every = {**self.status.generations, name: record}
        self._keep(changed(self.status, generations=every, phase=Phase.BUILDING, message=text))

    def _say(self, phase: Phase, message: str) -> None:
        """Says it once; while something is live, that is what the board is."""
        if message != self.status.message:
            self._log(message)
            self._keep(changed(self.status, phase=Phase.LIVE if self.status.live else phase, message=message))

    def _beat(self) -> None:
        """Repeats the document now and then, so that readers know that it is kept."""
        if time.monotonic() - self._kept_at < BEAT_S:
            return
        self._keep(self.status)
        live = self.status.live or ""
        if live in self._running and (tombstones := self._running[live].tombstones()) > self._tombstones:
            self._tombstones = tombstones
            self._log(f"skipped {tombstones:,} records without a value (tombstones) so far")

    def _keep(self, status: BoardStatus) -> None:
        self.status, self._kept_at = status, time.monotonic()
        self._record.keep(status)


def _described(wiring: Wiring, separator: str) -> str:
    topics = [f"{source}='{topic}'" for source, topic in wiring.topics.items()]
    return separator.join([*topics, *[f"join='{how}'" for how in list(wiring.joins.values())[:1]]])


def _partitions(record: GenerationRecord) -> dict[str, int]:
    return {topic: len(offsets) for topic, offsets in record.starting_offsets.items()}
