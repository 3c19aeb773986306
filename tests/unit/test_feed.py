"""What the feed is made of, without Kafka: changelogs, the status, the ends of topics, health, the way to the loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message

from liveboard.contract.board import Wiring
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.names import Names
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import STALE_AFTER_S, BoardStatus, GenerationRecord, Phase, State, back_again
from liveboard.serving.changelogs import Changelog, Changelogs
from liveboard.serving.feed_health import FeedHealth
from liveboard.serving.handover import AHEAD, Handover
from liveboard.serving.status_topic import CAUGHT_UP_AFTER_S, StatusTopic
from liveboard.serving.topic_ends import TopicEnds

NAMES = Names()
USERS = (Column("userId", "string"), TS)
ROW = b'["ada","2026-01-31T09:30:00.000000Z"]'
OTHER = b'["bob","2026-01-31T09:30:01.000000Z"]'
KEPT_S = 1_700_000_000


def record(state: State, **complete_at: int) -> GenerationRecord:
    return GenerationRecord(
        state=state, wiring=Wiring({}, {}), tables={"users_ui": USERS, "final_ui": USERS}, complete_at=complete_at
    )


def board(message: str = "", **generations: GenerationRecord) -> BoardStatus:
    live = next((name for name, record in generations.items() if record.state is State.LIVE), None)
    return BoardStatus(sources=("users",), live=live, generations=generations, phase=Phase.LIVE, message=message)


def messages(*rows: tuple[bytes | None, bytes | None], first: int = 0) -> list[Message]:
    return [Message(topic="t", offset=first + at, key=key, value=value) for at, (key, value) in enumerate(rows)]


def test_a_changelog_is_gathered_and_then_handed_on_change_by_change() -> None:
    changelog = Changelog("t", "g1", "users_ui", USERS)
    assert changelog.take(messages((b"0-0", ROW), (b"0-1", ROW), (b"0-0", None))) == []
    assert (changelog.position, changelog.changes) == (3, [])
    assert [*changelog.load(0).rows()[1]] == [ROW]
    changelog.take(messages((b"0-1", OTHER), (b"0-1", None), first=3))
    assert (changelog.position, changelog.changes) == (5, [(b"0-1", OTHER), (b"0-1", None)])


def test_a_changelog_leaves_out_what_is_no_row_and_gives_errors_back() -> None:
    changelog = Changelog("t", "g1", "users_ui", USERS)
    end = Message(topic="t", offset=9, error=KafkaError(KafkaError._PARTITION_EOF))
    strange = messages((None, ROW), (b"0-1", b""), (b"0-2", b'{"no": "row"}'), (b"0-3", b'["cut off'))
    assert changelog.take([*strange, end]) == [end]
    assert changelog.position == 4
    assert len(changelog.load(0)) == 0


def test_a_table_begins_with_all_that_its_build_made_and_all_that_was_there() -> None:
    changelog = Changelog("t", "g1", "users_ui", USERS)
    for complete_at, end, position, is_read in (
        (None, 5, 9, False),
        (3, None, 9, False),
        (3, 5, 4, False),
        (5, 3, 4, False),
        (3, 5, 5, True),
        (0, 0, 0, True),
    ):
        changelog.complete_at, changelog.end, changelog.position = complete_at, end, position
        assert changelog.is_read is is_read


def test_changelogs_are_followed_from_the_beginning_of_a_build_until_its_generation_is_closed() -> None:
    changelogs = Changelogs(NAMES)
    assert [changelog.topic for changelog in changelogs] == [NAMES.verdicts]
    new, left = changelogs.follow(board(g1=record(State.LIVE, users_ui=7), g2=record(State.BUILDING)))
    found = {(log.generation, log.name): log.complete_at for log in new}
    assert found == {("g1", "users_ui"): 7, ("g1", "final_ui"): 0, ("g2", "users_ui"): None, ("g2", "final_ui"): None}
    assert left == []
    building = changelogs.get(NAMES.changelog("g2", "users_ui"))
    new, left = changelogs.follow(board(g1=record(State.RETIRING, users_ui=7), g2=record(State.LIVE, users_ui=9)))
    assert (new, left) == ([], [])
    assert building is not None
    assert building is changelogs.get(building.topic)
    assert building.complete_at == 9
    new, left = changelogs.follow(board(g1=record(State.CLOSED), g2=record(State.LIVE), g3=record(State.FAILED)))
    assert (new, {log.generation for log in left}) == ([], {"g1"})
    assert {changelog.generation for changelog in changelogs} == {None, "g2"}


def test_a_build_is_complete_as_soon_as_its_rows_are_written() -> None:
    changelogs = Changelogs(NAMES)
    [first, _], _ = changelogs.follow(board(g1=record(State.BUILDING)))
    assert first.complete_at is None
    changelogs.follow(board(g1=record(State.BUILDING, users_ui=4)))
    assert first.complete_at == 4
    [later, _], _ = changelogs.follow(board(g1=record(State.LIVE), g2=record(State.BUILDING)))
    assert later.complete_at is None
    changelogs.follow(board(g1=record(State.LIVE), g2=record(State.BUILDING, users_ui=5)))
    assert later.complete_at == 5


def test_a_board_that_says_itself_that_it_catches_up_is_told_once() -> None:
    status = StatusTopic()
    swapped = board(g1=record(State.LIVE, users_ui=7), g2=record(State.BUILDING, users_ui=9))
    status.take(msgspec.structs.replace(swapped, phase=Phase.CATCHING_UP).encode(), 0, KEPT_S * 1000)
    status.end = 1
    shown = status.news()
    assert shown is not None
    assert (shown.phase, shown.shown) == (Phase.CATCHING_UP, "g2")
    assert status.caught_up(KEPT_S + 60.0) is None


def test_only_the_newest_status_is_news_and_only_once_the_topic_is_read_to_its_end() -> None:
    status = StatusTopic()
    status.take(board("one").encode(), 3, KEPT_S * 1000)
    assert status.news() is None
    status.end = 5
    assert status.news() is None
    status.take(board("two").encode(), 4, KEPT_S * 1000)
    assert status.news() == board("two")
    assert status.news() is None
    status.take(b"no status", 5, KEPT_S * 1000)
    assert status.news() is None
    status.take(board("three").encode(), 6, KEPT_S * 1000)
    assert status.news() == board("three")


def test_a_status_goes_stale_once_per_reason_and_is_fresh_again_with_the_next_one() -> None:
    status = StatusTopic()
    status.end = 0
    late = KEPT_S + STALE_AFTER_S + 1
    assert not status.is_silent(late)
    status.take(board("all is well").encode(), 0, KEPT_S * 1000, KEPT_S)
    status.news()
    assert not status.is_silent(KEPT_S + STALE_AFTER_S)
    assert status.stale(KEPT_S + STALE_AFTER_S, "") is None
    stale = status.stale(late, "")
    assert stale is not None
    assert stale.phase is Phase.STALE
    assert stale.message.endswith("; the last was: all is well")
    assert status.stale(late + 1, "") is None
    because = status.stale(late + 2, "Kafka is away")
    assert because is not None
    assert ": Kafka is away; the last was: all is well" in because.message
    status.take(board("back").encode(), 1, int(late) * 1000, late)
    assert status.news() == back_again(board("back"))
    assert not status.is_silent(late)
    assert status.stale(late, "") is None


def test_a_status_that_is_heard_of_is_fresh_whatever_the_clock_of_another_machine_says() -> None:
    status, day = StatusTopic(), 86_400
    status.end = 1
    status.take(board("of yesterday").encode(), 0, KEPT_S * 1000, KEPT_S + day)
    status.news()
    assert status.is_silent(KEPT_S + day)
    status.take(board("by a clock that is late").encode(), 1, KEPT_S * 1000, KEPT_S + day)
    status.news()
    assert not status.is_silent(KEPT_S + day + STALE_AFTER_S)
    assert status.is_silent(KEPT_S + day + STALE_AFTER_S + 1)


class Questions:
    """Answers come when the test gives them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Future[Any]]] = []

    def ask(self, topic: str) -> Future[Any]:
        answer: Future[Any] = Future()
        self.asked.append((topic, answer))
        return answer

    @property
    def topics(self) -> list[str]:
        return [topic for topic, _ in self.asked]


def test_ends_are_asked_once_until_they_are_known() -> None:
    questions = Questions()
    now = 0.0
    ends = TopicEnds(questions.ask, lambda: now)
    assert ends.hear([]) == {}
    assert not ends.is_asking
    assert ends.hear(["a", "b"]) == {}
    now = 60.0
    assert ends.hear(["a", "b"]) == {}
    assert questions.topics == ["a", "b"]
    questions.asked[1][1].set_result(SimpleNamespace(offset=7))
    assert ends.hear(["a", "b"]) == {"b": 7}
    assert ends.is_asking
    assert ends.hear([]) == {}
    assert not ends.is_asking
    assert questions.topics == ["a", "b"]


def test_an_end_that_kafka_does_not_tell_is_asked_again_after_a_moment() -> None:
    questions = Questions()
    now = 0.0
    ends = TopicEnds(questions.ask, lambda: now)
    ends.hear(["a"])
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    questions.asked[0][1].set_exception(KafkaException(refused))
    assert ends.hear(["a"]) == {"a": refused}
    assert questions.topics == ["a"]
    now = 1.0
    ends.hear(["a"])
    assert questions.topics == ["a", "a"]
    assert ends.hear(["a"]) == {}
    questions.asked[1][1].set_result(SimpleNamespace(offset=0))
    assert ends.hear(["a"]) == {"a": 0}


def test_b44_a_kafka_that_is_away_is_named_with_the_time_since_also_where_no_status_was_ever_read() -> None:
    status = StatusTopic()
    assert status.is_doubtful(KEPT_S)
    away = status.away(KEPT_S, "no broker at localhost:9092")
    assert away is not None
    assert away.phase is Phase.AWAY
    assert away.message == "Kafka has not answered since 2023-11-14T22:13:20.000000Z: no broker at localhost:9092"
    assert status.away(KEPT_S, "no broker at localhost:9092") is None
    refused = status.away(KEPT_S, "it refuses the login")
    assert refused is not None
    assert refused.message == "Kafka has not answered since 2023-11-14T22:13:20.000000Z: it refuses the login"
    back = status.back(KEPT_S)
    assert back is not None
    assert (back.phase, back.message) == (Phase.STARTING, "waiting for the pipeline to start")
    assert status.back(KEPT_S) is None
    status.end = 1
    status.take(board("all is well").encode(), 0, KEPT_S * 1000, KEPT_S)
    assert status.news() == back_again(board("all is well"))
    assert not status.is_doubtful(KEPT_S + 6)
    assert status.is_doubtful(KEPT_S + 8)
    gone = status.away(KEPT_S, "no broker")
    assert gone is not None
    assert gone.phase is Phase.AWAY
    assert status.back(KEPT_S + 9) == back_again(board("all is well"))


def test_b44_a_pipeline_that_is_back_catches_up_until_it_writes_rows_of_now_or_nothing_more() -> None:
    def restarted() -> StatusTopic:
        status = StatusTopic()
        status.end = 0
        down = msgspec.structs.replace(board(), phase=Phase.RESTARTING)
        for offset, each in enumerate((down, board())):
            status.take(each.encode(), offset, KEPT_S * 1000, KEPT_S)
            shown = status.news()
        assert shown == back_again(board())
        return status

    now = timestamp_text(KEPT_S * 1000 + 1)
    status = restarted()
    status.wrote(ROW.replace(b"2026", b"2020"), KEPT_S + 1)
    assert status.caught_up(KEPT_S + 1 + CAUGHT_UP_AFTER_S / 2) is None
    # The document is repeated meanwhile.
    status.take(board().encode(), 2, KEPT_S * 1000 + 5000, KEPT_S + 5)
    assert status.news() == back_again(board())
    status.wrote(f'["ada","{now}"]'.encode(), KEPT_S + 5)
    assert status.caught_up(KEPT_S + 5) == board()
    assert status.caught_up(KEPT_S + 5) is None
    status.take(board().encode(), 3, KEPT_S * 1000 + 10_000, KEPT_S + 10)
    assert status.news() == board()
    assert restarted().caught_up(KEPT_S + CAUGHT_UP_AFTER_S) == board()


def test_refusals_last_until_the_topic_can_be_read_outages_are_no_error_and_a_crash_stays() -> None:
    health = FeedHealth()
    health.unanswered("the broker is away", KEPT_S)
    health.unanswered("the broker is still away", KEPT_S + 5)
    assert (health.errors, health.outage, health.out_since) == ([], "the broker is still away", KEPT_S)
    health.answered()
    assert health.outage == ""
    health.refused("a", "no right")
    health.refused("a", "still no right")
    health.refused("b", "no right")
    health.allowed("b")
    health.allowed("c")
    assert health.errors == ["cannot read a: still no right"]
    health.crashed(ZeroDivisionError("x"))
    health.allowed("a")
    assert health.errors == [health.crash]
    assert "(ZeroDivisionError)" in health.crash


def test_the_loop_does_things_in_order_and_the_thread_waits_while_there_are_many() -> None:
    done: list[int] = []
    errors: list[Exception] = []
    handed = 0

    def act(number: int) -> None:
        # The thread is ahead by what is handed over and not done.
        assert handed - number <= AHEAD + 1
        done.append(number)
        if number == 3:
            raise ZeroDivisionError

    async def play() -> None:
        handover = Handover(asyncio.get_running_loop(), threading.Event(), errors.append)

        def hand_over() -> None:
            nonlocal handed
            for number in range(100):
                handover.do(act, number)
                handed += 1

        await asyncio.to_thread(hand_over)
        await asyncio.sleep(0)

    asyncio.run(play())
    assert done == list(range(100))
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_thread_that_is_to_stop_does_not_wait_for_a_loop_that_does_nothing() -> None:
    loop = asyncio.new_event_loop()
    stopping = threading.Event()
    handover = Handover(loop, stopping, lambda _: None)
    for _ in range(AHEAD):
        handover.do(lambda: None)
    stopping.set()
    handover.do(lambda: None)
    loop.close()
