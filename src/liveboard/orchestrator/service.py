"""Carries out what control messages ask for, with Spark and Kafka, and keeps what is live running."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace as changed
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from liveboard.config import Settings
from liveboard.contract.names import changelog_topic, generation_id, parse_changelog_topic
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, Progress, Request, State, Wiring
from liveboard.contract.tables import table_columns
from liveboard.errors import LiveboardError
from liveboard.kafka import security
from liveboard.kafka.admin import Admin, total
from liveboard.orchestrator import generations
from liveboard.orchestrator.backoff import Backoff
from liveboard.orchestrator.control import ControlTopic, Message, judge
from liveboard.orchestrator.generations import Do, Step
from liveboard.orchestrator.leftovers import fingerprint, newest_number, sweep, usable
from liveboard.orchestrator.record import Record
from liveboard.pipeline import queries, session
from liveboard.pipeline.generation import Generation, one_line
from liveboard.storage import owned

_TICK_S = 0.05
_PROGRESS_S = 0.5
_AWAIT_TOPICS_S = 0.5
_BEAT_S = 5.0
_CONTROL_PATIENCE_S = 30.0

Say = Callable[[str], None]


def run(settings: Settings, bootstrap: str, say: Say, stopping: threading.Event) -> None:
    """Keeps the board's tables up to date and follows the control topic until `stopping` is set.

    A stop or a crash at any moment loses nothing: the next run goes on where this one was.
    """

    def log(text: str) -> None:
        say(f"[orchestrator] {text}")

    client_config = security.librdkafka(settings.kafka, bootstrap)
    admin = Admin(client_config)
    with (
        owned(settings.storage.dir / "pipeline", "pipeline") as directory,
        Record(client_config, admin, stopping) as record,
    ):
        left = record.newest() or BoardStatus(sources=())
        record.keep(changed(left, sources=tuple(settings.board.sources), phase=Phase.STARTING, message=""))
        log("starting Spark")
        with _spark(settings, directory) as spark:
            orchestrator = Orchestrator(settings, bootstrap, admin, spark, record, directory, log, left)
            if not stopping.is_set():
                orchestrator.run(client_config, stopping)


@contextmanager
def _spark(settings: Settings, directory: Path) -> Iterator[SparkSession]:
    """A Spark that is stopped at the end; if it is Spark that ended, says so."""
    try:
        spark = session.create(settings.spark, directory)
        yield spark
        session.end(spark)
    except (Py4JError, ConnectionError) as error:
        raise LiveboardError(
            f"the Spark process has died (its log is {directory / 'spark.log'}); "
            "started again, the pipeline goes on from its checkpoint"
        ) from error


class Orchestrator:
    """Moves the board from wiring to wiring; the document that it keeps in the record is its whole memory."""

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        admin: Admin,
        spark: SparkSession,
        record: Record,
        directory: Path,
        log: Say,
        left: BoardStatus,
    ) -> None:
        self._settings = settings
        self._board = settings.board
        self._admin = admin
        self._spark = spark
        self._record = record
        self._directory = directory
        self._log = log
        self._kafka_options = security.java(settings.kafka, bootstrap)
        self._running: dict[str, Generation] = {}
        self._down: dict[str, Backoff] = {}
        self._rebuild = Backoff()
        self._kept_at = 0.0
        self._build_started = 0.0
        self._progress_at = 0.0
        self._awaiting_until = 0.0
        self._tombstones = 0
        self._fingerprint = fingerprint(settings, admin)
        self._usable = usable(left, self._board, self._fingerprint, admin)
        self._status = changed(
            left,
            sources=tuple(self._board.sources),
            newest=newest_number(left, admin, directory),
            applied=left.applied if left.applied and generations.fits(self._board, left.applied) else None,
            request=left.request if left.request and generations.fits(self._board, left.request.wiring) else None,
            phase=Phase.STARTING,
            message="",
        )

    def run(self, client_config: dict[str, str], stopping: threading.Event) -> None:
        """Works until `stopping` is set, then stops all queries."""
        topic = self._settings.control.topic
        self._admin.create([topic])
        sweep(self._status, self._admin, self._directory)
        for name in sorted(self._usable):
            if self._status.generations[name].state in (State.LIVE, State.RETIRING):
                self._running[name] = self._generation(name)
                self._follow(name)
        partitions = self._admin.partitions()[topic]
        with ControlTopic(client_config, topic, self._status.control, partitions) as control:
            self._log("ready")
            self._log(f"control listener on '{topic}'")
            self._hear(self._backlog(control, topic, partitions))
            while not stopping.is_set():
                self._heal()
                self._advance_build()
                self._take_steps()
                self._tell()
                self._hear(control.read(_TICK_S))
        for generation in self._running.values():
            generation.stop()

    # What control messages ask for

    def _backlog(self, control: ControlTopic, topic: str, partitions: int) -> list[Message]:
        """All that is in the control topic now: only the newest valid one counts."""
        begin = self._admin.offsets({topic: partitions}, "earliest")[topic]
        end = self._admin.offsets({topic: partitions}, "latest")[topic]
        place = {at: max(self._status.control.get(at, 0), first) for at, first in begin.items()}
        messages: list[Message] = []
        deadline = time.monotonic() + _CONTROL_PATIENCE_S
        while any(place[at] < end[at] for at in end) and time.monotonic() < deadline:
            messages += control.read(_TICK_S)
            place |= {str(message.partition): message.offset + 1 for message in messages}
        return messages

    def _hear(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        valid: list[tuple[Message, Wiring]] = []
        for message in sorted(messages, key=lambda m: (m.ts, m.partition, m.offset)):
            try:
                wiring = judge(message.value, self._board, self._settings.control.topic)
                self._require(wiring)
                valid.append((message, wiring))
            except LiveboardError as error:
                self._log(f"rejected control message {_place(message)}: {error}")
                self._record.keep_verdict(message, "rejected", str(error))
        for message, _ in valid[:-1]:
            self._record.keep_verdict(message, "superseded", f"by {_place(valid[-1][0])}")
        if valid:
            self._request(*valid[-1])
        judged = {str(message.partition): message.offset + 1 for message in messages}
        self._keep(changed(self._status, control={**self._status.control, **judged}))

    def _require(self, wiring: Wiring) -> None:
        topics = self._admin.require(wiring.topics.values())
        if refused := sorted(self._admin.unreadable(topics)):
            raise LiveboardError(f"expected Kafka topics that may be read, found no permission for {refused}")

    def _request(self, message: Message, wiring: Wiring) -> None:
        pending, live = self._status.request, self._status.generations.get(self._status.live or "")
        if pending and pending.wiring == wiring:
            return self._record.keep_verdict(message, "ignored", "this wiring is being built already")
        if pending:
            self._answer("superseded", f"by {_place(message)}")
        if live and live.wiring == wiring:
            self._record.keep_verdict(message, "ignored", "this wiring is live already")
        else:
            self._log(f"applying control: {_described(wiring, ', ')}")
            self._record.keep_verdict(message, "building")
        request = Request(wiring, message.partition, message.offset, message.text or "", message.ts)
        self._status = generations.requested(self._status, request)

    def _answer(self, verdict: str, reason: str = "") -> None:
        """Says what became of the control message that is being carried out."""
        if request := self._status.request:
            message = Message(request.partition, request.offset, request.ts, request.message.encode())
            self._record.keep_verdict(message, verdict, reason)

    # From wiring to wiring

    def _take_steps(self) -> None:
        goal = generations.target(self._status, self._board)
        while (step := self._next_step(goal)).do is not Do.NOTHING:
            try:
                self._take(step, goal)
            except (LiveboardError, PySparkException, Py4JJavaError, OSError) as error:
                return self._given_up(step, error)
            if step.do is Do.BUILD:
                return

    def _next_step(self, goal: Wiring) -> Step:
        step = generations.next_step(self._status, goal, self._usable, time.time())
        waiting = not self._rebuild.over or time.monotonic() < self._awaiting_until
        return Step(Do.NOTHING) if step.do in (Do.BUILD, Do.REMOVE) and waiting else step

    def _take(self, step: Step, goal: Wiring) -> None:
        match step.do:
            case Do.BUILD:
                self._begin(goal)
            case Do.SWITCH:
                self._switch(step.generation)
            case Do.CLOSE:
                self._log(f"closing {step.generation}, which was {self._status.generations[step.generation].state}")
                self._keep(generations.closed(self._status, step.generation))
            case Do.REMOVE:
                self._remove(step.generation)

    def _begin(self, goal: Wiring) -> None:
        """Begins to build the wiring, or says which topics have to be there first."""
        board = generations.wired(self._board, goal)
        if missing := sorted(set(goal.topics.values()) - self._admin.partitions().keys()):
            if self._settings.kafka.embedded and goal == generations.configured(self._board):
                self._admin.create(missing)
            elif not self._status.request:
                self._awaiting_until = time.monotonic() + _AWAIT_TOPICS_S
                phase = self._status.phase if self._status.live else Phase.WAITING
                return self._say_once(phase, f"waiting for the topics {', '.join(missing)}, which do not exist yet")
        partitions = self._admin.require(goal.topics.values())
        self._check_slots(goal, partitions)
        name = generation_id(self._status.newest + 1)
        record = GenerationRecord(
            state=State.BUILDING,
            wiring=goal,
            tables=table_columns(board),
            checkpoint=str(self._directory / name),
            starting_offsets=self._admin.offsets(partitions, self._settings.kafka.start_from),
            fingerprint=self._fingerprint,
        )
        # On record before anything of it exists, so that whatever a crash leaves is known.
        self._usable.add(name)
        self._keep(generations.begun(self._status, name, record))
        self._start_build(name)

    def _check_slots(self, goal: Wiring, partitions: dict[str, int]) -> None:
        """Refuses what Spark has no task slots for, beside the generations that are there."""
        running = [self._status.generations[name] for name in self._running]
        boards = [(record.wiring, _partitions(record)) for record in running]
        shuffles = session.shuffle_partitions(self._settings.spark)
        needed = [
            session.slots_needed(generations.wired(self._board, wiring), counts, shuffles)
            for wiring, counts in [*boards, (goal, partitions)]
        ]
        session.check_slots(self._spark, sum(needed))

    def _start_build(self, name: str) -> None:
        record = self._status.generations[name]
        self._admin.create_changelogs(changelog_topic(name, table) for table in record.tables)
        rows = total(self._admin.offsets(_partitions(record), "latest")) - total(record.starting_offsets)
        generation = self._running[name] = self._generation(name)
        self._build_started = time.monotonic()
        self._show_progress(name, Progress(0, rows, 0.0))
        if rows or any(Path(record.checkpoint).glob("*")):
            generation.build()

    def _advance_build(self) -> None:
        building = [name for name, record in self._status.generations.items() if record.state is State.BUILDING]
        for name in building:
            try:
                if name in self._running:
                    self._check_build(name)
                elif name in self._usable and self._wanted(name):
                    self._log(f"taking up the build of {name}")
                    self._start_build(name)
            except (LiveboardError, PySparkException, Py4JJavaError, OSError) as error:
                self._fail(name, error)

    def _wanted(self, name: str) -> bool:
        return self._status.generations[name].wiring == generations.target(self._status, self._board)

    def _check_build(self, name: str) -> None:
        generation, progress = self._running[name], self._status.generations[name].progress
        if generation.is_built():
            generation.follow()
            return self._switch(name)
        if progress and time.monotonic() - self._progress_at > _PROGRESS_S:
            rows = max(progress.rows, int(generation.part_built() * progress.total))
            elapsed = time.monotonic() - self._build_started
            self._show_progress(name, Progress(rows, progress.total, rows / elapsed))

    def _switch(self, name: str) -> None:
        changelogs = {table: changelog_topic(name, table) for table in self._status.generations[name].tables}
        ends = self._admin.offsets(dict.fromkeys(changelogs.values(), 1), "latest")
        self._answer("applied")
        status = generations.switched(
            self._status,
            name,
            now=time.time(),
            complete_at={table: ends[topic]["0"] for table, topic in changelogs.items()},
            retire_after=self._settings.control.retire_after,
            old_usable=self._status.live in self._usable,
        )
        self._keep(changed(status, phase=Phase.LIVE, message=""))
        self._log(f"topics set {_described(status.generations[name].wiring, ' ')}")

    def _given_up(self, step: Step, error: Exception) -> None:
        """A step could not be taken: a build that has no generation yet, or something that is tried again."""
        building = [name for name, record in self._status.generations.items() if record.state is State.BUILDING]
        if step.do is Do.BUILD and building:
            return self._fail(building[-1], error)
        self._rebuild.failed()
        reason = _reason(error)
        if step.do is Do.BUILD:
            self._answer("failed", reason)
            self._status = changed(self._status, request=None)
            phase = Phase.LIVE if self._status.live else Phase.FAILED
            self._say_once(phase, f"the new wiring could not be built: {reason}")
        else:
            self._log(f"{step.generation} could not be {step.do.name.lower()}d yet: {reason}")

    def _fail(self, name: str, error: Exception) -> None:
        reason = f"{name} could not be built: {_reason(error)}"
        if not self._status.request:
            self._rebuild.failed()
        self._answer("failed", reason)
        phase = Phase.LIVE if self._status.live else Phase.FAILED
        self._log(reason)
        self._keep(changed(generations.failed(self._status, name), phase=phase, message=reason))

    def _remove(self, name: str) -> None:
        """Deletes the generation's queries, topics and checkpoint."""
        if generation := self._running.pop(name, None):
            generation.stop()
        self._down.pop(name, None)
        self._usable.discard(name)
        topics = [topic for topic in self._admin.partitions() if (parse_changelog_topic(topic) or "")[:1] == (name,)]
        self._admin.delete(topics)
        shutil.rmtree(self._directory / name, ignore_errors=True)
        self._keep(generations.removed(self._status, name))

    # Keeping what is there running

    def _generation(self, name: str) -> Generation:
        record = self._status.generations[name]
        board = generations.wired(self._board, record.wiring)
        plan = queries.Wiring(name, board, record.starting_offsets, self._kafka_options)
        interval = f"{self._settings.spark.checkpoint_interval.milliseconds} milliseconds"
        return Generation(self._spark, plan, self._directory / name, interval)

    def _heal(self) -> None:
        """Restarts queries that have died, each time waiting longer while they keep dying."""
        for name, generation in self._running.items():
            if self._status.generations[name].state is State.BUILDING:
                continue
            if name not in self._down and (failures := generation.failures()):
                self._note_down(name, "; ".join(f"the {query} query failed: {why}" for query, why in failures.items()))
            elif name in self._down and self._down[name].over:
                self._follow(name)

    def _follow(self, name: str) -> None:
        try:
            self._running[name].follow()
        except (PySparkException, Py4JJavaError, OSError) as error:
            return self._note_down(name, _reason(error))
        self._down.pop(name, None)
        if name == self._status.live:
            self._keep(changed(self._status, phase=Phase.LIVE, message=""))
            self._log(f"{name} is live")

    def _note_down(self, name: str, why: str) -> None:
        pause = self._down.setdefault(name, Backoff()).failed()
        text = f"{name} starts again in {pause:.0f} s: {why}"
        self._log(text)
        if name == self._status.live:
            self._keep(changed(self._status, phase=Phase.RESTARTING, message=text))

    # Telling others

    def _show_progress(self, name: str, progress: Progress) -> None:
        self._progress_at = time.monotonic()
        left = progress.seconds_left
        text = f"building {name}: {progress.percent:.0f} % of {progress.total:,} records"
        text += f", {progress.rate:,.0f} a second, {left:.0f} s left" if left is not None else ""
        record = changed(self._status.generations[name], progress=progress)
        every = {**self._status.generations, name: record}
        self._keep(changed(self._status, generations=every, phase=Phase.BUILDING, message=text))

    def _say_once(self, phase: Phase, message: str) -> None:
        if message != self._status.message:
            self._log(message)
            self._keep(changed(self._status, phase=phase, message=message))

    def _tell(self) -> None:
        """Repeats the document now and then, so that readers know that it is kept."""
        if time.monotonic() - self._kept_at > _BEAT_S:
            self._keep(self._status)
            live = self._running.get(self._status.live or "")
            if live and (tombstones := live.tombstones()) > self._tombstones:
                self._tombstones = tombstones
                self._log(f"skipped {tombstones:,} records without a value (tombstones) so far")

    def _keep(self, status: BoardStatus) -> None:
        self._status, self._kept_at = status, time.monotonic()
        self._record.keep(status)


def _described(wiring: Wiring, separator: str) -> str:
    topics = [f"{source}='{topic}'" for source, topic in wiring.topics.items()]
    return separator.join([*topics, *[f"join='{how}'" for how in list(wiring.joins.values())[:1]]])


def _partitions(record: GenerationRecord) -> dict[str, int]:
    return {topic: len(offsets) for topic, offsets in record.starting_offsets.items()}


def _place(message: Message) -> str:
    return f"{message.partition}-{message.offset}"


def _reason(error: Exception) -> str:
    if isinstance(error, PySparkException):
        return one_line(error)
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return " ".join(text.split())[:500]
