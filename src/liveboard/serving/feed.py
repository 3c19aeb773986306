"""The thread that follows the status topic and the changelogs of every generation that is built, live or retiring."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from liveboard.config.values import RowCaps
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import BoardStatus
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import REFUSED
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.changelogs import Changelog, Changelogs
from liveboard.serving.feed_health import FeedHealth
from liveboard.serving.handover import Handover
from liveboard.serving.saved import Saved
from liveboard.serving.snapshots import Snapshots
from liveboard.serving.status_topic import StatusTopic
from liveboard.serving.topic_ends import TopicEnds, asking

_BATCH = 500
_SLICE = 500
_WAIT_S = 0.2
_WAIT_ANSWER_S = 0.005
_LOOK_S = 1.0
_TIMEOUT_S = 1.0
_WONDER_S = 3.0

_log = logging.getLogger(__name__)


class Feed:
    """Fills a catalogue in an event loop.

    A broker that is away or a topic that does not exist is waited for, and the tables stay as they are.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
        names: Names,
        catalogue: Catalogue,
        loop: asyncio.AbstractEventLoop,
        max_rows: RowCaps | None = None,
        saved: Saved | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self.health = FeedHealth()
        self.lags: dict[tuple[str | None, str], int] = {}
        """How many records each table is behind its changelog, looked at now and then."""
        self.loop = loop
        self._names = names
        self._client_config = client_config
        self._complaints = trouble.Complaints(client_config)
        self._catalogue = catalogue
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
        self._changelogs = Changelogs(names)
        self._status = StatusTopic()
        self._saved = saved or Saved()
        self._snapshots = snapshots or Snapshots(None)
        self._day_s = time.time() - time.monotonic()
        self._looked = 0.0
        self._wondered = 0.0
        self._is_cut_off = False
        self._stopping = threading.Event()
        self._handover = Handover(loop, self._stopping, self._crash)
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    async def stop(self) -> None:
        """Ends the thread."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                consumer = Consumer(self._config)
                try:
                    self._read_on(consumer)
                finally:
                    consumer.close()
        except Exception as error:
            self._crash(error)

    def _crash(self, error: Exception) -> None:
        self.health.crashed(error)
        self._stopping.set()

    def _read_on(self, consumer: Consumer) -> None:
        """Reads from where the last client was, until this one gets no answer: the next may have better certificates.

        A client uses for ever those that it began with.
        """
        self._ends = TopicEnds(asking(self._client_config))
        self._complaints.forget()
        self._is_cut_off = False
        self._assign(consumer, self._changelogs)
        consumer.incremental_assign([_from(self._names.status, self._status.position)])
        self._assign_saved(consumer)
        while not self._stopping.is_set() and not self._is_cut_off:
            self._read(consumer)

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(_WAIT_ANSWER_S if self._ends.is_asking else _WAIT_S)
        if first is not None:
            # Of one topic there are many at a time, and a call for each costs more than all that is done with it.
            for topic, messages in itertools.groupby((first, *consumer.consume(_BATCH, 0)), Message.topic):
                found = self._changelogs.get(topic or "")
                for other in messages if found is None else found.take(messages):
                    self._take(other)
            for changelog in self._changelogs:
                if changelog.changes:
                    self._hand_on(changelog)
        if time.monotonic() - self._looked >= _LOOK_S:
            self._look(consumer)
        self._hear_ends()
        for changelog in self._changelogs:
            if not changelog.is_loaded and changelog.is_read:
                self._handover.do(self._catalogue.loaded, changelog.load(self._max_rows.of(changelog.name)))
        if due := self._snapshots.due(self._changelogs):
            self._handover.do(
                self._snapshot,
                due.generation,
                due.name,
                due.topic,
                self._topic_ids([due]).get(due.topic, ""),
                due.position,
            )
        if status := self._status.news():
            self._follow(consumer, status)
        elif status := self._status.caught_up(self._now_s()):
            self._handover.do(self._catalogue.status_changed, status)

    def _take(self, message: Message) -> None:
        """Anything but a row."""
        topic, offset = message.topic() or "", message.offset() or 0
        error = message.error()
        if error is None:
            if topic == self._names.status:
                self._status.take(message.value(), offset, message.timestamp()[1], self._now_s())
            elif topic == self._names.saved:
                self._saved.position = offset + 1
                self._handover.do(self._saved.take, message.key() or b"", message.value(), offset)
        elif topic == self._names.saved:
            # Tables are up to date without it.
            self._handover.do(self._saved.heard, error.code() in REFUSED)
        elif error.code() == KafkaError._PARTITION_EOF:
            self.health.allowed(topic)
            # The end may be behind the last record: markers and what compaction took have offsets too.
            read = self._status if topic == self._names.status else self._changelogs.get(topic)
            if read is not None:
                read.position = max(read.position, offset)
        elif error.code() in REFUSED:
            self.health.refused(topic, error.str())

    def _hand_on(self, changelog: Changelog) -> None:
        changes, changelog.changes = changelog.changes, []
        if changelog.generation is not None:
            self._status.wrote(changes[-1][1], self._now_s())
        for at in range(0, len(changes), _SLICE):
            some = changes[at : at + _SLICE]
            self._handover.do(self._catalogue.changed, changelog.generation, changelog.name, some)

    def _follow(self, consumer: Consumer, status: BoardStatus) -> None:
        new, left = self._changelogs.follow(status)
        for changelog in left:
            self.health.allowed(changelog.topic)
            consumer.incremental_unassign([TopicPartition(changelog.topic, 0)])
        if new:
            self._begin(consumer, [changelog for changelog in new if changelog.generation is not None])
            self._assign(consumer, new)
        self.health.answered()
        self._handover.do(self._catalogue.status_changed, status)

    def _begin(self, consumer: Consumer, changelogs: Sequence[Changelog]) -> None:
        """Begins with the snapshots that there are, instead of the topics' beginnings."""
        if not self._snapshots.is_on:
            return
        followed = {changelog.topic for changelog in self._changelogs}
        self._snapshots.keep_only(followed, re.compile(rf"{re.escape(self._names.board)}\.g\d+\."))
        kept = [changelog for changelog in changelogs if self._snapshots.has(changelog.topic)]
        ids = self._topic_ids(kept)
        for changelog in kept:
            with contextlib.suppress(KafkaException):
                place = TopicPartition(changelog.topic, 0)
                if changelog.topic in ids and (ends := consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)):
                    self._snapshots.load(changelog, ids[changelog.topic], *ends)

    def _topic_ids(self, changelogs: Sequence[Changelog]) -> dict[str, str]:
        """As far as they can be known."""
        try:
            return (
                Admin(self._client_config).topic_ids(changelog.topic for changelog in changelogs) if changelogs else {}
            )
        except LiveboardError as error:
            _log.warning("no snapshots", extra={"reason": str(error)})
            return {}

    def _snapshot(self, generation: str, name: str, topic: str, topic_id: str, offset: int) -> None:
        self._snapshots.write(self._catalogue.get(generation, name), topic, topic_id, offset)

    def _assign(self, consumer: Consumer, changelogs: Iterable[Changelog]) -> None:
        # librdkafka takes a second to look for a topic that it has not heard of.
        with contextlib.suppress(KafkaException):
            topics = consumer.list_topics(timeout=_TIMEOUT_S).topics
            for changelog in changelogs:
                if changelog.topic == self._names.verdicts and changelog.topic not in topics:
                    changelog.end = 0  # the orchestrator makes this topic with its first control message
        consumer.incremental_assign([_from(changelog.topic, changelog.position) for changelog in changelogs])

    def _assign_saved(self, consumer: Consumer) -> None:
        topic = self._names.saved
        # If Kafka refuses to let us read the topic, or nobody has kept anything yet, there is no record to wait for.
        with contextlib.suppress(KafkaException):
            if error := consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error:
                self._handover.do(self._saved.heard, error.code() in REFUSED)
        consumer.incremental_assign([_from(topic, self._saved.position)])

    def _look(self, consumer: Consumer) -> None:
        """How far behind the changelogs the tables are, and whether anyone keeps the status."""
        self.lags = {
            (changelog.generation, changelog.name): max(0, self._known_end(consumer, changelog) - changelog.position)
            for changelog in self._changelogs
        }
        self._looked = time.monotonic()
        if self._status.is_doubtful(self._now_s()) and time.monotonic() - self._wondered > _WONDER_S:
            self._wonder(consumer)
        if self.health.outage:
            shown = self._status.away(self.health.out_since, self.health.outage)
        else:
            shown = self._status.back(self._now_s()) or self._status.stale(self._now_s(), "")
        if shown:
            _log.warning("board out of reach", extra={"phase": shown.phase, "reason": shown.message})
            self._handover.do(self._catalogue.status_changed, shown)

    def _wonder(self, consumer: Consumer) -> None:
        """Finds out whether nothing is heard because Kafka cannot be reached."""
        try:
            consumer.list_topics(self._names.status, timeout=_WONDER_S)
            self.health.answered()
        except KafkaException as error:
            self._is_cut_off = True
            self.health.unanswered(str(self._complaints.unavailable(error.args[0].str())), time.time())
        self._wondered = time.monotonic()

    def _now_s(self) -> float:
        """The time of day by the clock as it was at the start: whoever sets it later makes no status older."""
        return self._day_s + time.monotonic()

    def _hear_ends(self) -> None:
        """Asks where those topics end whose ends matter now."""
        wanted: dict[str, Changelog | StatusTopic] = {
            log.topic: log for log in self._changelogs if log.complete_at is not None and log.end is None
        }
        if self._status.end is None:
            wanted[self._names.status] = self._status
        for topic, end in self._ends.hear(wanted).items():
            if not isinstance(end, KafkaError):
                self.health.allowed(topic)
                wanted[topic].end = end
            elif end.code() in REFUSED:
                self.health.refused(topic, end.str())
            elif topic == self._names.verdicts and end.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                wanted[topic].end = 0

    def _known_end(self, consumer: Consumer, changelog: Changelog) -> int:
        found = consumer.get_watermark_offsets(TopicPartition(changelog.topic, 0), cached=True)
        return int(found[1]) if found else 0


def _from(topic: str, position: int) -> TopicPartition:
    return TopicPartition(topic, 0, position or OFFSET_BEGINNING)
