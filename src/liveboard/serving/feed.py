"""The thread that follows the status topic and the changelogs of every generation that is built, live or retiring."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from liveboard.config_values import RowCaps
from liveboard.contract.names import CONTROL_CHANGELOG, CONTROL_TABLE, STATUS_TOPIC, changelog_topic
from liveboard.contract.schema import Column
from liveboard.contract.status import CONTROL_COLUMNS, STALE_AFTER_S, BoardStatus, State, decode_status, gone_stale
from liveboard.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.reader import REFUSED
from liveboard.serving.catalogue import FOLLOWED, Catalogue
from liveboard.serving.table import Change, Table

_BATCH = 500
_SLICE = 500
_SLICES_AHEAD = 8
_WAIT_S = 0.2
_WAIT_ANSWER_S = 0.005
_LOOK_S = 1.0
_ASK_S = 0.5
_TIMEOUT_S = 1.0
_WONDER_S = 3.0
_OPENING, _CLOSING = b"[]"

_log = logging.getLogger(__name__)


class Changelog:
    """One changelog: gathered until all that its table must begin with is read, then handed on change by change."""

    def __init__(self, topic: str, generation: str | None, name: str, columns: tuple[Column, ...]) -> None:
        self.topic = topic
        self.generation = generation
        self.name = name
        self.columns = columns
        self.position = 0
        self.complete_at: int | None = None
        """Where the build ended; None while it runs."""
        self.end: int | None = None
        """Where the topic ended when the build was known to be complete; None until it is asked."""
        self.is_loaded = False
        self.changes: list[Change] = []
        self._gathered: dict[bytes, bytes] = {}

    @property
    def is_read(self) -> bool:
        """Whether all that the table must begin with has been gathered."""
        return (
            self.complete_at is not None and self.end is not None and self.position >= max(self.complete_at, self.end)
        )

    def take(self, messages: Iterable[Message]) -> list[Message]:
        """Records more; gives back what is none."""
        gathered, changes, is_loaded = self._gathered, self.changes, self.is_loaded
        others: list[Message] = []
        last: Message | None = None
        for message in messages:
            key, value = message.key(), message.value()
            if key is None:
                # An error has none either.
                if message.error() is not None:
                    others.append(message)
                    continue
                self._no_row(message)
            elif value is None:
                if is_loaded:
                    changes.append((key, None))
                else:
                    gathered.pop(key, None)
            elif not value or value[0] != _OPENING or value[-1] != _CLOSING:
                self._no_row(message)
            elif is_loaded:
                changes.append((key, value))
            else:
                gathered[key] = value
            last = message
        if last is not None:
            self.position = (last.offset() or 0) + 1
        return others

    def load(self, max_rows: int) -> Table:
        """The table as gathered."""
        gathered, self._gathered = self._gathered, {}
        self.is_loaded = True
        return Table.in_order(self.name, self.generation, self.columns, gathered, max_rows)

    def _no_row(self, message: Message) -> None:
        _log.error("no row", extra={"topic": self.topic, "offset": message.offset()})


class Feed:
    """Fills a catalogue in an event loop.

    A broker that is away or a topic that does not exist is waited for, and the tables stay as they are.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
        catalogue: Catalogue,
        loop: asyncio.AbstractEventLoop,
        max_rows: RowCaps | None = None,
    ) -> None:
        self.problems: dict[str, str] = {}
        """What is refused, by topic, for as long as it is."""
        self.lags: dict[tuple[str | None, str], int] = {}
        """How many records each table is behind its changelog, looked at now and then."""
        self.trouble = ""
        """Why Kafka does not answer, in a sentence, when nothing has been heard for a while; empty when it does."""
        self.failure: str | None = None
        """Why nothing is read any more, in a sentence; whoever runs the feed then ends the process."""
        self._client_config = client_config
        self._complaints = trouble.Complaints(client_config)
        self._catalogue = catalogue
        self.loop = loop
        self._max_rows = max_rows or RowCaps()
        self._config: dict[str, Any] = {
            **client_config,
            "group.id": "liveboard-server",  # librdkafka wants one, and does not use it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 16_384,  # 64 MiB by default, which is never read any faster
            "fetch.wait.max.ms": 50,  # a topic that is added waits for the fetch that is under way
            "reconnect.backoff.max.ms": 1_000,
            "topic.metadata.refresh.interval.ms": 10_000,
            "log_level": 0,
            "error_cb": self._complaints,
        }
        self._changelogs: dict[str, Changelog] = {}
        self._status: bytes | None = None
        self._status_ms = 0
        self._board: BoardStatus | None = None
        self._shown: BoardStatus | None = None  # the same, or what it is once it has gone stale
        self._status_position = 0
        self._status_end: int | None = None
        self._looked = 0.0
        self._wondered = 0.0
        self._is_cut_off = False
        self._asked: dict[str, tuple[float, Future[Any]]] = {}
        self._ahead = threading.Semaphore(_SLICES_AHEAD)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    async def stop(self) -> None:
        """Ends the thread."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        control = Changelog(CONTROL_CHANGELOG, None, CONTROL_TABLE, CONTROL_COLUMNS)
        control.complete_at = 0
        self._changelogs[control.topic] = control
        try:
            while not self._stopping.is_set():
                consumer = Consumer(self._config)
                try:
                    self._read_on(consumer)
                finally:
                    consumer.close()
        except Exception as error:
            self._fail(error)

    def _read_on(self, consumer: Consumer) -> None:
        """Reads from where the last client was, until this one gets no answer: the next may have better certificates.

        A client uses for ever those that it began with.
        """
        self._admin = AdminClient({**self._client_config, "log_level": 0})
        self._asked.clear()
        self._complaints.forget()
        self._is_cut_off = False
        self._follow(consumer, self._changelogs.values())
        consumer.incremental_assign([_from(STATUS_TOPIC, self._status_position)])
        while not self._stopping.is_set() and not self._is_cut_off:
            self._read(consumer)

    def _fail(self, error: Exception) -> None:
        _log.error("feed failed", exc_info=error)
        self.failure = self.problems[""] = (
            f"the server cannot keep its tables up to date after an error of its own ({type(error).__name__}), which "
            "the log has; start it again"
        )
        self._stopping.set()

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(_WAIT_ANSWER_S if self._asked else _WAIT_S)
        if first is not None:
            # Of one topic there are many at a time, and a call for each costs more than all that is done with it.
            for topic, messages in itertools.groupby((first, *consumer.consume(_BATCH, 0)), Message.topic):
                found = self._changelogs.get(topic or "")
                for other in messages if found is None else found.take(messages):
                    self._take(other)
            for changelog in self._changelogs.values():
                if changelog.changes:
                    self._hand_on(changelog)
        if time.monotonic() - self._looked >= _LOOK_S:
            self._look(consumer)
        self._ask_ends()
        for changelog in self._changelogs.values():
            if not changelog.is_loaded and changelog.is_read:
                self._in_loop(self._catalogue.loaded, changelog.load(self._max_rows.of(changelog.name)))
        if self._status is not None and self._status_end is not None and self._status_position >= self._status_end:
            value, self._status = self._status, None
            self._status_changed(consumer, value)

    def _take(self, message: Message) -> None:
        """Anything but a row."""
        topic = message.topic() or ""
        error = message.error()
        if error is None:
            if topic == STATUS_TOPIC:
                self._status, self._status_position = message.value(), (message.offset() or 0) + 1
                self._status_ms = message.timestamp()[1]
        elif error.code() == KafkaError._PARTITION_EOF:
            self.problems.pop(topic, None)
            # The end may be behind the last record: markers and what compaction took have offsets too.
            if (changelog := self._changelogs.get(topic)) is not None:
                changelog.position = max(changelog.position, message.offset() or 0)
            elif topic == STATUS_TOPIC:
                self._status_position = max(self._status_position, message.offset() or 0)
        elif error.code() in REFUSED:
            self._refused(topic, error)

    def _hand_on(self, changelog: Changelog) -> None:
        changes, changelog.changes = changelog.changes, []
        for at in range(0, len(changes), _SLICE):
            some = changes[at : at + _SLICE]
            self._in_loop(self._catalogue.changed, changelog.generation, changelog.name, some)

    def _status_changed(self, consumer: Consumer, value: bytes) -> None:
        try:
            status = decode_status(value)
        except LiveboardError as error:
            _log.error("status that cannot be read", extra={"reason": str(error)})
            return
        followed: dict[str, Changelog] = {}
        for generation, record in status.generations.items():
            if record.state not in FOLLOWED:
                continue
            for name, columns in record.tables.items():
                topic = changelog_topic(generation, name)
                changelog = self._changelogs.get(topic) or Changelog(topic, generation, name, columns)
                if record.state is not State.BUILDING and changelog.complete_at is None:
                    changelog.complete_at = record.complete_at.get(name, 0)
                followed[topic] = changelog
        for topic in self._changelogs.keys() - followed.keys() - {CONTROL_CHANGELOG}:
            del self._changelogs[topic]
            self._asked.pop(topic, None)
            self.problems.pop(topic, None)
            consumer.incremental_unassign([TopicPartition(topic, 0)])
        self._follow(consumer, [log for topic, log in followed.items() if topic not in self._changelogs])
        self._board, self.trouble = status, ""
        self._show(status)

    def _show(self, status: BoardStatus) -> None:
        self._shown = status
        self._in_loop(self._catalogue.status_changed, status)

    def _follow(self, consumer: Consumer, changelogs: Collection[Changelog]) -> None:
        if not changelogs:
            return
        # librdkafka takes a second to look for a topic that it has not heard of.
        with contextlib.suppress(KafkaException):
            topics = consumer.list_topics(timeout=_TIMEOUT_S).topics
            for changelog in changelogs:
                if changelog.topic == CONTROL_CHANGELOG and changelog.topic not in topics:
                    changelog.end = 0  # the orchestrator makes this topic with its first control message
        self._changelogs |= {changelog.topic: changelog for changelog in changelogs}
        consumer.incremental_assign([_from(changelog.topic, changelog.position) for changelog in changelogs])

    def _look(self, consumer: Consumer) -> None:
        """How far behind the changelogs the tables are, and whether anyone keeps the status."""
        self.lags = {
            (changelog.generation, changelog.name): max(0, self._known_end(consumer, changelog) - changelog.position)
            for changelog in self._changelogs.values()
        }
        self._looked = time.monotonic()
        is_stale = self._board is not None and time.time() - self._status_ms / 1000 > STALE_AFTER_S
        if (is_stale or self._status_end is None) and time.monotonic() - self._wondered > _WONDER_S:
            self._wonder(consumer)
        if self._board and is_stale:
            stale = gone_stale(self._board, self._status_ms, self.trouble)
            if stale != self._shown:
                _log.warning("pipeline silent", extra={"reason": stale.message})
                self._show(stale)

    def _wonder(self, consumer: Consumer) -> None:
        """Finds out whether it is the connection to Kafka that lets nothing be heard."""
        before = self.trouble
        try:
            consumer.list_topics(STATUS_TOPIC, timeout=_TIMEOUT_S)
            self.trouble = ""
        except KafkaException as error:
            self._is_cut_off = True
            self.trouble = str(self._complaints.unavailable(error.args[0].str()))
        if self.trouble not in ("", before):
            _log.error("kafka unavailable", extra={"reason": self.trouble})
        self._wondered = time.monotonic()

    def _ask_ends(self) -> None:
        """Asks where topics end, of those where it matters, and hears the answers; nobody waits for them."""
        wanted = [log.topic for log in self._changelogs.values() if log.complete_at is not None and log.end is None]
        if self._status_end is None:
            wanted.append(STATUS_TOPIC)
        for topic in wanted:
            asked_at, answer = self._asked.get(topic, (0.0, None))
            if answer is not None and answer.done():
                self._hear_end(topic, answer)
            if answer is None or (answer.done() and time.monotonic() - asked_at >= _ASK_S):
                place = TopicPartition(topic, 0)
                spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
                self._asked[topic] = (time.monotonic(), self._admin.list_offsets({place: spec})[place])

    def _hear_end(self, topic: str, answer: Future[Any]) -> None:
        try:
            end = int(answer.result().offset)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() in REFUSED:
                self._refused(topic, reason)
            return
        del self._asked[topic]
        self.problems.pop(topic, None)
        if topic == STATUS_TOPIC:
            self._status_end = end
        else:
            self._changelogs[topic].end = end

    def _known_end(self, consumer: Consumer, changelog: Changelog) -> int:
        found = consumer.get_watermark_offsets(TopicPartition(changelog.topic, 0), cached=True)
        return int(found[1]) if found else 0

    def _refused(self, topic: str, error: KafkaError) -> None:
        problem = f"cannot read {topic}: {error.str()}"
        if self.problems.get(topic) != problem:
            _log.error("refused", extra={"topic": topic, "reason": error.str()})
        self.problems[topic] = problem

    def _in_loop(self, act: Callable[..., None], *arguments: Any) -> None:
        """Has the event loop do it, in order; waits while the loop has enough to do."""
        while not self._ahead.acquire(timeout=_WAIT_S):
            if self._stopping.is_set():
                return
        self.loop.call_soon_threadsafe(self._act, act, arguments)

    def _act(self, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            act(*arguments)
        except Exception as error:
            self._fail(error)
        finally:
            self._ahead.release()


def _from(topic: str, position: int) -> TopicPartition:
    return TopicPartition(topic, 0, position or OFFSET_BEGINNING)
