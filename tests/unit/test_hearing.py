"""B12, B13, B15: what becomes of control messages, in every situation that the board can be in."""

from __future__ import annotations

import pytest

from liveboard.contract.board import Wiring
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import BoardStatus, GenerationRecord, Request, State
from liveboard.kafka.trouble import KafkaUnavailable
from liveboard.orchestrator.control import Message
from liveboard.orchestrator.hearing import Verdict, heard, on_request

LIVE = Wiring({"users": "live"}, {})
PENDING = Wiring({"users": "pending"}, {})
BOARD = BoardStatus(
    sources=("users",), live="g1", generations={"g1": GenerationRecord(state=State.LIVE, wiring=LIVE, tables={})}
)
BUSY = BoardStatus(
    sources=("users",),
    live="g1",
    generations=BOARD.generations,
    request=Request(PENDING, 0, 3, "pending", timestamp_text(3)),
    control={"0": 4},
)


def message(offset: int, topic: str, partition: int = 0) -> Message:
    return Message(partition, offset, timestamp_text(offset), topic.encode())


def judge(message: Message, now: Wiring) -> Wiring:
    """A message is the topic of the users, or what is to be added to the one before."""
    if message.text == "bad":
        raise LiveboardError("it is bad")
    text = message.text or ""
    return Wiring({"users": now.topics["users"] + text if text.startswith("+") else text}, {})


def words(verdicts: list[Verdict]) -> list[tuple[str, str, str]]:
    return [(verdict.message.place, verdict.word, verdict.reason) for verdict in verdicts]


def test_the_newest_valid_message_is_carried_out() -> None:
    messages = [message(4, "a"), message(5, "bad"), message(6, "b"), message(0, "bad", 1)]
    status, verdicts = heard(BOARD, LIVE, messages, judge)
    assert words(verdicts) == [
        ("0-5", "rejected", "it is bad"),
        ("1-0", "rejected", "it is bad"),
        ("0-4", "superseded", "by 0-6"),
        ("0-6", "building", ""),
    ]
    assert status.request == Request(Wiring({"users": "b"}, {}), 0, 6, "b", timestamp_text(6))
    assert status.control == {"0": 7, "1": 1}


def test_b36_messages_of_one_burst_add_up() -> None:
    status, verdicts = heard(BOARD, LIVE, [message(4, "+a"), message(5, "bad"), message(6, "+b")], judge)
    assert [verdict.word for verdict in verdicts] == ["rejected", "superseded", "building"]
    assert status.request
    assert status.request.wiring == Wiring({"users": "live+a+b"}, {})


def test_messages_that_are_all_refused_change_nothing_but_how_far_was_read() -> None:
    status, _ = heard(BUSY, PENDING, [message(4, "bad")], judge)
    assert status.request == BUSY.request
    assert status.control == {"0": 5}


def test_a_newer_message_supersedes_the_one_that_is_carried_out() -> None:
    status, verdicts = heard(BUSY, PENDING, [message(4, "b")], judge)
    assert words(verdicts) == [("0-3", "superseded", "by 0-4"), ("0-4", "building", "")]
    assert verdicts[0].message == message(3, "pending")
    assert status.request
    assert status.request.offset == 4


def test_what_is_being_built_is_not_built_twice() -> None:
    status, verdicts = heard(BUSY, PENDING, [message(4, "pending")], judge)
    assert words(verdicts) == [("0-4", "ignored", "this wiring is being built already")]
    assert status.request == BUSY.request


def test_the_live_wiring_is_ignored_and_ends_what_is_being_built() -> None:
    status, verdicts = heard(BUSY, PENDING, [message(4, "live")], judge)
    assert words(verdicts) == [("0-3", "superseded", "by 0-4"), ("0-4", "ignored", "this wiring is live already")]
    assert status.request is None
    assert status.applied == LIVE


def test_nobody_is_told_about_a_request_that_is_not_there() -> None:
    assert on_request(BOARD, "applied") == []
    assert words(on_request(BUSY, "failed", "why")) == [("0-3", "failed", "why")]


def test_while_kafka_does_not_answer_there_is_no_verdict() -> None:
    def unanswered(message: Message, now: Wiring) -> Wiring:
        raise KafkaUnavailable("nobody is there")

    with pytest.raises(KafkaUnavailable):
        heard(BOARD, LIVE, [message(4, "a")], unanswered)
