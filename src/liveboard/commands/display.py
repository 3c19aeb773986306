"""The tables as a terminal shows them: a model that the changelogs are poured into, and how it looks."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from rich.box import ROUNDED
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from liveboard.contract.changelog import TS_AT, ChangelogError, Value, decode_row
from liveboard.contract.names import REJECTS_TABLE, Names
from liveboard.contract.schema import Column
from liveboard.kafka.reader import Change

NEWEST_ROWS = 8
_RATE_S = 5
_CELL_CHARACTERS = 200
_NARROWEST_CELL = 3
_GAP = 2
_SIDE_BY_SIDE_WIDTH = 140
_ENOUGH_ROWS = 5
_TALL = 30


class Light(Enum):
    """What the pipeline is doing; its value is the colour it is shown in."""

    STARTING = "yellow"
    BUILDING = "cyan"
    LIVE = "green"
    STALE = "red"


@dataclass(frozen=True)
class Health:
    """The light of the pipeline, and for STALE the moment since when."""

    light: Light = Light.STARTING
    since: datetime | None = None


@dataclass(frozen=True)
class Shot:
    """A table at one moment; `rows` are the newest, the newest first, each a raw changelog value."""

    name: str
    columns: Sequence[Column]
    total: int
    rate: float
    newest_s: float | None
    rows: Sequence[bytes]


class LiveTable:
    """Counts a table's rows exactly and keeps its newest ones, from the records of its changelog."""

    def __init__(self, name: str, columns: Sequence[Column]) -> None:
        self.name = name
        self.columns = columns
        self._keys: set[bytes] = set()
        self._newest: dict[bytes, bytes] = {}
        self._newest_ts = b""
        self._per_second: Counter[int] = Counter()

    def apply(self, change: Change) -> None:
        """Adds, changes or removes a row."""
        self._newest.pop(change.key, None)
        if change.value is None:
            self._keys.discard(change.key)
        else:
            self._keys.add(change.key)
            self._newest[change.key] = change.value
            if len(self._newest) > NEWEST_ROWS:
                del self._newest[next(iter(self._newest))]
            self._newest_ts = max(self._newest_ts, change.value[TS_AT])
        self._per_second[change.timestamp_ms // 1000] += 1

    def shot(self, now: float) -> Shot:
        """How the table is at a time in seconds since the epoch; the rate is that of the seconds before."""
        window = range(int(now) - _RATE_S, int(now))
        for second in [second for second in self._per_second if second < window.start]:
            del self._per_second[second]
        return Shot(
            self.name,
            self.columns,
            len(self._keys),
            sum(self._per_second[second] for second in window) / _RATE_S,
            _since(self._newest_ts, now),
            list(reversed(self._newest.values())),
        )


class Tables:
    """All tables of a board. One thread may pour changes in while another takes shots."""

    def __init__(self, names: Names, columns: Mapping[str, Sequence[Column]]) -> None:
        self._names = names
        self._columns = columns
        self._lock = threading.Lock()
        self._generation: str | None = None
        self._begin(None)

    def apply(self, generation: str | None, changes: Iterable[Change]) -> None:
        """Takes records of a generation's changelogs; with another generation all tables begin anew."""
        with self._lock:
            if generation != self._generation:
                self._begin(generation)
            for change in changes:
                self._by_topic[change.topic].apply(change)

    def shots(self) -> list[Shot]:
        """How all tables are now, at one and the same moment."""
        now = time.time()
        with self._lock:
            return [table.shot(now) for table in self._by_topic.values()]

    def _begin(self, generation: str | None) -> None:
        self._generation = generation
        self._by_topic = {
            self._names.changelog(generation or "", table): LiveTable(table, columns)
            for table, columns in self._columns.items()
        }


def _since(ts: bytes, now: float) -> float | None:
    """How long ago the event of a row was, as on the page; None where there is no row, or no time in it."""
    try:
        return max(0.0, now - datetime.fromisoformat(ts.decode()).timestamp())
    except ValueError:
        return None


def status_line(shot: Shot, health: Health) -> str:
    """One line about a table, for output that is not a terminal."""
    return f"{shot.name}: {shot.total:,} rows, {shot.rate:,.0f} changes/s, {state(shot, health)}"


def state(shot: Shot, health: Health) -> str:
    """What may be said of a table's rows: whether they are current."""
    match health.light:
        case Light.STARTING:
            return "starting …"
        case Light.BUILDING:
            return "building"
        case Light.STALE:
            return f"stale since {health.since:%H:%M:%S}"
        case Light.LIVE:
            newest = "no rows yet" if shot.newest_s is None else f"newest row {_age(shot.newest_s)} ago"
            return f"live · {newest}"


class Screen:
    """Draws all tables into a terminal of any size."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._widths: dict[tuple[str, str], int] = {}

    def draw(
        self, shots: Sequence[Shot], health: Health, notices: Sequence[str], width: int, height: int
    ) -> RenderableType:
        """One picture, never larger than the terminal."""
        top = [self._header(), *[_line(notice, "yellow") for notice in notices]]
        room = height - len(top)
        tables = [shot for shot in shots if shot.name != REJECTS_TABLE]
        rejects = [shot for shot in shots if shot.name == REJECTS_TABLE]
        reject_rows = 1 if room < _TALL else 2
        across, rows = _layout(len(tables), room - len(rejects) * (reject_rows + 2), width)
        if not rows:
            return Group(*top, _summary(shots, health, room))
        grid = Table.grid(expand=True)
        for _ in range(across):
            grid.add_column(ratio=1)
        panels = [self._panel(shot, health, width // across, rows) for shot in tables]
        for first in range(0, len(panels), across):
            grid.add_row(*panels[first : first + across])
        small = [self._panel(shot, health, width, reject_rows, heading=False) for shot in rejects]
        return Group(*top, grid, *small)

    def _header(self) -> RenderableType:
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        line.add_column(no_wrap=True, justify="right")
        line.add_row(Text("liveboard", "bold"), Text(self._about, "dim"), Text("Ctrl-C stops", "dim"))
        return line

    def _panel(self, shot: Shot, health: Health, width: int, rows: int, *, heading: bool = True) -> Panel:
        """The table's newest rows in a frame that says the rest."""
        lines = [_cells(row, shot.columns) for row in shot.rows[:rows]]
        if heading:
            lines.insert(0, [_line(column.name, "bold") for column in shot.columns])
        widths = self._fit(shot, lines, width - 4)
        return Panel(
            Text("\n", no_wrap=True, overflow="crop").join(_row(line, widths, shot.columns) for line in lines),
            title=Text.assemble((shot.name, "bold"), f"  {shot.total:,} rows · {shot.rate:,.0f} changes/s"),
            title_align="left",
            subtitle=Text(state(shot, health), health.light.value),
            subtitle_align="right",
            box=ROUNDED,
            border_style="bright_black",
            width=width,
            height=rows + 2 + heading,
        )

    def _fit(self, shot: Shot, lines: Sequence[Sequence[Text]], room: int) -> list[int]:
        """Widths that keep still while rows come and go, the widest columns cut until all fit."""
        for index, column in enumerate(shot.columns):
            seen = (shot.name, column.name)
            self._widths[seen] = max([self._widths.get(seen, 1), *[line[index].cell_len for line in lines]])
        widths = [self._widths[shot.name, column.name] for column in shot.columns]
        while sum(widths) + _GAP * (len(widths) - 1) > room and max(widths) > _NARROWEST_CELL:
            widths[widths.index(max(widths))] -= 1
        return widths


def _layout(tables: int, lines: int, width: int) -> tuple[int, int]:
    """How many tables beside each other, and how many rows of each; none if not even one fits."""

    def rows(across: int) -> int:
        return max(0, min(NEWEST_ROWS, lines // -(-tables // across) - 3)) if tables else 0

    stacked = rows(1)
    if stacked < _ENOUGH_ROWS and width >= _SIDE_BY_SIDE_WIDTH:
        return 2, rows(2)
    return 1, stacked


def _summary(shots: Sequence[Shot], health: Health, lines: int) -> Table:
    """One line per table, where there is no room for more."""
    table = Table.grid(padding=(0, _GAP))
    for _ in range(4):
        table.add_column(no_wrap=True)
    for shot in shots[: max(0, lines)]:
        counts = (f"{shot.total:,} rows", f"{shot.rate:,.0f} changes/s")
        table.add_row(Text(shot.name, "bold"), *counts, Text(state(shot, health), health.light.value))
    return table


def _line(text: str, style: str = "") -> Text:
    return Text(_clean(text), style, no_wrap=True, overflow="ellipsis")


def _row(cells: Sequence[Text], widths: Sequence[int], columns: Sequence[Column]) -> Text:
    for cell, width, column in zip(cells, widths, columns, strict=True):
        cell.truncate(width, overflow="ellipsis")
        cell.align(column.kind.align, width)
    return Text(" " * _GAP).join(cells)


def _cells(row: bytes, columns: Sequence[Column]) -> list[Text]:
    try:
        values: Sequence[Value] = decode_row(row, columns)
    except ChangelogError:
        values = [row.decode(errors="replace"), *[None] * (len(columns) - 1)]
    return [_cell(value, column) for value, column in zip(values, columns, strict=True)]


def _cell(value: Value, column: Column) -> Text:
    if value is None:
        return Text("null", "dim")
    return Text(_clean(_SHOWN[column.kind.name](value)))


def _true_or_false(value: Value) -> str:
    return str(value).lower()


def _time_of_day(value: Value) -> str:
    """To the millisecond: these rows are of the last moments."""
    return str(value)[11:23]


_SHOWN: dict[str, Callable[[Value], str]] = {
    "string": str,
    "boolean": _true_or_false,
    "int": str,
    "bigint": str,
    "double": str,
    "decimal": str,
    "date": str,
    "timestamp": _time_of_day,
    "json": str,
    "binary": str,
}


def _clean(text: str) -> str:
    """Data must not be able to steer the terminal."""
    return "".join(c if c.isprintable() else "·" for c in text[:_CELL_CHARACTERS])


def _age(seconds: float) -> str:
    for limit, unit, name in ((10, 1, "s"), (120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds:.1f} s" if limit == 10 else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} days"
