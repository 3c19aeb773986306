"""The Python client without a server: the state machine, waits, sharing, and what a frame makes of a window."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, get_args

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

import liveboard
from liveboard.backoff import Backoff
from liveboard.client import AsyncClient, AsyncTable, Client, SyncSubscription, Table
from liveboard.client.address import Address, Unauthorized, Unreachable, address
from liveboard.client.connection import FIRST_WAIT_S, LONGEST_WAIT_S, Connection, ConnectionState
from liveboard.client.notebook import LiveDisplay, html
from liveboard.client.subscription import DEFAULT_WINDOW, Listener, Subscription, ask
from liveboard.client.update import FrameGap, Update, WindowCopy
from liveboard.contract import frames
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Code, WireColumn
from liveboard.contract.types import WireType

KEY = "a key that nobody may see"
URL = "http://127.0.0.1:8080"
NAME = WireColumn("name", "string")
AGE = WireColumn("age", "int64")


class FakeSocket:
    """A WebSocket whose server is the test."""

    def __init__(self) -> None:
        self.sent: list[frames.ClientFrame] = []
        self._incoming: asyncio.Queue[str | Exception] = asyncio.Queue()

    async def send(self, message: str, /) -> None:
        self.sent.append(frames.decode_client(message))

    async def recv(self) -> str:
        message = await self._incoming.get()
        if isinstance(message, Exception):
            raise message
        return message

    def say(self, *said: frames.ServerFrame) -> None:
        for frame in said:
            self._incoming.put_nowait(frames.encode(frame))

    def say_text(self, text: str) -> None:
        self._incoming.put_nowait(text)

    def close(self, code: int, reason: str = "") -> None:
        self._incoming.put_nowait(ConnectionClosedError(Close(code, reason), None))

    @property
    def subscribed(self) -> list[frames.Subscribe]:
        return [frame for frame in self.sent if isinstance(frame, frames.Subscribe)]

    @property
    def unsubscribed(self) -> list[int]:
        return [frame.id for frame in self.sent if isinstance(frame, frames.Unsubscribe)]


class FakeServer:
    """Answers calls with the next of `answers`, and with a ready after them; waits are the test's to end."""

    def __init__(self, *answers: Exception | frames.ServerFrame) -> None:
        self.answers = list(answers)
        self.sockets: list[FakeSocket] = []
        self.waits: list[float] = []
        self._wakes: list[asyncio.Future[None]] = []

    @contextlib.asynccontextmanager
    async def dial(self) -> AsyncIterator[FakeSocket]:
        answer = self.answers.pop(0) if self.answers else frames.Ready((), frames.Role.ADMIN, "a test")
        if isinstance(answer, Exception):
            raise answer
        socket = FakeSocket()
        self.sockets.append(socket)
        socket.say(answer)
        yield socket

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._wakes.append(asyncio.get_running_loop().create_future())
        await self._wakes[-1]

    def wake(self) -> None:
        """Lets all waits end."""
        for future in self._wakes:
            if not future.done():
                future.set_result(None)

    @property
    def waiting(self) -> int:
        return sum(not future.done() for future in self._wakes)

    @property
    def socket(self) -> FakeSocket:
        return self.sockets[-1]


def connection_to(server: FakeServer, silence_s: float = 30.0) -> Connection:
    return Connection(address(URL, KEY), server.dial, sleep=server.sleep, silence_s=silence_s)


@contextlib.asynccontextmanager
async def connected(silence_s: float = 30.0) -> AsyncIterator[tuple[Connection, FakeServer]]:
    server = FakeServer()
    connection = connection_to(server, silence_s)
    await connection.open()
    try:
        yield connection, server
    finally:
        await connection.close()


def subscribe(connection: Connection, listener: Listener | None = None, table: str = "t", **asked: Any) -> Subscription:
    chosen = {"window": DEFAULT_WINDOW, "sort": None, "filter": None, "search": None, "generation": None}
    return connection.subscribe(ask(table, **{**chosen, **asked}), listener)


def snapshot(id: int, *names: str, version: int = 1, generation: str = "g1") -> frames.Snapshot:
    return frames.Snapshot(
        id=id,
        version=version,
        generation=generation,
        total=len(names),
        offset=0,
        columns=(NAME,),
        keys=names,
        rows=tuple((name,) for name in names),
    )


async def settle(condition: Callable[[], object] = lambda: True) -> None:
    """Lets everything run that can, until the condition holds."""
    for _ in range(10_000):
        for _ in range(10):
            await asyncio.sleep(0)
        if condition():
            return
    raise AssertionError("waited in vain")


@pytest.mark.parametrize(("url", "psk", "named"), [("", KEY, "url: "), (None, KEY, "url: "), (URL, "", "psk: ")])
def test_b19_what_is_missing_is_named(url: str | None, psk: str, named: str) -> None:
    with pytest.raises(LiveboardError, match=rf"^{named}expected .*, found nothing$"):
        liveboard.connect(url, psk)
    with pytest.raises(LiveboardError, match=rf"^{named}expected .*, found nothing$"):
        asyncio.run(liveboard.connect_async(url, psk))


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://h", "http://", "http://h:port", "http://u:secret@h", "http://h?a"]
)
def test_b19_an_address_that_is_none_is_not_repeated(url: str) -> None:
    with pytest.raises(LiveboardError, match=r"^url: expected the address of a server") as raised:
        address(url, KEY)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "websocket"),
    [
        ("http://h:1", "ws://h:1/ws"),
        ("https://h/boards/", "wss://h/boards/ws"),
        ("ws://h:1/ws", "ws://h:1/ws"),
        ("wss://[::1]:1", "wss://[::1]:1/ws"),
    ],
)
def test_addresses(url: str, websocket: str) -> None:
    assert address(url, KEY).websocket == websocket


@pytest.mark.parametrize("psk", ["two\nlines", "π", "\ud800"])
def test_b19_a_key_that_cannot_be_sent_is_not_repeated(psk: str) -> None:
    with pytest.raises(LiveboardError, match=r"^psk: expected a key of printable Latin-1 characters, found others$"):
        address(URL, psk)


def test_b19_the_key_is_in_no_repr() -> None:
    where = address(URL, KEY)
    assert isinstance(where, Address)
    assert KEY not in repr(where)


def test_b19_a_wrong_key_is_unauthorized_not_retried_and_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def play() -> None:
        refused = frames.Error(None, Code.UNAUTHORIZED, "expected another")
        for answer in (refused, ConnectionClosedError(Close(frames.UNAUTHORIZED, ""), None)):
            server = FakeServer(answer)
            connection = connection_to(server)
            with pytest.raises(Unauthorized, match=r"^unauthorized") as raised:
                await connection.open()
            assert KEY not in repr(raised.value)
            assert (connection.state, server.waits, server.answers) == (ConnectionState.CLOSED, [], [])

    asyncio.run(play())
    assert KEY not in caplog.text


def test_b19_a_key_that_becomes_wrong_ends_the_subscriptions() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection)
            server.socket.close(frames.UNAUTHORIZED)
            await settle(lambda: connection.state is ConnectionState.REFUSED)
            assert server.waits == []
            with pytest.raises(Unauthorized):
                await subscription.next()
            with pytest.raises(Unauthorized):
                await subscribe(connection, table="later").next()

    asyncio.run(play())


def test_a_server_of_another_protocol_is_said_and_not_retried() -> None:
    async def play() -> None:
        server = FakeServer(frames.Error(None, Code.BAD_FRAME, "expected protocol 2, found 1"))
        with pytest.raises(LiveboardError, match="expected protocol 2, found 1"):
            await connection_to(server).open()
        assert server.waits == []

    asyncio.run(play())


def test_no_server_at_the_first_attempt_is_an_error() -> None:
    async def play() -> None:
        server = FakeServer(ConnectionRefusedError(111, "Connection refused"))
        with pytest.raises(Unreachable, match="expected a liveboard server, found none"):
            await connection_to(server).open()
        assert server.waits == []

    asyncio.run(play())


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a\n", "ä", "a;drop"])
def test_b20_names_are_checked_before_anything_is_sent(name: str) -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            with pytest.raises(LiveboardError, match="expected a table name"):
                subscribe(connection, table=name)
            await settle()
            assert server.socket.subscribed == []

    asyncio.run(play())


def test_b21_one_subscription_on_the_wire_for_all_listeners_and_rows_decoded_once() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            seen: list[list[Update]] = [[], []]
            for updates in seen:
                subscribe(connection, updates.append)
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"))
            await settle(lambda: seen[1])
            late: list[Update] = []
            subscribe(connection, late.append)
            assert len(server.socket.subscribed) == 1
            assert seen[0][0] is seen[1][0] is late[0]
            assert late[0].rows == (("ada",),)

    asyncio.run(play())


def test_b21_another_window_sort_filter_or_search_is_another_subscription() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscribe(connection)
            subscribe(connection, window=(0, 10))
            subscribe(connection, sort=[("name", "asc")])
            subscribe(connection, filter=[["vip", "=", True]])
            subscribe(connection, filter=[["vip", "=", 1]])
            subscribe(connection, search="a")
            subscribe(connection, generation="g1")
            subscribe(connection, sort=[], filter=[], search="")
            await settle(lambda: len(server.socket.subscribed) == 7)

    asyncio.run(play())


def test_b21_a_listener_that_throws_does_not_hurt_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            seen: list[Update] = []

            def throws(_: Update) -> None:
                raise ValueError("mine alone")

            subscribe(connection, throws)
            subscribe(connection, seen.append)
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"), snapshot(1, "bob", version=2))
            await settle(lambda: len(seen) == 2)
            assert connection.state is ConnectionState.READY

    asyncio.run(play())
    assert "mine alone" in caplog.text


def test_b22_the_last_one_out_closes_exactly_once() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            one, two = subscribe(connection), subscribe(connection)
            one.close()
            one.close()
            await settle()
            assert server.socket.unsubscribed == []
            two.close()
            two.close()
            again = subscribe(connection)
            await settle(lambda: len(server.socket.subscribed) == 2)
            assert server.socket.unsubscribed == [1]
            server.socket.say(snapshot(1, "late"), snapshot(2, "now"))
            await settle(lambda: again.rows)
            assert (again.rows, one.rows, two.rows) == ((("now",),), (), ())

    asyncio.run(play())


def test_b22_a_listener_may_close_itself_and_others_while_it_is_called() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            seen: list[Update] = []
            both: list[Subscription] = []

            def close_both(_: Update) -> None:
                for subscription in both:
                    subscription.close()

            both.append(subscribe(connection, close_both))
            both.append(subscribe(connection, seen.append))
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"))
            await settle(lambda: server.socket.unsubscribed == [1])
            assert seen == []

    asyncio.run(play())


def test_b23_the_default_window_and_a_move_that_leaves_others_where_they_are() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            stays, moves = subscribe(connection), subscribe(connection)
            await settle(lambda: server.socket.subscribed)
            assert (server.socket.subscribed[0].offset, server.socket.subscribed[0].size) == (0, 300)
            server.socket.say(snapshot(1, "ada"))
            await settle(lambda: moves.rows)
            moves.set_window(300, 100)
            await settle(lambda: len(server.socket.subscribed) == 2)
            asked = server.socket.subscribed[1]
            assert (asked.offset, asked.size, server.socket.unsubscribed) == (300, 100, [])
            assert moves.rows == (("ada",),)
            server.socket.say(snapshot(asked.id, "bob"))
            await settle(lambda: moves.rows == (("bob",),))
            assert stays.rows == (("ada",),)
            moves.set_window(0, 300)
            assert moves.rows == (("ada",),)
            await settle(lambda: server.socket.unsubscribed == [asked.id])

    asyncio.run(play())


@pytest.mark.parametrize("window", [(-1, 10), (0, 0), (0, 10_001)])
def test_b23_windows_that_cannot_be_are_errors_before_anything_is_sent(window: tuple[int, int]) -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection)
            with pytest.raises(LiveboardError, match=r"^window: expected"):
                subscription.set_window(*window)
            with pytest.raises(LiveboardError, match=r"^window: expected"):
                subscribe(connection, window=window)
            await settle(lambda: len(server.socket.subscribed) == 1)

    asyncio.run(play())


def test_b24_waits_begin_with_150_ms_and_grow_with_jitter_up_to_10_s() -> None:
    for chance in (0.0, 0.5, 1.0):
        backoff = Backoff(LONGEST_WAIT_S, FIRST_WAIT_S, lambda chance=chance: chance)  # type: ignore[misc]
        waits = [backoff.failed() for _ in range(2_000)]
        assert waits[0] == FIRST_WAIT_S == 0.15
        assert waits == sorted(waits)
        assert waits[-1] == LONGEST_WAIT_S * (0.5 + chance / 2) <= 10
        backoff.reset()
        assert backoff.failed() == FIRST_WAIT_S


def test_b24_one_reattach_at_a_time_rows_stay_stale_and_a_snapshot_takes_the_mark_away() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            seen: list[Update] = []
            subscription = subscribe(connection, seen.append)
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"))
            await settle(lambda: seen)
            server.answers = [OSError("away"), OSError("still away")]
            server.socket.close(frames.RESTART, "come back")
            await settle(lambda: connection.state is ConnectionState.WAITING)
            since = subscription.stale_since
            assert since is not None
            assert (subscription.rows, server.waiting) == ((("ada",),), 1)
            assert "1012 come back" in str(seen[-1].problem)
            for tries in (2, 3):
                server.wake()
                await settle(lambda tries=tries: len(server.waits) == tries)  # type: ignore[misc]
                assert (server.waiting, len(server.sockets)) == (1, 1)
            assert server.waits[0] == FIRST_WAIT_S < server.waits[2]
            assert (subscription.rows, subscription.stale_since) == ((("ada",),), since)
            server.wake()
            await settle(lambda: len(server.sockets) == 2 and server.socket.subscribed)
            assert server.socket.subscribed[0].id == 2
            server.socket.say(snapshot(1, "late"), snapshot(2, "bob"))
            await settle(lambda: subscription.stale_since is None)
            assert subscription.rows == (("bob",),)
            assert not any(update.rows == (("late",),) for update in seen)
            server.socket.close(1006)
            await settle(lambda: len(server.waits) == 4)
            assert server.waits[3] == FIRST_WAIT_S

    asyncio.run(play())


def test_b24_who_subscribes_while_the_server_is_away_is_told_and_served_later() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            server.socket.close(1006)
            await settle(lambda: connection.state is ConnectionState.WAITING)
            subscription = subscribe(connection)
            assert subscription.stale_since is not None
            server.wake()
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"))
            await settle(lambda: subscription.rows == (("ada",),))
            assert subscription.stale_since is None

    asyncio.run(play())


def test_b24_a_listener_may_subscribe_when_it_hears_that_the_server_is_away() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            more: list[Subscription] = []

            def listen(update: Update) -> None:
                if update.stale_since and not more:
                    more.append(subscribe(connection, table="more"))

            subscribe(connection, listen)
            await settle(lambda: server.socket.subscribed)
            server.socket.close(1006)
            await settle(lambda: more)
            assert more[0].stale_since is not None
            server.wake()
            await settle(lambda: len(server.socket.subscribed) == 2)
            server.socket.say(*(snapshot(asked.id, "ada") for asked in server.socket.subscribed))
            await settle(lambda: more[0].rows and more[0].stale_since is None)

    asyncio.run(play())


def test_b24_tables_that_are_away_are_asked_for_again_all_in_one_wait() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            one, two = subscribe(connection, table="one"), subscribe(connection, table="two")
            await settle(lambda: len(server.socket.subscribed) == 2)
            server.socket.say(snapshot(1, "ada"))
            server.socket.say(*(frames.Error(id, Code.UNKNOWN_TABLE, "gone") for id in (1, 2)))
            await settle(lambda: one.stale_since and two.stale_since)
            assert (server.waits, one.rows, one.error) == ([FIRST_WAIT_S], (("ada",),), None)
            server.wake()
            await settle(lambda: len(server.socket.subscribed) == 4)
            server.socket.say(frames.Error(3, Code.UNKNOWN_TABLE, "gone"), snapshot(4, "bob"))
            await settle(lambda: len(server.waits) == 2)
            assert server.waiting == 1
            server.wake()
            await settle(lambda: len(server.socket.subscribed) == 5)
            server.socket.say(snapshot(5, "eve"))
            await settle(lambda: one.stale_since is None)
            assert (one.rows, two.rows, connection.state) == ((("eve",),), (("bob",),), ConnectionState.READY)

    asyncio.run(play())


def test_a_question_that_makes_no_sense_is_not_asked_again() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection, filter=[["none", "=", 1]])
            await settle(lambda: server.socket.subscribed)
            server.socket.say(frames.Error(1, Code.BAD_FILTER, "expected a column"))
            with pytest.raises(LiveboardError, match="expected a column"):
                await subscription.next()
            server.wake()
            await settle()
            assert len(server.socket.subscribed) == 1

    asyncio.run(play())


def test_b24_a_gap_in_the_versions_means_resubscribe() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection)
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"), snapshot(1, "eve", version=3))
            await settle(lambda: server.waits)
            assert subscription.rows == (("ada",),)
            server.wake()
            await settle(lambda: len(server.socket.subscribed) == 2)
            assert server.socket.unsubscribed == [1]
            server.socket.say(snapshot(1, "late", version=4), snapshot(2, "bob"))
            await settle(lambda: subscription.stale_since is None)
            assert subscription.rows == (("bob",),)

    asyncio.run(play())


def test_b24_silence_means_reconnect() -> None:
    async def play() -> None:
        async with connected(silence_s=0.02) as (connection, server):
            while not server.waits:
                await asyncio.sleep(0.01)
            assert connection.state is ConnectionState.WAITING
            server.wake()
            await settle(lambda: len(server.sockets) == 2)

    asyncio.run(play())


def test_a_frame_that_cannot_be_read_is_left_out() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection)
            await settle(lambda: server.socket.subscribed)
            for text in ("{", '{"ev":"confetti"}'):
                server.socket.say_text(text)
            server.socket.say(frames.Error(None, Code.BAD_FRAME, "hm"), frames.Beat(), snapshot(1, "ada"))
            await settle(lambda: subscription.rows)

    asyncio.run(play())


def test_b25_other_columns_come_in_one_step_with_their_rows() -> None:
    copy = WindowCopy("t")
    before = copy.take(snapshot(1, "ada"))
    wider = frames.Snapshot(
        id=1,
        version=2,
        generation="g2",
        total=1,
        offset=0,
        columns=(AGE, NAME),
        keys=("k",),
        rows=(("9007199254740993", "ada"),),
    )
    after = copy.take(wider)
    assert (before.columns, before.rows) == ((NAME,), (("ada",),))
    assert (after.columns, after.rows, after.generation) == ((AGE, NAME), ((9007199254740993, "ada"),), "g2")


def test_b26_iteration_gives_the_newest_and_ends_with_the_client() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection)
            await settle(lambda: server.socket.subscribed)
            server.socket.say(snapshot(1, "ada"), frames.Rebound(1, "g2"))
            server.socket.say(snapshot(1, "bob", version=2, generation="g2"))
            await settle(lambda: subscription.rows == (("bob",),))
            update = await subscription.next()
            assert update is not None
            assert (update.rows, update.generation) == ((("bob",),), "g2")
            coming = asyncio.create_task(subscription.next())
            await settle()
            assert not coming.done()
        assert await coming is None
        with pytest.raises(LiveboardError, match="expected an open client, found a closed one"):
            subscribe(connection)

    asyncio.run(play())


def test_b27_a_client_sends_nothing_but_auth_subscribe_and_unsubscribe() -> None:
    async def play() -> None:
        async with connected() as (connection, server):
            subscription = subscribe(connection)
            subscription.set_window(10, 10)
            await settle(lambda: len(server.socket.subscribed) == 2)
        assert {type(frame) for frame in server.socket.sent} <= {frames.Auth, frames.Subscribe, frames.Unsubscribe}

    asyncio.run(play())


def test_deltas_change_add_and_drop_rows() -> None:
    copy = WindowCopy("t")
    copy.take(snapshot(1, "a", "b", "c"))
    changed = copy.take(
        frames.Delta(id=1, version=2, total=5, rows=((1, "x", ("X",)), (3, "d", ("D",)), (4, "e", ("E",))))
    )
    assert (changed.keys, changed.total) == (("a", "x", "c", "d", "e"), 5)
    assert [row[0] for row in changed.rows] == ["a", "X", "c", "D", "E"]
    dropped = copy.take(frames.Delta(id=1, version=3, total=1, rows=((0, "z", ("Z",)),), drop=4))
    assert (dropped.keys, dropped.rows) == (("z",), (("Z",),))
    with pytest.raises(FrameGap):
        copy.take(frames.Delta(id=1, version=4, total=9, rows=((7, "far", ("F",)),)))


def test_values_have_pythons_types() -> None:
    columns = tuple(WireColumn(type_, type_) for type_ in get_args(WireType))
    rows = (
        ("a", True, 1, "9223372036854775807", 2, "0.10", "2026-01-31", "2026-01-31T09:30:00.000001Z", "[1]", "AAE="),
        (None,) * 10,
        ("a", False, 1, 7, 2.5, None, "12026-01-31", "12026-01-31T09:30:00.000001Z", "{}", None),
    )
    frame = frames.Snapshot(
        id=1, version=1, generation=None, total=3, offset=0, columns=columns, keys=("a", "b", "c"), rows=rows
    )
    update = WindowCopy("t").take(frame)
    when = datetime(2026, 1, 31, 9, 30, 0, 1, UTC)
    assert update.rows[0] == ("a", True, 1, 2**63 - 1, 2.0, Decimal("0.10"), date(2026, 1, 31), when, "[1]", b"\0\1")
    assert str(update.rows[0][5]) == "0.10"
    assert isinstance(update.rows[0][4], float)
    assert update.rows[1:] == rows[1:]
    assert update.records()[0]["timestamp"] == when


def test_moves_that_make_no_sense_are_refused() -> None:
    async def play() -> None:
        connection = connection_to(FakeServer())
        with pytest.raises(RuntimeError, match="expected one of"):
            connection._move(ConnectionState.READY)
        await connection.close()
        await connection.close()

    asyncio.run(play())


def test_html_shows_the_place_the_mark_and_no_markup_of_the_data() -> None:
    update = WindowCopy("t").take(snapshot(1, "<script>", "&"))
    text = html(update)
    assert "&lt;script&gt;" in text
    assert "<script>" not in text
    assert "rows 0-1 of 2" in text
    assert "stale" not in text
    stale = Update("t", stale_since=datetime.now(UTC), problem='"away"')
    assert "stale since" in html(stale)
    assert "&quot;away&quot;" in html(stale)
    assert html(update) == update._repr_html_()


def test_a_live_display_needs_a_notebook() -> None:
    with pytest.raises(LiveboardError, match="live: expected a notebook, found a Python without one"):
        LiveDisplay()


def test_importing_liveboard_imports_no_client() -> None:
    code = "import liveboard, sys; print('websockets' in sys.modules, 'pyarrow' in sys.modules); liveboard.connect"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "False False\n"


def test_both_clients_take_the_same_parameters() -> None:
    def parameters(method: Callable[..., Any]) -> dict[str, object]:
        return {name: (taken.kind, taken.default) for name, taken in inspect.signature(method).parameters.items()}

    assert parameters(liveboard.connect) == parameters(liveboard.connect_async)
    for one, other in ((Client, AsyncClient), (Table, AsyncTable), (SyncSubscription, Subscription)):
        for name in {name for name in dir(one) if not name.startswith("_")} - {"live"}:
            if callable(getattr(one, name)):
                assert parameters(getattr(one, name)) == parameters(getattr(other, name)), name
