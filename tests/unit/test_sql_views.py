"""Views that come, go and rest: over a catalogue in memory and a real SQL process, without Kafka."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
import pytest
from live import PATIENCE_S

from liveboard.contract.board import View, Wiring
from liveboard.contract.frames import FrameError, Role
from liveboard.contract.names import CONTROL_TABLE
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, State
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.hub import Hub
from liveboard.serving.limits import Limits
from liveboard.serving.metrics import Counters
from liveboard.serving.pacing import Pace
from liveboard.serving.query import Query
from liveboard.serving.sql_views import SqlViews
from liveboard.serving.table import Table
from liveboard.serving.views import Views

ADMIN = Grant("admin", Role.ADMIN)
COLUMNS = (Column("kind", "string"), Column("amount", "bigint"), TS)
BY_KIND = View(name="by_kind", sql="SELECT kind, sum(amount)::BIGINT AS total FROM sales_ui GROUP BY kind ORDER BY 1")
OF_A_VIEW = View(name="of_a_view", sql="SELECT sum(total)::BIGINT AS total FROM by_kind")
TOTAL = View(name="total", sql="SELECT sum(amount)::BIGINT AS total FROM sales_ui")


class SqlStage:
    """What a server has for SQL, and a board with one table."""

    def __init__(self, views: Sequence[View] = ()) -> None:
        self.catalogue = Catalogue()
        self.windows = Views()
        limits = Limits(sql_seconds=1, sql_memory_mb=128)
        self.sql = SqlViews(views, self.catalogue, self.windows, limits, Counters())
        self.catalogue.watcher = Hub(self.catalogue, self.windows, Counters(), limits, self.sql)

    def bind(self, generation: str, amount: int, *more: str) -> None:
        """A live generation, with one row of kind a, and more tables."""
        names = ("sales_ui", *more)
        records = {
            state: GenerationRecord(
                state=state,
                wiring=Wiring({}, {}),
                tables=dict.fromkeys(names, COLUMNS),
                complete_at=dict.fromkeys(names, 1),
            )
            for state in (State.BUILDING, State.LIVE)
        }
        live = self.catalogue.live
        before = self.catalogue.status.generations if self.catalogue.status else {}
        building = {**before, generation: records[State.BUILDING]}
        self.catalogue.status_changed(BoardStatus(sources=(), live=live, generations=building, phase=Phase.BUILDING))
        for name in names:
            self.catalogue.loaded(Table(name, generation, COLUMNS, {b"0-0": row("a", amount)}))
        now_live = {generation: records[State.LIVE]}
        self.catalogue.status_changed(BoardStatus(sources=(), live=generation, generations=now_live, phase=Phase.LIVE))

    def change(self, number: int, kind: str, amount: int) -> None:
        """One row comes or changes."""
        self.catalogue.changed(self.catalogue.live, "sales_ui", [(b"0-%d" % number, row(kind, amount))])

    def rows(self, name: str, grant: Grant = ADMIN) -> list[list[Any]] | None:
        """What a table has; None where there is none."""
        if name not in [info.name for info in self.catalogue.infos(grant)]:
            return None
        return [orjson.loads(value) for value in self.catalogue.find(grant, name).window(0, 100)[1]]

    async def until_read(self, name: str, rows: list[list[Any]]) -> None:
        """Reads a table as a request over HTTP does, which waits a while, until it has these rows."""
        deadline = time.monotonic() + PATIENCE_S
        while self.rows(name) != rows:
            assert time.monotonic() < deadline, f"waited in vain, found {self.rows(name)}"
            await self.sql.bring_up_to_date(self.catalogue.find(ADMIN, name))

    def process(self) -> int:
        """The process that evaluates views."""
        process = self.sql._of_views._process._process
        assert process is not None
        return process.pid


class Eye:
    """Looks at a window."""

    def changed(self) -> None:
        pass


def row(kind: str, amount: int) -> bytes:
    return orjson.dumps([kind, amount, "2026-01-31T09:30:00.000000Z"])


async def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.005)


def played(stage: Callable[[], SqlStage], scenario: Callable[[SqlStage], Awaitable[None]]) -> None:
    async def play() -> None:
        made = stage()
        made.sql.start()
        try:
            await scenario(made)
        finally:
            await made.sql.stop()
            await made.windows.stop()

    asyncio.run(play())


def test_b40_an_admins_view_comes_changes_and_goes() -> None:
    async def scenario(stage: SqlStage) -> None:
        desk = Grant("desk", Role.VIEWER, frozenset({"sales_ui"}), stage.sql.defined)
        wall = Grant("wall", Role.VIEWER, frozenset({"total", "other_ui"}), stage.sql.defined)
        stage.bind("g1", 5)
        assert await stage.sql.reads(ADMIN, TOTAL) == ("sales_ui",)
        stage.sql.define("total", TOTAL)
        await until(lambda: stage.rows("total") == [[5]])
        # Who sees the tables sees the view; its name alone is not enough.
        assert stage.rows("total", desk) == [[5]]
        assert stage.rows("total", wall) is None
        assert [info.name for info in stage.catalogue.infos(desk)] == ["sales_ui", "total"]
        # It is a table for viewers' statements, but not for other views of admins.
        stage.change(1, "b", 7)
        while (await stage.sql.ask(desk, "SELECT total + 1 FROM total"))[1].rows[0][2] != b"[13]":
            pass
        with pytest.raises(FrameError, match='found "total"'):
            await stage.sql.reads(ADMIN, View(name="twice", sql="SELECT 2 * total FROM total"))
        # Another one of the same name takes its place, without a moment in which there is none.
        stage.sql.define("total", View(name="total", sql="SELECT count(*) AS n, 'x' AS x FROM sales_ui"))
        assert stage.rows("total") == [[12]]
        await until(lambda: stage.rows("total") == [[2, "x"]])
        # A table that comes with its name is what the name means, for the keys that name it.
        stage.bind("g2", 1, "total")
        assert stage.rows("total") == [["a", 1, "2026-01-31T09:30:00.000000Z"]]
        assert stage.rows("total", desk) is None
        with pytest.raises(FrameError, match="expected a name that no other table has"):
            await stage.sql.reads(ADMIN, TOTAL)
        stage.bind("g3", 1)
        await until(lambda: stage.rows("total", desk) == [[1, "x"]])
        stage.sql.define("total", None)
        assert stage.rows("total") is None
        assert stage.sql.defined == {}

    played(SqlStage, scenario)


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (View(name="orchestrator_status", sql="SELECT 1"), "a name that no other table has"),
        (View(name="sales_ui", sql="SELECT 1"), "a name that no other table has"),
        (View(name="by_kind", sql="SELECT 1"), "a name that no other table has"),
        (View(name="x", sql="SELECT now() AS t FROM sales_ui"), "depends on the tables alone"),
        (View(name="x", sql="DROP TABLE sales_ui"), "one SELECT statement"),
        (View(name="x", sql="SELECT kind FROM sales_ui", key=("amount",)), "as key"),
        (View(name="x", sql="SELECT kind FROM nowhere"), "expected a table"),
        (View(name="x", sql="SELECT count(*) FROM range(10000000000000), sales_ui"), "answered within 1 s"),
    ],
    ids=lambda value: value.sql if isinstance(value, View) else "",
)
def test_b40_what_is_no_view_is_refused_with_a_reason(view: View, why: str) -> None:
    async def scenario(stage: SqlStage) -> None:
        stage.bind("g1", 5)
        with pytest.raises(FrameError, match=why):
            await stage.sql.reads(ADMIN, view)

    played(lambda: SqlStage([BY_KIND]), scenario)


def test_b40_a_view_rests_while_nobody_looks_and_is_right_when_somebody_does() -> None:
    async def scenario(stage: SqlStage) -> None:
        stage.bind("g1", 5)
        await until(lambda: stage.rows("of_a_view") == [[5]])
        stage.change(1, "b", 7)
        # A statement of a viewer, answered after the change, was not in its way: so it would have been evaluated.
        assert (await stage.sql.ask(ADMIN, "SELECT sum(amount) FROM sales_ui"))[1].rows[0][2] == b'["12"]'
        assert stage.rows("by_kind") == [["a", 5]]
        assert stage.sql.lags() == {}
        # A view of a view brings that up to date too.
        await stage.until_read("of_a_view", [[12]])
        assert stage.rows("by_kind") == [["a", 5], ["b", 7]]
        window = stage.windows.open(stage.catalogue.find(ADMIN, "of_a_view"), Query(), 0, 10, eye := Eye())
        assert set(stage.sql.lags()) == {"by_kind", "of_a_view"}
        stage.change(2, "b", 1)
        assert stage.sql.lags()["by_kind"] >= 0
        await until(lambda: stage.rows("of_a_view") == [[13]])
        stage.windows.close(window, eye)
        assert stage.sql.lags() == {}
        # A swap is followed also where nobody looks: the tables before are not kept for a view.
        stage.bind("g2", 2)
        await until(lambda: stage.rows("by_kind") == [["a", 2]])
        await stage.until_read("of_a_view", [[2]])

    played(lambda: SqlStage([BY_KIND, OF_A_VIEW]), scenario)


def test_b40_views_survive_the_end_of_their_process() -> None:
    async def scenario(stage: SqlStage) -> None:
        stage.bind("g1", 5)
        await until(lambda: stage.rows("total") == [[5]])
        window = stage.windows.open(stage.catalogue.find(ADMIN, "total"), Query(), 0, 10, eye := Eye())
        os.kill(stage.process(), signal.SIGKILL)
        stage.change(1, "b", 7)
        await until(lambda: stage.rows("total") == [[12]])
        # In the middle of an answer: it is stopped, so that the answer cannot be there before the end.
        os.kill(stage.process(), signal.SIGSTOP)
        before = stage.process()
        stage.change(2, "b", 1)
        await until(lambda: stage.sql._of_views._turn.locked())
        os.kill(before, signal.SIGKILL)
        stage.change(3, "b", 1)
        await until(lambda: stage.rows("total") == [[14]])
        assert stage.process() != before
        stage.windows.close(window, eye)

    played(lambda: SqlStage([TOTAL]), scenario)


def test_b40_a_view_that_takes_too_long_keeps_no_other_one_from_its_turn() -> None:
    endless = View(name="endless", sql="SELECT count(*) FROM sales_ui, range(10000000000000)")

    async def scenario(stage: SqlStage) -> None:
        stage.bind("g1", 5)
        await until(lambda: stage.rows("total") == [[5]])
        window = stage.windows.open(stage.catalogue.find(ADMIN, "total"), Query(), 0, 10, eye := Eye())
        for number in range(1, 4):
            stage.change(number, "b", 1)
            await until(lambda number=number: stage.rows("total") == [[5 + number]])  # type: ignore[misc]
        assert stage.rows("endless") is None
        stage.windows.close(window, eye)

    played(lambda: SqlStage([endless, TOTAL]), scenario)


def test_b40_a_view_that_is_asked_for_before_its_tables_are_there_need_not_rest_for_it() -> None:
    async def scenario(stage: SqlStage) -> None:
        costs = stage.sql._of_views._pace._costs
        await until(lambda: costs)
        assert set(costs.values()) == {0.0}
        stage.bind("g1", 5)
        await until(lambda: stage.rows("total") == [[5]])

    played(lambda: SqlStage([TOTAL]), scenario)


def test_b40_views_that_were_asked_for_too_early_are_waited_for() -> None:
    async def scenario(stage: SqlStage) -> None:
        # Asked while there is nothing: that there is no such table is told when the tables are there.
        await until(lambda: stage.sql.is_working)
        stage.bind("g1", 5)
        stage.catalogue.loaded(Table(CONTROL_TABLE, None, COLUMNS, {}))
        while stage.sql.missing:
            await asyncio.sleep(0)
        assert (stage.rows("by_kind"), stage.rows("of_a_view")) == ([["a", 5]], [[5]])

    played(lambda: SqlStage([BY_KIND, OF_A_VIEW]), scenario)


def test_b40_many_changes_while_nobody_looks_are_not_kept_one_by_one() -> None:
    async def scenario(stage: SqlStage) -> None:
        stage.bind("g1", 0)
        await until(lambda: stage.rows("total") == [[0]])
        for shift in (0, 1):
            changes = [(b"0-%d" % number, row("b", (number + shift) % 7)) for number in range(20_000)]
            for at in range(0, len(changes), 500):
                stage.catalogue.changed("g1", "sales_ui", changes[at : at + 500])
            assert sum(len(held.changed) for held in stage.sql._of_views._held.values()) <= 10_500
            await stage.until_read("total", [[sum((number + shift) % 7 for number in range(20_000))]])
        # So many that they are picked from a copy of the table.
        changes = [(b"0-%d" % number, row("d", 1)) for number in range(9_000)]
        stage.catalogue.changed("g1", "sales_ui", [*changes, (b"0-19999", None)])
        expected = 9_000 + sum((number + 1) % 7 for number in range(9_000, 19_999))
        await stage.until_read("total", [[expected]])

    played(lambda: SqlStage([TOTAL]), scenario)


def test_b40_statements_share_a_tenth_of_the_time_and_light_ones_do_not_wait_for_heavy_ones() -> None:
    now = 100.0
    pace = Pace(lambda: now)
    costs = {"heavy": 1.0, **{f"light {number}": 0.005 for number in range(10)}}
    for _ in range(2):
        for who, cost in costs.items():
            pace.took(who, cost)
    intervals = {who: pace.due_at(who) - now + cost for who, cost in costs.items()}
    assert sum(cost / intervals[who] for who, cost in costs.items()) == pytest.approx(0.1)
    assert intervals["light 1"] < 1.5 < 15 < intervals["heavy"] < 20
    # Twenty alike have their turns evenly.
    pace = Pace(lambda: now)
    for _ in range(2):
        for number in range(20):
            pace.took(number, 0.1)
    assert pace.due_at(7) - now == pytest.approx(19.9)
    assert pace._free_at - now == pytest.approx(0.9, rel=0.2)
    # Who has nothing to do leaves its part to the others, and five times a second is enough.
    now += 1_000
    pace.took("one", 0.1)
    assert pace.due_at("one") - now == pytest.approx(0.9)
    pace.took("one", 0.001)
    assert pace.due_at("one") - now == pytest.approx(0.2)
