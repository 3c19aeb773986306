"""Sample data: the same for the same options, and each option does what it says."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from liveboard.config import default_board
from liveboard.contract.board import Board
from liveboard.contract.errors import LiveboardError
from liveboard.sample import producing
from liveboard.sample.producing import Event, produce
from liveboard.sample.users import BROKEN, Options, events, options_for


def _all(**chosen: Any) -> list[Event]:
    return list(events(options_for(default_board(), **chosen)))


def _rows(found: list[Event], topic: str) -> list[dict[str, Any]]:
    return [json.loads(event.value or b"") for event in found if event.topic == topic and not event.broken]


OPTIONS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "count": st.integers(1, 300),
        "users": st.integers(1, 50),
        "late_users": st.floats(0, 1),
        "bad": st.floats(0, 0.3),
        "hot_keys": st.integers(0, 60),
    }
)


@given(OPTIONS)
def test_the_same_options_give_the_same_events(chosen: dict[str, Any]) -> None:
    found = _all(**chosen)
    assert len(found) == chosen["count"]
    assert found == _all(**chosen)


@given(OPTIONS)
def test_every_event_is_read_or_refused_as_it_should_be(chosen: dict[str, Any]) -> None:
    board = default_board()
    by_topic = {source.topic: source for source in board.sources.values()}
    for event in _all(**chosen):
        if event.broken:
            with pytest.raises(oracle.Refused):
                oracle.read(by_topic[event.topic], _record(event))
        else:
            assert None not in oracle.read(by_topic[event.topic], _record(event)).values()


def _record(event: Any) -> oracle.Record:
    return oracle.Record(event.topic, 0, 0, 0, event.value)


def test_another_seed_gives_other_events() -> None:
    assert _all(seed=1, count=50) != _all(seed=2, count=50)


def test_more_events_begin_with_the_same_ones() -> None:
    assert _all(count=500)[:100] == _all(count=100)


def test_bad_events_are_of_every_kind_and_change_no_good_one() -> None:
    found = _all(count=5_000, bad=0.2)
    assert {event.broken for event in found} == {"", *BROKEN}
    assert 0.17 < sum(bool(event.broken) for event in found) / len(found) < 0.23
    good = [event for event in found if not event.broken]
    assert good == _all(count=len(good))


def test_too_large_is_one_byte_over_the_limit_of_both_sources() -> None:
    board = default_board()
    users = replace(board.sources["users"], max_value_bytes=500)
    small = replace(board, sources={**board.sources, "users": users})
    options = options_for(small, count=500, bad=0.5)
    sizes = {len(event.value or b"") for event in events(options) if event.broken == "too large"}
    assert sizes == {board.sources["accounts"].max_value_bytes + 1}


def test_there_are_as_many_users_as_asked_for_and_they_change() -> None:
    rows = _rows(_all(count=4_000, users=30), "users")
    emails: dict[str, list[str]] = {}
    for row in rows:
        emails.setdefault(row["userId"], []).append(row["email"])
    assert len(emails) == 30
    assert len(rows) > 100
    assert all(first != second for seen in emails.values() for first, second in itertools.pairwise(seen))


def test_balances_wander_and_are_overdrawn_now_and_then() -> None:
    balances: dict[tuple[str, str], list[float]] = {}
    for row in _rows(_all(count=3_000, users=5), "accounts"):
        balances.setdefault((row["userId"], row["accountType"]), []).append(row["balance"])
    every = [balance for seen in balances.values() for balance in seen]
    assert 0.005 < sum(balance < 0 for balance in every) / len(every) < 0.02
    for all_seen in balances.values():
        seen = [balance for balance in all_seen if balance >= 0]
        steps = [abs(after - before) / abs(seen[0]) for before, after in itertools.pairwise(seen)]
        assert max(steps) < 0.5
        assert len(set(seen)) > len(seen) / 2


@pytest.mark.parametrize("late", [0.0, 0.3, 1.0])
def test_late_users_come_after_their_first_accounts(late: float) -> None:
    first: dict[str, str] = {}
    announced = set()
    for event in _all(count=20_000, users=500, late_users=late):
        user = json.loads(event.value or b"")["userId"]
        first.setdefault(user, event.topic)
        if event.topic == "users":
            announced.add(user)
    assert announced == first.keys()
    share = sum(topic == "accounts" for topic in first.values()) / len(first)
    assert abs(share - late) < 0.07


@pytest.mark.parametrize("hot_keys", [1, 3])
def test_hot_keys_get_half_of_all_accounts(hot_keys: int) -> None:
    rows = _rows(_all(count=20_000, users=500, hot_keys=hot_keys), "accounts")
    most = Counter(row["userId"] for row in rows).most_common(hot_keys + 1)
    share = sum(count for _, count in most[:hot_keys]) / len(rows)
    assert 0.45 < share < 0.6
    assert most[hot_keys][1] < len(rows) / 20


def test_topics_are_those_of_the_board() -> None:
    board = default_board()
    renamed = {name: replace(source, topic=f"our-{name}") for name, source in board.sources.items()}
    found = events(options_for(replace(board, sources=renamed), count=100))
    assert {event.topic for event in found} == {"our-users", "our-accounts"}


def test_another_board_is_refused_with_what_was_expected_and_found() -> None:
    board = default_board()
    only_users = Board(sources={"users": board.sources["users"]})
    with pytest.raises(LiveboardError, match=r"board\.sources\.accounts: expected .*, found only users"):
        options_for(only_users)
    other = replace(board.sources["users"], schema="userId bigint, name string")
    with pytest.raises(LiveboardError, match='found the schema "userId bigint, name string"'):
        options_for(replace(board, sources={**board.sources, "users": other}))


class FakeSender:
    """Remembers when each event was sent."""

    sent: list[float]

    def __init__(self, client_config: dict[str, str]) -> None:
        FakeSender.sent = []

    @property
    def taken(self) -> int:
        return len(self.sent)

    def send(self, event: Event, stopping: threading.Event) -> None:
        self.sent.append(time.monotonic())

    def finish(self) -> None:
        pass


def test_events_are_sent_at_an_even_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producing, "_Sender", FakeSender)
    started = time.monotonic()
    assert produce(events(Options(count=100)), 200, {}, threading.Event()) == 100
    passed = time.monotonic() - started
    assert 0.45 < passed < 2
    halfway = FakeSender.sent[50] - started
    assert 0.2 < halfway < passed


def test_sending_ends_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producing, "_Sender", FakeSender)
    stopping = threading.Event()

    def until_ten(events_: Any) -> Any:
        for number, event in enumerate(events_):
            if number == 10:
                stopping.set()
            yield event

    assert produce(until_ten(events(Options())), 0, {}, stopping) == 10
