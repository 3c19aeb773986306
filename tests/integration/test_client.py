"""The Python client against the real server: the test writes what the pipeline would, and looks through the client."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import rows as oracle
from harness import Topics
from live import KEY, USERS, Board, Running, at, serving, users, wait

import liveboard
from liveboard.client import Client, SyncSubscription, Table, Unauthorized, Unreachable, Update
from liveboard.client.subscription import SortBy
from liveboard.contract.errors import LiveboardError
from liveboard.contract.schema import TS, Column
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration

TEN = [(f"u{n}", n, datetime.fromisoformat(at(n))) for n in range(10)]


@pytest.fixture(scope="module")
def running(kafka: str) -> Iterator[Running]:
    with serving(kafka) as running:
        yield running


@pytest.fixture
def board(running: Running, kafka: str) -> Board:
    """A board with a live generation of ten users, which the server shows."""
    board = Board(kafka)
    generation = board.build()
    board.write(generation, users(*range(10)))
    board.switch(generation)
    running.bound(generation)
    return board


@pytest.fixture
def client(board: Board, running: Running) -> Iterator[Client]:
    wait(lambda: on_the_wire(running) == 0)
    with liveboard.connect(url(running), KEY) as client:
        yield client


def url(running: Running) -> str:
    return f"http://127.0.0.1:{running.port}"


def names(subscription: SyncSubscription) -> list[Any]:
    return [row[0] for row in subscription.rows]


def on_the_wire(running: Running) -> int:
    return running.server.hub.subscriptions


def test_b19_a_wrong_key_is_unauthorized_everywhere_and_nowhere_to_be_read(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "a wrong key that nobody may see"
    with pytest.raises(Unauthorized) as raised:
        liveboard.connect(url(running), wrong)
    with pytest.raises(Unauthorized):
        asyncio.run(liveboard.connect_async(url(running), wrong))
    with liveboard.connect(url(running), KEY) as client:
        assert KEY not in repr(client)
        assert KEY not in repr(client.table("users_ui"))
        client.tables()
    assert wrong not in repr(raised.value)
    telling = {record.name for record in caplog.records if wrong in record.getMessage() or KEY in record.getMessage()}
    assert telling == set()


def test_b19_no_server_is_said() -> None:
    with pytest.raises(Unreachable, match="expected a liveboard server, found none"):
        liveboard.connect("http://127.0.0.1:1", KEY)


def test_b20_names_are_checked_before_anything_is_sent(client: Client) -> None:
    for ask in (client.table, client.subscribe, client.updates, client.stream_table_with_rebind):
        with pytest.raises(LiveboardError, match="expected a table name"):
            ask("users_ui;")


def test_the_tables(client: Client) -> None:
    tables = {table.name: table for table in client.tables()}
    assert {"users_ui", "orchestrator_status"} <= tables.keys()
    assert tables["users_ui"].rows == 10
    assert [(column.name, column.type) for column in tables["users_ui"].columns] == [
        ("userId", "string"),
        ("age", "int64"),
        ("ts", "timestamp"),
    ]


def test_a_whole_table_in_every_form(client: Client) -> None:
    table = client.table("users_ui")
    assert table.rows() == TEN
    assert table.records()[3] == {"userId": "u3", "age": 3, "ts": TEN[3][2]}
    assert table.to_arrow().num_rows == 10
    frame = table.to_pandas()
    assert list(frame["userId"]) == [f"u{n}" for n in range(10)]
    assert str(frame["age"].dtype) == "Int64"
    assert str(frame["ts"].dtype) == "datetime64[us, UTC]"
    assert table.to_polars().rows() == TEN
    view = client.table("users_ui", sort=[("age", "desc")], filter=[["age", ">", 3]], search="U")
    assert [row[1] for row in view.rows()] == [9, 8, 7, 6, 5, 4]
    with pytest.raises(LiveboardError, match="expected a table \\("):
        client.table("none_ui").rows()
    with pytest.raises(LiveboardError, match="expected a column"):
        client.table("users_ui", sort=[("none", "asc")]).rows()


def test_b21_listeners_share_one_subscription_and_see_every_change(
    board: Board, running: Running, client: Client
) -> None:
    seen: list[Update] = []
    others: list[Update] = []

    def throws(_: Update) -> None:
        raise ValueError("mine alone")

    client.subscribe("users_ui", throws)
    one = client.subscribe("users_ui", seen.append)
    wait(lambda: len(one.rows) == 10)
    late = client.subscribe("users_ui", others.append)
    assert others[0].rows == tuple(TEN)
    assert on_the_wire(running) == 1
    board.write(str(board.live), users(3, age=77) | users(10))
    wait(lambda: len(late.rows) == 11 and late.rows[3][1] == 77)
    assert seen[-1] is others[-1]
    assert one.update is not None
    assert one.update.total == 11


def test_b22_the_last_one_out_closes_and_the_table_stays(running: Running, client: Client) -> None:
    one, two = (client.subscribe("users_ui") for _ in range(2))
    wait(lambda: two.rows)
    one.close()
    one.close()
    assert on_the_wire(running) == 1
    two.close()
    again = client.subscribe("users_ui")
    wait(lambda: again.rows)
    assert on_the_wire(running) == 1
    again.close()
    wait(lambda: on_the_wire(running) == 0 and running.server.views.windows == 0)
    assert client.table("users_ui").rows() == TEN


def test_b22_a_thousand_comings_and_goings_leave_nothing_behind(running: Running, client: Client) -> None:
    for round_ in range(250):
        some = [client.subscribe("users_ui", window=(round_ % 3, 5)) for _ in range(4)]
        for subscription in some:
            subscription.close()
    wait(lambda: on_the_wire(running) == 0 and running.server.views.windows == 0)


@pytest.mark.parametrize(
    "query",
    [
        {"sort": [("age", "desc")]},
        {"filter": [["age", "between", [2, 5]]], "sort": [("userId", "desc")]},
        {"filter": [["ts", ">", datetime(2026, 1, 31, 9, 0, 4, tzinfo=UTC)]]},
        {"search": "U1"},
    ],
    ids=str,
)
def test_b21_sorts_filters_and_searches(board: Board, client: Client, query: dict[str, Any]) -> None:
    subscription = client.subscribe("users_ui", **query)
    written = users(*range(10)) | users(11, age=4)
    board.write(str(board.live), users(11, age=4))
    plain = {**query, "filter": json.loads(json.dumps(query.get("filter"), default=lambda time: at(time.second)))}
    wanted = oracle.queried([(key, tuple(row)) for key, row in written.items()], USERS, **plain)
    wait(lambda: names(subscription) == [row[0] for _, row in wanted] and "u11" in str(wanted))


def test_b21_whatever_changes_windows_end_as_the_table_is(board: Board, client: Client) -> None:
    chance = random.Random(5)
    descending: SortBy = [("age", "desc"), ("userId", "asc")]
    views = [
        (client.subscribe("users_ui"), client.table("users_ui"), slice(0, 300)),
        (client.subscribe("users_ui", window=(5, 20)), client.table("users_ui"), slice(5, 25)),
        (
            client.subscribe("users_ui", window=(3, 30), sort=descending),
            client.table("users_ui", sort=descending),
            slice(3, 33),
        ),
        (
            client.subscribe("users_ui", filter=[["age", "<", 50]]),
            client.table("users_ui", filter=[["age", "<", 50]]),
            slice(0, 300),
        ),
    ]
    for _ in range(150):
        number = chance.randrange(60)
        row = users(number, age=chance.randrange(1, 100)) if chance.random() < 0.7 else {f"0-{number}": None}
        board.write(str(board.live), row)
    board.write(str(board.live), users(99, age=49))

    def shows(subscription: SyncSubscription, table: Table, window: slice) -> bool:
        return list(subscription.rows) == table.rows()[window]

    for view in views:
        wait(partial(shows, *view))
    assert "u99" in names(views[0][0])


def test_b23_windows_move_alone(client: Client) -> None:
    stays, moves = client.subscribe("users_ui", window=(0, 3)), client.subscribe("users_ui", window=(0, 3))
    wait(lambda: names(moves) == ["u0", "u1", "u2"])
    moves.set_window(8, 5)
    wait(lambda: names(moves) == ["u8", "u9"])
    assert names(stays) == ["u0", "u1", "u2"]
    with pytest.raises(LiveboardError, match="window: expected a size"):
        moves.set_window(0, 0)


def test_listeners_may_subscribe_move_and_close(client: Client) -> None:
    held: dict[str, SyncSubscription] = {}
    refused: list[LiveboardError] = []

    def listen(update: Update) -> None:
        if "more" not in held:
            held["more"] = client.subscribe("users_ui", window=(5, 2))
            try:
                client.close()
            except LiveboardError as error:
                refused.append(error)
        elif "first" in held and len(update.rows) == 3:
            held["first"].set_window(0, 4)
        elif "first" in held:
            held["first"].close()

    held["first"] = client.subscribe("users_ui", listen, window=(0, 3))
    wait(lambda: "more" in held and names(held["more"]) == ["u5", "u6"])
    assert len(refused) == 1
    held["first"].close()


def test_b24_a_server_that_restarts_is_found_again(board: Board) -> None:
    first = Running(board.bootstrap)
    first.bound(str(board.live))
    seen: list[Update] = []
    with liveboard.connect(url(first), KEY) as client:
        try:
            subscription = client.subscribe("users_ui", seen.append)
            sorted_too = client.subscribe("users_ui", sort=[("age", "desc")])
            wait(lambda: subscription.rows and sorted_too.rows)
        finally:
            first.stop()
        wait(lambda: subscription.stale_since and sorted_too.stale_since)
        assert names(subscription) == [f"u{n}" for n in range(10)]
        assert any("1012" in str(update.problem) for update in seen)
        board.write(str(board.live), users(10))
        with serving(board.bootstrap, port=first.port) as second:
            wait(lambda: subscription.stale_since is None and len(subscription.rows) == 11)
            wait(lambda: sorted_too.stale_since is None and names(sorted_too)[0] == "u10")
            assert on_the_wire(second) == 2
            client.close()


def test_b24_a_table_that_comes_and_goes_is_waited_for(board: Board, running: Running, client: Client) -> None:
    subscription = client.subscribe("others_ui")
    wait(lambda: subscription.stale_since)
    assert subscription.update is not None
    assert 'found "others_ui"' in str(subscription.update.problem)
    with_others = board.build({"users_ui": USERS, "others_ui": USERS})
    board.write(with_others, users(1), "others_ui")
    board.switch(with_others)
    wait(lambda: names(subscription) == ["u1"])
    assert subscription.stale_since is None
    without = board.build()
    board.switch(without)
    wait(lambda: subscription.stale_since)
    assert names(subscription) == ["u1"]


def test_a_question_that_makes_no_sense_is_an_error(client: Client) -> None:
    updates = client.updates("users_ui", filter=[["none", "=", 1]])
    with pytest.raises(LiveboardError, match="expected a column"):
        next(updates)


def test_b25_b26_a_swap_brings_new_columns_with_their_rows_in_one_step(board: Board, client: Client) -> None:
    stream = client.stream_table_with_rebind("users_ui", 5)
    pinned = client.subscribe("users_ui", generation=board.live)
    assert next(stream).rows == tuple(TEN[:5])
    other = (Column("userId", "string"), Column("city", "string"), TS)
    generation = board.build({"users_ui": other})
    board.write(generation, {"0-0": ["u0", "Jena", at(0)]})
    board.switch(generation)
    for update in stream:
        assert all(len(row) == len(update.columns) for row in update.rows)
        assert update.rows, "a swap must never show an empty table"
        if update.generation == generation:
            break
    assert [column.name for column in update.columns] == ["userId", "city", "ts"]
    assert update.rows == (("u0", "Jena", TEN[0][2]),)
    board.write(generation, {"0-0": ["u0", "Weimar", at(0)]})
    assert next(stream).rows[0][1] == "Weimar"
    assert pinned.rows == tuple(TEN)
    stream.dispose()
    stream.dispose()
    assert list(stream) == []


def test_iteration_ends_when_another_thread_closes_the_client(client: Client) -> None:
    updates = client.updates("users_ui")
    next(updates)
    ended = threading.Event()

    def iterate() -> None:
        for _ in updates:
            pass
        ended.set()

    thread = threading.Thread(target=iterate)
    thread.start()
    client.close()
    client.close()
    thread.join(60)
    assert ended.is_set()
    with pytest.raises(LiveboardError, match="expected an open client"):
        client.subscribe("users_ui")


def test_swap_passes_the_control_message_on(board: Board, client: Client) -> None:
    Admin({"bootstrap.servers": board.bootstrap}).create(["liveboard-control"])
    client.swap({"users": "users_b", "accounts": "accounts_b"}, join="inner")
    client.swap({"users": "users_c", "accounts": "accounts_c"})
    topics = Topics(board.bootstrap)
    try:
        found = [json.loads(message.value()) for message in topics.messages("liveboard-control")]
    finally:
        topics.close()
    assert found[-2:] == [
        {"topics": {"users": "users_b", "accounts": "accounts_b"}, "joinType": "inner"},
        {"topics": {"users": "users_c", "accounts": "accounts_c"}},
    ]


def test_the_asynchronous_client(board: Board, running: Running) -> None:
    async def until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.01)

    async def play() -> None:
        async with await liveboard.connect_async(url(running), KEY) as client:
            assert "users_ui" in [table.name for table in await client.tables()]
            table = client.table("users_ui")
            assert await table.rows() == TEN
            assert (await table.records())[0]["userId"] == "u0"
            assert (
                (await table.to_arrow()).num_rows == len(await table.to_pandas()) == len(await table.to_polars()) == 10
            )
            seen: list[Update] = []
            subscription = client.subscribe("users_ui", seen.append, window=(0, 3))
            await until(lambda: seen)
            subscription.set_window(9, 5)
            await until(lambda: [row[0] for row in subscription.rows] == ["u9"])
            updates = client.updates("users_ui", sort=[("age", "desc")])
            stream = client.stream_table_with_rebind("users_ui", 1)
            assert (await anext(stream)).rows == (TEN[0],)
            stream.dispose()
            assert [update async for update in stream] == []
            await asyncio.to_thread(board.write, str(board.live), users(10))
            async for update in updates:
                if update.rows[0][0] == "u10":
                    break
            assert [row[0] for row in subscription.rows] in (["u9"], ["u9", "u10"])
        assert [update async for update in updates] == []

    asyncio.run(play())
