"""What is known of the sources' Avro schemas, and how the rest is learnt from the registry.

A query knows the schemas that were known when it was planned, and ends at the first record of another one. The registry
is then asked for it, and the query is started again. Schemas never change. So what was learnt is kept in a file, and a
board can be started while the registry is away.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path

from liveboard.backoff import Backoff
from liveboard.contract.board import Source
from liveboard.contract.errors import LiveboardError
from liveboard.kafka.registry import Registered, Registry, RegistryUnavailable, value_subject
from liveboard.pipeline import avro_schema
from liveboard.pipeline.avro_format import UnknownSchema, unknown_schema
from liveboard.pipeline.avro_schema import AvroSchemaError, AvroSchemas, AvroType

RegisteredById = dict[int, Registered | None]
"""Schemas by id; None where the registry says that there is no such one."""

_FIRST_ANSWER_S = 2.0
# A replica of the registry may hear of a new schema later than the reader of its first record.
_LOOKS, _LOOK_AGAIN_S = 3, 1.0


class Schemas:
    """The schemas by topic, and what the registry is being asked for."""

    def __init__(self, sources: Iterable[Source], registry: Registry | None, file: Path, log: Callable[[str], None]):
        self._registry = registry
        self._file = file
        self._log = log
        self._only = {s.name: _of_file(s.avro_schema_file) for s in sources if s.avro_schema_file}
        self._known: dict[str, RegisteredById] = _kept(file, registry.url) if registry else {}
        self._heard_of: set[str] = set()
        self._missing: set[UnknownSchema] = set()
        self._keeping = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "registry")
        self._asking: Future[dict[str, RegisteredById]] | None = None
        self._backoff = Backoff()
        self._since = 0.0
        self._said = ""

    def of(self, source: Source) -> AvroSchemas:
        """What is known of a source's schemas now."""
        if source.name in self._only:
            return AvroSchemas(only=self._only[source.name])
        self._hear_of(source.topic)
        by_id: dict[int, AvroType] = {}
        unusable: dict[int, str] = {}
        for schema_id, registered in self._known.get(source.topic, {}).items():
            try:
                by_id[schema_id] = _parsed(registered)
            except AvroSchemaError as error:
                unusable[schema_id] = str(error)
        return AvroSchemas(by_id, unusable)

    def learn(self, text: str) -> bool:
        """Whether a query's error is that it does not know a schema; then the registry is asked for it."""
        unknown = unknown_schema(text)
        if not unknown or not self._registry:
            return False
        if unknown.id not in self._known.get(unknown.topic, {}):
            self._log(f"asking {self._registry.url} for the Avro schema {unknown.id} of '{unknown.topic}'")
            self._since = self._since or time.time()
            self._missing.add(unknown)
        return True

    @property
    def waiting(self) -> bool:
        """Whether something is asked for; queries that need it are started again when it is not."""
        return bool(self._missing)

    @property
    def problem(self) -> str:
        """Since when and why the registry gives no answer; empty while it is just being asked."""
        if not self._missing or not self._said:
            return ""
        ids = ", ".join(str(schema_id) for schema_id in sorted({each.id for each in self._missing}))
        since = datetime.fromtimestamp(self._since, UTC)
        return f"waiting for the Avro schema {ids} since {since:%H:%M:%S} UTC: {self._said}"

    def advance(self) -> None:
        """Asks for what is missing, and takes the answer; returns at once."""
        if self._asking and self._asking.done():
            asked, self._asking = self._asking, None
            self._take(asked)
        if self._missing and not self._asking and self._backoff.over:
            self._asking = self._thread.submit(self._ask, frozenset(self._missing))

    def close(self) -> None:
        """Asks for nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _hear_of(self, topic: str) -> None:
        """Asks for all schemas of a topic, when it is met for the first time; waits a moment for the answer."""
        if not self._registry or topic in self._heard_of:
            return
        self._heard_of.add(topic)
        asked = self._thread.submit(self._all_of, topic)
        wait([asked], _FIRST_ANSWER_S)
        # Later than that, or where it fails, the first record that needs one asks again.
        with contextlib.suppress(RegistryUnavailable):
            if asked.done():
                self._keep({topic: asked.result()})

    def _all_of(self, topic: str) -> RegisteredById:
        """The versions of the topic's subject, and what an earlier run has asked for in vain."""
        assert self._registry
        missing = [schema_id for schema_id, found in self._known.get(topic, {}).items() if not found]
        answer = {schema_id: self._registry.schema(schema_id) for schema_id in missing}
        return {**answer, **self._registry.versions(value_subject(topic))}

    def _ask(self, missing: Iterable[UnknownSchema]) -> dict[str, RegisteredById]:
        assert self._registry
        answers: dict[str, RegisteredById] = {}
        for topic, schema_id in missing:
            # The others as well: with one new version there are often more.
            if topic not in answers:
                answers[topic] = dict(self._registry.versions(value_subject(topic)))
            answer = answers[topic]
            for look in range(_LOOKS):
                if answer.get(schema_id):
                    break
                if look:
                    time.sleep(_LOOK_AGAIN_S)
                answer[schema_id] = self._registry.schema(schema_id)
        return answers

    def _take(self, asked: Future[dict[str, RegisteredById]]) -> None:
        try:
            answers = asked.result()
        except RegistryUnavailable as error:
            self._backoff.failed()
            if str(error) != self._said:
                self._said = str(error)
                self._log(self.problem)
            return
        self._keep(answers)
        self._missing = {each for each in self._missing if each.id not in self._known.get(each.topic, {})}
        self._backoff.reset()
        self._since, self._said = 0.0, ""

    def _keep(self, answers: Mapping[str, RegisteredById]) -> None:
        assert self._registry
        with self._keeping:
            for topic, answer in answers.items():
                # Another dictionary, because plans are made of the old one on other threads.
                self._known = {**self._known, topic: {**self._known.get(topic, {}), **answer}}
            _write(self._file, self._registry.url, self._known)


def file_texts(sources: Iterable[Source]) -> dict[str, str]:
    """What the schema files of sources hold, by source."""
    return {source.name: _read(source.avro_schema_file) for source in sources if source.avro_schema_file}


def _of_file(path: str) -> AvroType:
    try:
        return avro_schema.parse(_read(path))
    except AvroSchemaError as error:
        raise LiveboardError(f"avro_schema_file: {path}: {error}") from None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise LiveboardError(f"avro_schema_file: expected an Avro schema in {path}, found: {found}") from None


def _parsed(registered: Registered | None) -> AvroType:
    if not registered:
        raise AvroSchemaError("the registry has no such schema")
    if registered.kind != "AVRO":
        raise AvroSchemaError(f"the registry has a schema of type {registered.kind}")
    return avro_schema.parse(registered.schema, registered.references)


def _kept(file: Path, url: str) -> dict[str, RegisteredById]:
    """What an earlier run has learnt from the same registry."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        topics = kept["topics"] if kept["url"] == url else {}
        return {
            topic: {
                int(schema_id): found and Registered(found[0], found[1], found[2], tuple(found[3]))
                for schema_id, found in schemas.items()
            }
            for topic, schemas in topics.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _write(file: Path, url: str, known: Mapping[str, RegisteredById]) -> None:
    new = file.with_suffix(".new")
    with contextlib.suppress(OSError):
        new.write_text(json.dumps({"url": url, "topics": known}), encoding="utf-8")
        new.replace(file)
