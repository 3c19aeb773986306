"""What has been told: the alerts topic, which is the whole memory, and the table alerts_ui that follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from confluent_kafka import KafkaException, Producer

from liveboard.alerts.watch import AlertChange
from liveboard.contract.changelog import BY_KEY, encode_row, timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import records_between

DAY_MS = 86_400_000
"""How long readers of the topic have until what was cleared is forgotten there."""
# So that a reader who is behind sees every change all the same.
_TOPIC_CONFIG = {"min.compaction.lag.ms": str(DAY_MS)}
_AT_ONCE = 10_000
# Others can have the board a little later than we were sure to have it: what is late by then is not sent at all.
_TIMEOUT_MS = 3_000
_PATIENCE_S = 30.0


def create_topics(admin: Admin, names: Names) -> None:
    """Creates the alerts topic, and the changelog of alerts_ui, which readers look for once they hear of alerts."""
    admin.create_changelogs([names.alerts], _TOPIC_CONFIG)
    admin.create_changelogs([names.raised])


class AlertMemory:
    """Knows what is raised from what the topic says, and writes what changes: first the topic, then the table.

    What is in the topic has been told, and nothing else has. So a crash makes it tell nothing twice.
    """

    def __init__(self, client_config: Mapping[str, str], names: Names, admin: Admin) -> None:
        self.raised: dict[str, set[str]] = {}
        """The keys of the rows that each alert is raised for."""
        self._names = names
        self._raised_ms: dict[tuple[str, str], int] = {}
        self._cleared_ms: dict[tuple[str, str], int] = {}
        limits: dict[str, Any] = {"enable.idempotence": "true", "message.timeout.ms": str(_TIMEOUT_MS)}
        quiet = {"linger.ms": "5", "log_level": 0, "error_cb": lambda _: None}
        self._producer = Producer({**client_config, **limits, **quiet})
        ends = admin.offsets({names.alerts: 1, names.raised: 1}, "latest")
        rows: set[bytes] = set()
        for message in records_between(client_config, {names.alerts: {}, names.raised: {}}, ends):
            key, value = message.key() or b"", message.value()
            if message.topic() == names.alerts:
                self._remember(key, value, message.timestamp()[1])
            elif value is None:
                rows.discard(key)
            else:
                rows.add(key)
        self._rows = rows

    @property
    def figures(self) -> dict[str, int]:
        """How many rows each alert is raised for."""
        return {alert: len(keys) for alert, keys in self.raised.items()}

    def of(self, alert: str) -> set[str]:
        """The keys of the rows that the alert is raised for; whoever changes them has it written."""
        return self.raised.setdefault(alert, set())

    def write(self, changes: Iterable[AlertChange], is_sure: Callable[[], bool]) -> None:
        """Tells it, in this order; a LiveboardError if Kafka has not taken it all, or if we may not.

        After an error the memory is of no use, and is to be read again.
        """
        changes = list(changes)
        for at in range(0, len(changes), _AT_ONCE):
            some = changes[at : at + _AT_ONCE]
            if not is_sure():
                raise LiveboardError("expected Kafka to confirm that this board is ours, found no answer yet")
            records = [(self._names.alerts, _record_key(change.alert, change.key), change.encode()) for change in some]
            self._send(records)
            newest = {(change.alert, change.key): change for change in some}
            for at_row, change in newest.items():
                self._note(at_row, change.state, change.ts_ms)
            self._send((self._names.raised, _row_key(*at_row), _row(change)) for at_row, change in newest.items())

    def forget_old(self, now_ms: int, is_sure: Callable[[], bool]) -> None:
        """Takes what was cleared a day ago out of the topic, so that it does not grow for ever."""
        old = [at for at, ts_ms in self._cleared_ms.items() if now_ms - ts_ms > DAY_MS][:_AT_ONCE]
        if old and is_sure():
            self._send((self._names.alerts, _record_key(*at), None) for at in old)
            for at in old:
                del self._cleared_ms[at]

    def _remember(self, key: bytes, value: bytes | None, written_ms: int) -> None:
        try:
            alert, row = orjson.loads(key)
            state = orjson.loads(value)["state"] if value else ""
        except (orjson.JSONDecodeError, ValueError, TypeError, KeyError):
            return  # somebody else has written it
        self._note((alert, row), state, written_ms)

    def _note(self, at: tuple[str, str], state: str, ts_ms: int) -> None:
        self._cleared_ms.pop(at, None)
        if state == "raised":
            self.of(at[0]).add(at[1])
            self._raised_ms[at] = ts_ms
            return
        self.of(at[0]).discard(at[1])
        self._raised_ms.pop(at, None)
        if state:
            self._cleared_ms[at] = ts_ms

    def mend_table(self, tables: Mapping[str, str]) -> None:
        """Puts into the table what was told last before a crash, and takes out what was cleared then."""
        wanted = {
            _row_key(*at): _row(AlertChange(at[0], tables.get(at[0], ""), at[1], "raised", ts_ms, ts_ms, None))
            for at, ts_ms in self._raised_ms.items()
        }
        missing = {key: row for key, row in wanted.items() if key not in self._rows}
        changes = missing | dict.fromkeys(self._rows - wanted.keys())
        self._send((self._names.raised, key, row) for key, row in changes.items())
        self._rows.clear()

    def _send(self, records: Iterable[tuple[str, bytes, bytes | None]]) -> None:
        errors: list[str] = []
        try:
            for topic, key, value in records:
                self._producer.produce(
                    topic, value, key, on_delivery=lambda error, _: errors.append(error.str()) if error else None
                )
                self._producer.poll(0)
            left = self._producer.flush(_PATIENCE_S)
        except (KafkaException, BufferError) as error:
            raise LiveboardError(f"cannot write to {self._names.alerts}: {error}") from error
        if left or errors:
            self._producer.purge()
            raise LiveboardError(f"cannot write to {self._names.alerts}: {errors[0] if errors else 'no answer'}")


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return int(time.time() * 1000)


def _record_key(alert: str, key: str) -> bytes:
    return orjson.dumps([alert, key])


def _row_key(alert: str, key: str) -> bytes:
    return BY_KEY.encode() + orjson.dumps(alert) + b"," + orjson.dumps(key)


def _row(change: AlertChange) -> bytes | None:
    if change.state == "cleared":
        return None
    times = timestamp_text(change.since_ms), timestamp_text(change.ts_ms)
    return encode_row([change.alert, change.table, change.key, change.state, *times])
