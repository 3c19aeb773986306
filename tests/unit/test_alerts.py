"""Alerts without Kafka: what conditions mean, when rows are told, and when a stream tells nothing new."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from filtering import COLUMNS, FILTERS, ROWS, encoded
from hypothesis import given, settings
from hypothesis import strategies as st

from liveboard.alerts.delivery import Delivery
from liveboard.alerts.predicate import predicate, without_case
from liveboard.alerts.receivers import NotReceived, signature
from liveboard.alerts.settling import Settling
from liveboard.alerts.watch import AlertChange, Watch
from liveboard.config import AlertSettings, Duration
from liveboard.contract.changelog import encode_row, timestamp_text
from liveboard.contract.schema import TS, Column
from liveboard.serving.mirror import Database, Mirror
from liveboard.serving.query import compile_query

USERS = (Column("userId", "string"), Column("age", "bigint"), TS)
DATABASE = Database()
NOW = 1_800_000_000_000


@settings(max_examples=200)
@given(st.lists(ROWS, min_size=1, max_size=12), FILTERS)
def test_b42_a_condition_means_the_same_as_in_a_window(rows: list[tuple[Any, ...]], filter: Any) -> None:
    values = [encoded(row) for row in rows]
    matches = predicate(COLUMNS, filter)
    mirror = Mirror(DATABASE, COLUMNS)
    mirror.load(0, values)
    found = mirror.positions(compile_query(COLUMNS, None, filter, None)).to_pylist()
    mirror.close()
    assert [place for place, value in enumerate(values) if matches(orjson.loads(value))] == found


def test_b42_every_character_is_without_case_as_it_is_in_the_server() -> None:
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    cursor = DATABASE.cursor()
    lowered = cursor.execute("SELECT list_transform(?, lambda x: lower(x))", [every]).fetchall()[0][0]
    assert [
        character for character, theirs in zip(every, lowered, strict=True) if without_case(character) != theirs
    ] == []


def _watch(raised: set[str] | None = None, now: list[int] | None = None, **chosen: Any) -> Watch:
    alert = AlertSettings(name="minor", table="users_ui", when=(("age", "<", 18),), **chosen)
    clock = now or [NOW]
    return Watch(alert, USERS, raised if raised is not None else set(), lambda: clock[0])


def _row(age: int | None) -> list[Any]:
    return ["u", age, timestamp_text(NOW)]


def _told(events: list[AlertChange]) -> list[tuple[str, str]]:
    return [(event.key, event.state) for event in events]


CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "null", 10, 17, 18, 40])), max_size=20)


@given(st.sets(st.sampled_from("abcd")), CHANGES, CHANGES)
def test_b42_what_is_gathered_is_told_as_it_ended_and_then_every_crossing(
    raised: set[str], before: list[Any], after: list[Any]
) -> None:
    def row(age: Any) -> list[Any] | None:
        return None if age is None else _row(None if age == "null" else age)

    def is_minor(age: Any) -> bool:
        return isinstance(age, int) and age < 18

    watch = _watch(set(raised))
    for key, age in before:
        assert watch.take(key, row(age), NOW) == []
    minor = {key for key, age in dict(before).items() if is_minor(age)}
    expected = {(key, "cleared") for key in raised - minor} | {(key, "raised") for key in minor - raised}
    assert set(_told(watch.settle())) == expected
    told, crossings = [], []
    for key, age in after:
        told += _told(watch.take(key, row(age), NOW))
        if is_minor(age) != (key in minor):
            minor ^= {key}
            crossings.append((key, "raised" if key in minor else "cleared"))
    assert told == crossings
    assert watch.raised == minor


def test_b42_an_event_has_the_row_by_name() -> None:
    watch = _watch()
    watch.settle()
    [event] = watch.take("0-1", _row(10), NOW - 5)
    assert orjson.loads(event.encode()) == {
        "alert": "minor",
        "table": "users_ui",
        "key": "0-1",
        "state": "raised",
        "ts": timestamp_text(NOW),
        "row": {"userId": "u", "age": 10, "ts": timestamp_text(NOW)},
    }
    assert event.since_ms == NOW - 5
    [event] = watch.take("0-1", None, NOW)
    assert orjson.loads(event.encode())["row"] is None


def test_b42_for_waits_until_a_row_has_matched_that_long() -> None:
    now = [NOW]
    watch = _watch(now=now, for_=Duration(10))
    watch.settle()
    assert watch.take("a", _row(10), NOW) == watch.take("b", _row(10), NOW + 1_000) == []
    now[0] = NOW + 9_999
    assert watch.due() == []
    assert watch.take("a", _row(11), NOW + 9_999) == []
    now[0] = NOW + 10_000
    assert _told(watch.due()) == [("a", "raised")]
    # Before its time is over it does not count, and the next time begins anew.
    assert watch.take("b", _row(18), NOW + 10_500) == []
    assert watch.take("b", _row(10), NOW + 10_600) == []
    now[0] = NOW + 12_000
    assert watch.due() == []
    # One that was long enough, and that we come to only after its end, is told all the same.
    assert _told(watch.take("b", _row(18), NOW + 30_000)) == [("b", "raised"), ("b", "cleared")]
    assert _told(watch.take("a", _row(18), NOW + 30_000)) == [("a", "cleared")]
    assert watch.due() == []


def test_b42_for_counts_from_the_rows_last_change_after_a_restart_and_goes_on_over_a_swap() -> None:
    now = [NOW]
    watch = _watch(now=now, for_=Duration(10))
    watch.take("a", _row(10), NOW - 20_000)
    watch.take("b", _row(10), NOW - 2_000)
    assert _told(watch.settle()) == [("a", "raised")]
    alert = AlertSettings(name="minor", table="users_ui", when=(("age", "<", 18),), for_=Duration(10))
    after_swap = Watch(alert, USERS, watch.raised, lambda: now[0], watch.since)
    for key in ("a", "b", "c"):
        after_swap.take(key, _row(10), NOW)
    assert after_swap.settle() == []
    now[0] = NOW + 8_000
    assert _told(after_swap.due()) == [("b", "raised")]
    now[0] = NOW + 10_000
    assert _told(after_swap.due()) == [("c", "raised")]


def test_b42_what_a_stream_writes_once_more_tells_nothing() -> None:
    watch = _watch()
    watch.settle()
    assert _told(watch.take("a", _row(10), NOW) + watch.take("a", _row(40), NOW)) == [("a", "raised"), ("a", "cleared")]
    watch.unsettle()
    assert watch.take("a", _row(10), NOW) == watch.take("a", _row(40), NOW) == watch.settle() == []


def test_b42_a_stream_is_through_when_its_sources_are_young_or_quiet() -> None:
    now = [0.0]
    settling = Settling(["users_ui", "accounts_ui"], NOW, 10.0, lambda: now[0])
    old, young = encode_row([1, timestamp_text(NOW - 1)]), encode_row([1, timestamp_text(NOW)])
    now[0] = 9.0
    settling.take("accounts_ui", old, NOW)
    settling.take("users_ui", young, NOW - 1)  # written before
    assert not settling.is_over
    now[0] = 12.0
    settling.take("accounts_ui", young, NOW)
    assert not settling.is_over  # its joined rows follow
    now[0] = 13.0
    assert settling.is_over


class Refusing:
    """Takes nothing until it has refused so often."""

    name, at_once = "a receiver", 1

    def __init__(self, times: int, is_final: bool) -> None:
        self.left, self.is_final, self.taken = times, is_final, list[bytes]()

    def send(self, records: Any) -> None:
        if self.left:
            self.left -= 1
            raise NotReceived("it answers 422", self.is_final)
        self.taken += [record.value for record in records]


class Message:
    """A record of the alerts topic."""

    def __init__(self, offset: int, key: bytes, value: bytes | None) -> None:
        self.topic, self.partition = lambda: "liveboard-alerts", lambda: 0
        self.offset, self.key, self.value = lambda: offset, lambda: key, lambda: value


class Patience:
    """An event that nobody sets, and that waits no time."""

    def is_set(self) -> bool:
        return False

    def wait(self, _: float) -> None:
        pass


@pytest.mark.parametrize(
    ("times", "is_final", "taken"), [(9, False, [b"1", b"3"]), (4, True, [b"1", b"3"]), (5, True, [b"3"])]
)
def test_b42_a_receiver_is_waited_for_and_a_record_that_it_refuses_is_given_up(
    times: int, is_final: bool, taken: list[bytes]
) -> None:
    receiver, said, kept = Refusing(times, is_final), list[str](), list[int]()
    delivery = Delivery("minor", receiver, b"", said.append)
    ours, other = orjson.dumps(["minor", "a"]), orjson.dumps(["major", "a"])
    messages: Any = [Message(1, ours, b"1"), Message(2, other, b"2"), Message(3, ours, b"3"), Message(4, ours, None)]
    stopping: Any = Patience()
    delivery.run(iter([messages]), kept.append, stopping)
    assert receiver.taken == taken
    assert kept == [2, 4]
    assert delivery.failures == times
    assert delivery.problem == ""
    assert "it answers 422" in said[0]


def test_b42_a_signature_is_what_others_compute() -> None:
    # printf '{"a":1}' | openssl dgst -sha256 -hmac key
    assert signature(b"key", b'{"a":1}') == "sha256=88a67f24bbcdaed0e6c997404bb79a743baf44c6bab2f4c27328e3009d22e342"
