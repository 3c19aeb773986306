"""The tables in a terminal: what is counted, what is said, and that it fits."""

from __future__ import annotations

import io
import re
import time
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from liveboard.commands.display import Health, Light, Screen, Shot, Tables, state, status_line
from liveboard.config import default_board
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.names import Names
from liveboard.contract.tables import table_columns
from liveboard.kafka.reader import Change

NAMES = Names()

COLUMNS = table_columns(default_board())
TS = "2026-01-31T09:30:00.123456Z"
ROWS: dict[str, list[Any]] = {
    "users_ui": ["u00001", "Ada Lovelace", "ada.lovelace.1@northwind.example", 36, TS],
    "accounts_ui": ["u00001", "savings", 12000.5, TS],
    "final_ui": ["u00001", "Ada Lovelace", "ada.lovelace.1@northwind.example", 36, None, None, TS],
    "user_account": ["u00001", "savings", 12000.5, "Ada Lovelace", "ada@x.example", 36, TS],
    "by_type": ["savings", 6, 72003.0, 12000.5, TS, TS],
    "rejects_ui": ["users", 0, 17, 'age: expected bigint, found "x" (string)', '{"age": "x"}', TS],
}
LIVE = Health(Light.LIVE)
STALE = Health(Light.STALE, datetime(2026, 1, 31, 12, 3, 4))


def _change(table: str, key: str, row: list[Any] | None, age_s: float = 0.0) -> Change:
    written_ms = int((time.time() - age_s) * 1000)
    value = None if row is None else orjson.dumps(row)
    return Change(NAMES.changelog("g1", table), key.encode(), value, written_ms)


def _at(row: list[Any], age_s: float = 0.0) -> list[Any]:
    """The row of an event of that age."""
    return [*row[:-1], timestamp_text(int((time.time() - age_s) * 1000))]


def _tables(rows: int = 6) -> Tables:
    tables = Tables(NAMES, COLUMNS)
    tables.apply("g1", [_change(table, str(key), _at(row)) for table, row in ROWS.items() for key in range(rows)])
    return tables


def _shot(tables: Tables, name: str) -> Shot:
    return next(shot for shot in tables.shots() if shot.name == name)


def _picture(
    tables: Tables, width: int, height: int, health: Health = LIVE, notices: tuple[str, ...] = ()
) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), record=True, force_terminal=True)
    screen = Screen("Kafka 127.0.0.1:9092 · storage .liveboard")
    console.print(screen.draw(tables.shots(), health, notices, width, height))
    return console.export_text().splitlines()


@given(st.lists(st.tuples(st.sampled_from(["users_ui", "final_ui"]), st.integers(0, 9), st.booleans()), max_size=60))
def test_rows_are_counted_exactly(steps: list[tuple[str, int, bool]]) -> None:
    tables = Tables(NAMES, COLUMNS)
    expected: dict[str, dict[int, bool]] = {"users_ui": {}, "final_ui": {}}
    for table, key, there in steps:
        tables.apply("g1", [_change(table, str(key), ROWS[table] if there else None)])
        expected[table].pop(key, None)
        if there:
            expected[table][key] = True
    for table, keys in expected.items():
        assert _shot(tables, table).total == len(keys)
        assert len(_shot(tables, table).rows) == min(8, len(_shot(tables, table).rows))


def test_the_newest_rows_come_first_and_a_changed_row_is_new() -> None:
    tables = Tables(NAMES, COLUMNS)
    for key, age in (("a", 1), ("b", 2), ("c", 3), ("a", 4)):
        tables.apply("g1", [_change("users_ui", key, ["u", "n", "e", age, TS])])
    tables.apply("g1", [_change("users_ui", "b", None)])
    assert [orjson.loads(row)[3] for row in _shot(tables, "users_ui").rows] == [4, 3]


def test_the_rate_is_of_the_last_seconds_and_history_does_not_count() -> None:
    tables = Tables(NAMES, COLUMNS)
    # The newest row is as old as its event, whenever it was written.
    old = [_change("users_ui", f"old {n}", _at(ROWS["users_ui"], 3600), age_s=3600) for n in range(1000)]
    new = [_change("users_ui", f"new {n}", _at(ROWS["users_ui"], 42), age_s=2) for n in range(50)]
    tables.apply("g1", [*old, *new])
    shot = _shot(tables, "users_ui")
    assert (shot.total, shot.rate) == (1050, 10)
    assert shot.newest_s is not None
    assert 41 < shot.newest_s < 60


def test_another_generation_begins_anew() -> None:
    tables = _tables()
    tables.apply("g2", [])
    assert [shot.total for shot in tables.shots()] == [0] * len(ROWS)


@pytest.mark.parametrize(
    ("health", "newest_s", "expected"),
    [
        (Health(), None, "starting …"),
        (Health(Light.BUILDING), 3, "building"),
        (LIVE, None, "live · no rows yet"),
        (LIVE, 0.24, "live · newest row 0.2 s ago"),
        (LIVE, 42, "live · newest row 42 s ago"),
        (LIVE, 600, "live · newest row 10 min ago"),
        (LIVE, 3 * 3600, "live · newest row 3 h ago"),
        (LIVE, 3 * 86400, "live · newest row 3 days ago"),
        (STALE, 0.2, "stale since 12:03:04"),
    ],
)
def test_the_state_line(health: Health, newest_s: float | None, expected: str) -> None:
    shot = Shot("users_ui", COLUMNS["users_ui"], 1234, 9.6, newest_s, [])
    assert state(shot, health) == expected
    assert status_line(shot, health) == f"users_ui: 1,234 rows, 10 changes/s, {expected}"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 24), (160, 50), (80, 60), (50, 15), (30, 4), (20, 1)])
@pytest.mark.parametrize("notices", [(), ("pipeline starts again in 4 s: " + "why " * 60,)])
def test_every_picture_fits_its_terminal(width: int, height: int, notices: tuple[str, ...]) -> None:
    picture = _picture(_tables(), width, height, STALE, notices)
    assert len(picture) <= max(height, 1 + len(notices))
    assert max(map(len, picture)) <= width


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 24), (120, 50)])
def test_every_table_is_there_with_heading_rows_and_state(width: int, height: int) -> None:
    picture = "\n".join(_picture(_tables(), width, height))
    for table in COLUMNS:
        assert re.search(rf"{table}  6 rows · \d changes/s", picture)
    assert picture.count("live · newest row 0.") == len(ROWS)
    assert re.search(r" \d\d:\d\d:\d\d\.\d{3} ", picture)
    for text in (
        "userId",
        "accountType",
        "balance",
        "Ada",
        "12000.5",
        "null",
        "age: expected",
    ):
        assert text in picture
    assert "Kafka 127.0.0.1:9092 · storage .liveboard" in picture
    assert "Ctrl-C stops" in picture


def test_wide_and_low_terminals_have_tables_side_by_side() -> None:
    assert any("users_ui" in line and "accounts_ui" in line for line in _picture(_tables(), 160, 24))
    assert not any("users_ui" in line and "accounts_ui" in line for line in _picture(_tables(), 160, 60))


def test_small_terminals_have_one_line_per_table() -> None:
    picture = _picture(_tables(), 60, 10)
    assert len(picture) == 1 + len(ROWS)
    assert picture[3].startswith("final_ui")


def test_notices_are_shown() -> None:
    assert "pipeline starts again in 4 s" in _picture(_tables(), 80, 24, STALE, ("pipeline starts again in 4 s",))[1]


def test_nulls_are_dimmed() -> None:
    console = Console(width=160, height=50, file=io.StringIO(), record=True, force_terminal=True)
    console.print(Screen("where").draw(_tables().shots(), LIVE, [], 160, 50))
    assert re.search(r"\x1b\[2m *null", console.export_text(styles=True))


def test_data_cannot_steer_the_terminal() -> None:
    tables = Tables(NAMES, COLUMNS)
    tables.apply("g1", [_change("users_ui", "1", ["\x1b]0;owned\x07", "a\nb", "\x9b2J", 1, TS])])
    console = Console(width=160, height=50, file=io.StringIO(), record=True, color_system=None)
    console.print(Screen("where").draw(tables.shots(), LIVE, ["\x1b[2J"], 160, 50))
    text = console.export_text()
    assert not any(not (c.isprintable() or c == "\n") for c in text)
    assert "·]0;owned·" in text


def test_a_row_that_does_not_fit_its_table_is_shown_as_it_is() -> None:
    tables = Tables(NAMES, COLUMNS)
    tables.apply("g1", [Change(NAMES.changelog("g1", "users_ui"), b"1", b"[1,2]", 1)])
    assert any("[1,2]" in line for line in _picture(tables, 160, 50))


def test_columns_keep_their_width_while_rows_change() -> None:
    screen = Screen("where")
    tables = _tables()
    before = screen._fit(_shot(tables, "users_ui"), [], 200)
    screen.draw(tables.shots(), LIVE, [], 200, 60)
    wide = screen._fit(_shot(tables, "users_ui"), [], 200)
    tables.apply("g1", [_change("users_ui", str(key), ["u", "n", "e", 1, TS]) for key in range(9)])
    screen.draw(tables.shots(), LIVE, [], 200, 60)
    assert before < wide == screen._fit(_shot(tables, "users_ui"), [], 200)
