"""What the board's owner does beside Spark: how fast alerts, and aggregates over tables by key, follow changelogs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from load import ACCOUNT_TYPES, Event, produce
from processes import in_process, say
from report import Figure
from stage import PATIENCE_S, Stage

from liveboard.alerts import following as alerts
from liveboard.alerts.watch import Watch
from liveboard.config import AlertSettings, default_board
from liveboard.contract.board import Board, Wiring
from liveboard.contract.changelog import Value, encode_row, timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names, generation_id
from liveboard.contract.status import GenerationRecord, State
from liveboard.contract.tables import table_columns
from liveboard.counting import following as counting

_NAMES = Names()
_FIRST_MS = 1_700_000_000_000


def owner(stage: Stage) -> list[Figure]:
    """A table from its beginning, then every tenth row once more with another balance."""
    return in_process("owner", 2 * PATIENCE_S, _measure, stage)


def _measure(stage: Stage) -> list[Figure]:
    board, rows = default_board(), stage.sizes.rows
    accounts = board.sources["accounts"]
    by_key = type(accounts)(
        name="accounts", topic="accounts", table="accounts_ui", schema=accounts.schema, mode="upsert", key=("userId",)
    )
    small = Board(sources={"accounts": by_key}, aggregates=dict(board.aggregates))
    tables, generation = table_columns(small), generation_id(time.time_ns())
    record = GenerationRecord(state=State.LIVE, wiring=Wiring({"accounts": "accounts"}, {}), tables=tables)
    stage.admin.create_generation(_NAMES, generation, tables)
    say(f"owner: writing a table of {rows:,} rows")
    topic = _NAMES.changelog(generation, "accounts_ui")
    produce(stage.bootstrap, _rows(topic, range(rows), 0))
    overdrawn = AlertSettings(name="overdrawn", table="accounts_ui", when=(("balance", "<", 0),))
    watch = Watch(overdrawn, tables["accounts_ui"], set(), lambda: _FIRST_MS)
    watching = alerts.WatchedTables(stage.client_config, _NAMES, stage.admin, generation, record, [watch], ())
    groups = counting.CountedTables(stage.client_config, _NAMES, stage.admin, small, generation, lambda: True)
    told: list[object] = []

    def look() -> None:
        told.extend(watching.read())

    first = {
        "alerts": _seconds(look, lambda: watching.is_settled),
        "aggregates over a table by key": _seconds(groups.advance, lambda: groups.is_begun),
    }
    before, some = len(told), range(0, rows, 10)
    produce(stage.bootstrap, _rows(topic, some, 1))
    crossings = sum(_balance(number, 0) < 0 or _balance(number, 1) < 0 for number in some)
    say(f"owner: {len(some):,} rows change, of which {crossings:,} cross the limit")
    changed = _seconds(look, lambda: len(told) >= before + crossings)
    watching.close()
    groups.close()
    return [
        *[Figure(f"owner, {what}, a table from its beginning", "rows/s", rows / s) for what, s in first.items()],
        Figure("owner, alerts, rows that change", "rows/s", len(some) / changed),
    ]


def _balance(number: int, wave: int) -> float:
    """Below zero in every hundredth row, and for some others in the second wave."""
    return number / 4 if number % 100 != 10 * wave or not number else -float(number)


def _rows(topic: str, numbers: Iterable[int], wave: int) -> Iterable[Event]:
    for number in numbers:
        ts = timestamp_text(_FIRST_MS + number + wave)
        row: list[Value] = [f"u{number}", ACCOUNT_TYPES[number % 5], _balance(number, wave), ts]
        yield Event(topic, encode_row(row), key=f'="u{number}"')


def _seconds(advance: Callable[[], None], is_done: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not is_done():
        advance()
        if time.monotonic() - began > PATIENCE_S:
            raise LiveboardError(f"gave up after {PATIENCE_S:.0f} s of following a changelog")
    return time.monotonic() - began
