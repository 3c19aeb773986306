"""Windows at any place of any sort, filter and search against plain Python over the same rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

import pytest
import rows as oracle
from filtering import COLUMNS, FILTERS, ROWS, SORTS, WORDS, encoded
from hypothesis import given, settings
from hypothesis import strategies as st

from liveboard.contract.changelog import decode_row
from liveboard.contract.frames import Code, FrameError
from liveboard.serving import chart_queue, mirror
from liveboard.serving.chart import chart_ask
from liveboard.serving.mirror import Ask, Database, Mirror, WindowPositions
from liveboard.serving.query import Query, compile_query
from liveboard.serving.table import Table
from liveboard.serving.views import Views
from liveboard.serving.window import Window

SEARCHES = st.one_of(
    st.none(),
    WORDS,
    st.sampled_from(
        ["2", "-3", "9,007,199,254,740,99", "9007199254740993", "-1.00", "2.0", "TRUE", "09:30:07", "a\x1f1"]
    ),
)
ORDERS = st.sampled_from(["arrival", "newest"])
# All rows are few here; with 0, none are, and the first eight of a sort are found without sorting all.
FEW_ROWS = st.sampled_from([0, 50_000])


class Heard:
    """Counts what it hears of a window."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def changed(self) -> None:
        self.event.set()


def shown(window: Window) -> tuple[int, list[tuple[str, oracle.Row]]]:
    """What a viewer of the window sees."""
    body = json.loads(f"{{{window.content()}}}")
    rows = [decode_row(json.dumps(row).encode(), COLUMNS) for row in body["rows"]]
    return body["total"], list(zip(body["keys"], rows, strict=True))


def running(scenario: Callable[[Views], Awaitable[None]], **options: Any) -> None:
    """The scenario, with views that are ended after it."""

    async def run() -> None:
        views = Views(**options)
        try:
            await scenario(views)
        finally:
            await views.stop()

    asyncio.run(run())


async def opened(views: Views, table: Table, query: Query, offset: int, size: int) -> tuple[Window, Heard]:
    heard = Heard()
    window = views.open(table, query, offset, size, heard)
    if not window.is_ready:
        async with asyncio.timeout(60):
            await heard.event.wait()
    return window, heard


@settings(max_examples=150)
@given(st.lists(ROWS, max_size=12), SORTS, FILTERS, SEARCHES, ORDERS, st.integers(0, 12), st.integers(1, 12), FEW_ROWS)
def test_any_window_is_what_plain_python_says(
    rows: list[tuple[Any, ...]], sort: Any, filter: Any, search: Any, order: Any, offset: int, size: int, few: int
) -> None:
    keyed = [(f"0-{number}", row) for number, row in enumerate(rows)]
    table = Table("t", "g1", COLUMNS, {key.encode(): encoded(row) for key, row in keyed})
    expected = oracle.queried(keyed, COLUMNS, sort, filter, search, order)

    async def scenario(views: Views) -> None:
        query = compile_query(COLUMNS, sort, filter, search, order=order)
        window, heard = await opened(views, table, query, offset, size)
        assert shown(window) == (len(expected), expected[offset : offset + size])
        views.close(window, heard)
        assert views.windows == 0

    with patch.multiple(mirror, _FEW_ROWS=few, _FIRST_ROWS=8):
        running(scenario)


def _change(number: int, row: tuple[Any, ...] | None) -> tuple[str, tuple[Any, ...] | None]:
    """Of a row whose ts is its own for ever."""
    return f"0-{number}", row and (*row[:-1], _second(number % 4))


def _second(number: int) -> str:
    return f"2026-01-31T09:30:0{number}.000000Z"


CHANGE = st.builds(_change, st.integers(0, 15), st.one_of(st.none(), ROWS))


@settings(max_examples=25)
@given(
    st.lists(st.lists(CHANGE, max_size=6), min_size=1, max_size=5),
    SORTS,
    FILTERS,
    SEARCHES,
    ORDERS,
    st.integers(0, 8),
    st.integers(1, 8),
    FEW_ROWS,
    st.booleans(),
)
def test_b38_windows_follow_the_table_and_deltas_lead_to_the_same(
    batches: Any, sort: Any, filter: Any, search: Any, order: Any, offset: int, size: int, few: int, by_key: bool
) -> None:
    """Also where rows come and go, and where they belong to keys and have their order."""

    async def scenario(views: Views) -> None:
        table, model = Table("t", "g1", COLUMNS), dict[str, tuple[Any, ...]]()
        query = compile_query(COLUMNS, sort, filter, search, order=order)
        window, _ = await opened(views, table, query, offset, size)
        natural, _ = await opened(views, table, Query(), offset, size)
        newest, _ = await opened(views, table, Query(newest=True), offset, size)
        viewed: dict[Window, tuple[int, list[Any]]] = {}
        for number, some in enumerate(batches):
            batch = [(f"={key}", row and (*row[:-1], _second(number))) for key, row in some] if by_key else some
            for key, row in batch:
                if row is None:
                    model.pop(key, None)
                else:
                    model[key] = row
            changes = [(key.encode(), encoded(row) if row is not None else None) for key, row in batch]
            views.applied(table, table.apply(changes))
            everything = sorted(model.items(), key=lambda item: ("" if by_key else item[1][-1], len(item[0]), item[0]))
            expected = oracle.queried(everything, COLUMNS, sort, filter, search, order)
            wanted = {
                natural: (len(everything), everything[offset : offset + size]),
                newest: (len(everything), everything[::-1][offset : offset + size]),
                window: (len(expected), expected[offset : offset + size]),
            }
            for each, content in wanted.items():
                async with asyncio.timeout(60):
                    while shown(each) != content:
                        await asyncio.sleep(0.01)
                step, rows = viewed.get(each, (0, []))
                viewed[each] = (each.step, applied_to(rows, *each.since(step)) if step != each.step else rows)
                assert viewed[each][1] == list(
                    zip(*[json.loads(f"{{{each.content()}}}")[part] for part in ("keys", "rows")], strict=True)
                )

    with patch.multiple(mirror, _FEW_ROWS=few, _FIRST_ROWS=8), patch("liveboard.serving.table._FEW_HOLES", few % 3):
        running(scenario)


@settings(max_examples=50)
@given(st.lists(ROWS, min_size=1, max_size=12), st.data(), SORTS, FILTERS, SEARCHES, st.sampled_from([1, 2_000]))
def test_a_mirror_that_keeps_orders_answers_like_a_new_one(
    rows: list[tuple[Any, ...]], data: st.DataObject, sort: Any, filter: Any, search: Any, compared: int
) -> None:
    """Whole rows and rows in which one value is another, of a query that is open and one that is not any more."""
    database = Database()
    queries = [compile_query(COLUMNS, sort, filter, search), compile_query(COLUMNS, [("age", "desc")], None, None)]
    kept, model = Mirror(database, COLUMNS), dict(enumerate(rows))
    kept.load(0, [encoded(row) for row in rows])
    with patch.object(mirror, "_COMPARED_AT_ONCE", compared):
        for number in range(4):
            asks = [Ask(query, 1, 5, False) for query in queries[: 1 + number % 2]]
            changes: dict[int, bytes | None] = {}
            for position in data.draw(st.lists(st.integers(0, len(rows) + 2), max_size=3, unique=True)):
                row = data.draw(st.one_of(st.none(), ROWS, st.just(model.get(position))))
                if row is not None and data.draw(st.booleans()):
                    row = (*row[:5], data.draw(WORDS), *row[6:])
                changes[position] = encoded(row) if row is not None else None
                model |= {position: row} if row is not None else {}
                if row is None:
                    model.pop(position, None)
            new = Mirror(database, COLUMNS)
            new.load(0, [encoded(model[at]) if at in model else None for at in range(len(rows) + 3)])
            assert kept.update(list(changes.items()), asks) == new.update([], asks)
            new.close()
    database.close()


def test_kept_orders_have_a_bound() -> None:
    database = Database()
    one = Mirror(database, COLUMNS)
    row = ("Ada", 1, 1.0, None, None, None, None, None, None, "2026-01-31T09:30:00.000000Z")
    one.load(0, [encoded(row)] * 100)
    queries = [compile_query(COLUMNS, [(name, "asc")], None, None) for name in ("name", "age", "balance", "vip")]
    with patch.object(mirror, "_KEPT_BYTES", 3 * 8 * 100):
        for query in [*queries, queries[1], queries[0]]:
            assert one.update([], [Ask(query, 98, 5, False)]) == [WindowPositions([98, 99], 100)]
    assert list(one._orders) == [queries[3], queries[1], queries[0]]
    database.close()


def applied_to(rows: list[Any], event: str, body: str) -> list[Any]:
    """What a client has after a frame."""
    frame = json.loads(f"{{{body}}}")
    if event == "snapshot":
        return list(zip(frame["keys"], frame["rows"], strict=True))
    rows = [None] * frame["insert"] + rows
    for index, key, row in frame["rows"]:
        if index < len(rows):
            rows[index] = (key, row)
        else:
            assert index == len(rows)
            rows.append((key, row))
    return rows[: len(rows) - frame["drop"]]


def test_an_answer_is_as_of_one_moment() -> None:
    """Rows that change while the mirror is asked are shown as the mirror had them."""

    async def scenario(views: Views) -> None:
        rows = [
            ("Ada", n, 1.0, None, None, None, None, None, None, "2026-01-31T09:30:00.000000Z") for n in range(5_000)
        ]
        table = Table("t", "g1", COLUMNS, {b"0-%d" % n: encoded(row) for n, row in enumerate(rows)})
        heard = Heard()
        window = views.open(
            table, compile_query(COLUMNS, [("age", "desc")], [["name", "=", "Ada"]], None), 0, 10_000, heard
        )
        for generation in range(50):
            change = [
                (b"0-%d" % n, encoded(("Eve" if generation % 2 == 0 else "Ada", *rows[n][1:])))
                for n in range(0, 5_000, 3)
            ]
            views.applied(table, table.apply(change))
            await asyncio.sleep(0.01)
            if window.is_ready:
                total, found = shown(window)
                assert total == len(found)
                assert {row[0] for _, row in found} == {"Ada"}
                assert total in (5_000, 5_000 - len(change))
        assert window.is_ready

    running(scenario)


def test_b21_one_window_for_all_who_look_and_nothing_after_the_last() -> None:
    async def scenario(views: Views) -> None:
        table = Table("t", "g1", COLUMNS)
        query = compile_query(COLUMNS, [("age", "asc")], None, None)
        for wanted in (query, Query()):
            one, first = await opened(views, table, wanted, 0, 10)
            two, second = await opened(views, table, wanted, 0, 10)
            assert one is two
            assert views.windows == 1
            views.close(one, first)
            views.close(one, first)
            assert views.windows == 1
            views.close(two, second)
            assert views.windows == 0
        async with asyncio.timeout(60):
            while views.mirrors:
                await asyncio.sleep(0.01)

    running(scenario, mirror_kept_s=0.0)


def test_a_change_that_a_view_cannot_see_gives_it_no_new_step() -> None:
    async def scenario(views: Views) -> None:
        table = Table("t", "g1", COLUMNS)
        adas, _ = await opened(views, table, compile_query(COLUMNS, None, [["name", "=", "Ada"]], None), 0, 10)
        eves, _ = await opened(views, table, compile_query(COLUMNS, None, [["name", "=", "Eve"]], None), 0, 10)
        for number in range(3):
            row = ("Eve", number, None, None, None, None, None, None, None, "2026-01-31T09:30:00.000000Z")
            views.applied(table, table.apply([(b"0-0", encoded(row))]))
            async with asyncio.timeout(60):
                while shown(eves)[1] != [("0-0", row)]:
                    await asyncio.sleep(0.01)
        assert adas.step == 1
        assert eves.step == 4

    running(scenario)


def test_a_chart_is_computed_once_for_all_who_ask_and_windows_have_their_turn_between_two() -> None:
    done: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        method = getattr(Mirror, name)

        def note(*arguments: Any) -> Any:
            done.append(name)
            return method(*arguments)

        return note

    async def scenario(views: Views) -> None:
        row = encoded(("Ada", 1, 1.0, True, "2000-01-01", "", None, None, None, "2026-01-31T09:30:00.000000Z"))
        table = Table("t", "g1", COLUMNS, {b"0-0": row})
        ages, balances = (chart_ask(COLUMNS, Query(), name) for name in ("age", "balance"))
        found = await asyncio.gather(*(views.chart(table, ask) for ask in (ages, balances) * 20))
        assert done == ["update", "chart", "update", "chart"]
        views.applied(table, table.apply([(b"0-1", row)]))
        assert await views.chart(table, ages) is found[0]

    with (
        patch.multiple(Mirror, update=noted("update"), chart=noted("chart")),
        patch.object(chart_queue, "KEPT_S", 60),
    ):
        running(scenario)


def test_too_many_different_queries_are_refused() -> None:
    async def scenario(views: Views) -> None:
        table = Table("t", "g1", COLUMNS)
        query = compile_query(COLUMNS, [("age", "asc")], None, None)
        await opened(views, table, query, 0, 10)
        await opened(views, table, query, 0, 11)
        with pytest.raises(FrameError) as caught:
            views.open(table, query, 0, 12, Heard())
        assert caught.value.code == Code.OVERLOADED
        views.open(table, query, 0, 11, Heard())

    running(scenario, max_queried=2)


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (
            [["nme", "=", "x"]],
            'expected a column (name, age, balance, vip, born, city, price, document, bytes, ts), found "nme"',
        ),
        (
            [["name", "==", "x"]],
            "expected an operator (=, !=, <, <=, >, >=, in, between, contains, starts with, is null, is not null), "
            'found "=="',
        ),
        ([["name"]], "expected a condition [column, operator, value], found ['name']"),
        ([["name", "=", 1, 2]], "expected a condition [column, operator, value], found ['name', '=', 1, 2]"),
        ([[1, "=", 1]], "expected a condition [column, operator, value], found [1, '=', 1]"),
        ([["name", "="]], 'expected a value for "name" =, found none'),
        ([["name", "=", 1]], 'expected a text for "name", found 1'),
        ([["name", "=", None]], 'expected a text for "name", found None'),
        ([["age", "=", "x"]], 'expected a 64-bit integer, as a number or a text of digits for "age", found "x"'),
        ([["age", "=", True]], 'expected a 64-bit integer, as a number or a text of digits for "age", found True'),
        ([["age", "<", 3.5]], 'expected a 64-bit integer, as a number or a text of digits for "age", found 3.5'),
        ([["age", "<", 2**63]], f'expected a 64-bit integer, as a number or a text of digits for "age", found {2**63}'),
        ([["balance", "<", "3"]], 'expected a number for "balance", found "3"'),
        ([["balance", "<", 10**400]], 'expected a number for "balance", found 1' + "0" * 99 + "…"),
        ([["vip", "=", 1]], 'expected true or false for "vip", found 1'),
        ([["vip", "<", True]], 'expected =, !=, in or is null for "vip" of type bool, found "<"'),
        ([["born", "=", "31.1.2026"]], 'expected a date such as "2026-01-31" for "born", found "31.1.2026"'),
        ([["ts", ">", "noon"]], 'expected a time such as "2026-01-31T09:30:00Z" for "ts", found "noon"'),
        ([["price", "<", "x"]], 'expected a number, also as a text of digits for "price", found "x"'),
        ([["price", "<", True]], 'expected a number, also as a text of digits for "price", found True'),
        (
            [["price", "=", f"0.{'3' * 40}"]],
            f'expected a number, also as a text of digits for "price", found "0.{"3" * 40}"',
        ),
        ([["document", "<", "x"]], 'expected =, !=, in or is null for "document" of type json, found "<"'),
        ([["bytes", "contains", "x"]], 'expected a string column for "contains", found "bytes" of type binary'),
        ([["age", "in", 3]], 'expected a list of values for "age" in, found 3'),
        ([["age", "in", [0] * 1001]], 'expected up to 1000 values for "age" in, found 1001'),
        ([["age", "between", [1]]], 'expected two values for "age" between, found 1'),
        ([["age", "contains", "1"]], 'expected a string column for "contains", found "age" of type int64'),
        ([["age", "is null", 3]], 'expected no value for "age" is null, found 3'),
        ([["age", "=", 3]] * 101, "expected up to 100 conditions, found 101"),
    ],
)
def test_bad_filters_say_what_was_expected_and_found(filter: Any, message: str) -> None:
    with pytest.raises(FrameError) as caught:
        compile_query(COLUMNS, None, filter, None)
    assert (caught.value.code, str(caught.value)) == (Code.BAD_FILTER, message)


def test_times_in_filters_may_be_written_in_any_iso_form() -> None:
    forms = ["2026-01-31T09:30:00Z", "2026-01-31 10:30:00+01:00", "2026-01-31T09:30", "2026-01-31T09:30:00.000000Z"]
    assert len({compile_query(COLUMNS, None, (("ts", "=", form),), None) for form in forms}) == 1


@settings(max_examples=200)
@given(
    st.lists(st.lists(CHANGE, max_size=4), min_size=1, max_size=12),
    st.integers(0, 4),
    st.integers(1, 14),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_b43_whoever_looks_now_and_then_has_the_newest_rows(batches: Any, offset: int, size: int, reads: Any) -> None:
    """One that is behind gets the steps that it has missed as one."""

    async def scenario(views: Views) -> None:
        table = Table("t", "g1", COLUMNS)
        window, _ = await opened(views, table, Query(newest=True), offset, size)
        step, rows = window.step, applied_to([], *window.since(0))
        for batch, reads_now in zip(batches, reads, strict=False):
            changes = [(key.encode(), encoded(row) if row is not None else None) for key, row in batch]
            views.applied(table, table.apply(changes))
            if reads_now and window.step > step:
                step, rows = window.step, applied_to(rows, *window.since(step))
                assert rows == applied_to([], *window.since(0))

    running(scenario)


def test_b43_of_a_row_that_arrives_only_that_row_is_sent() -> None:
    async def scenario(views: Views) -> None:
        def row(number: int) -> tuple[bytes, bytes]:
            stamp = f"2026-01-31T09:{number // 60:02d}:{number % 60:02d}.000000Z"
            return b"0-%d" % number, encoded(("Ada", number, 1.0, None, None, None, None, None, None, stamp))

        table = Table("t", "g1", COLUMNS, dict(row(number) for number in range(1_000)))
        first, _ = await opened(views, table, Query(newest=True), 0, 300)
        second, _ = await opened(views, table, Query(newest=True), 300, 300)
        adas, _ = await opened(
            views, table, compile_query(COLUMNS, None, [["name", "=", "Ada"]], None, order="newest"), 0, 300
        )
        steps = {window: window.step for window in (first, second, adas)}
        views.applied(table, table.apply([row(1_000), row(1_001)]))
        async with asyncio.timeout(60):
            while adas.step == steps[adas]:
                await asyncio.sleep(0.01)
        for window, newest in ((first, 1_001), (second, 701), (adas, 1_001)):
            event, body = window.since(steps[window])
            frame = json.loads(f"{{{body}}}")
            assert (event, frame["insert"], frame["drop"], frame["total"]) == ("delta", 2, 2, 1_002)
            assert [(index, key) for index, key, _ in frame["rows"]] == [(0, f"0-{newest}"), (1, f"0-{newest - 1}")]

    running(scenario)
