"""Pictures of a column over all rows of a query: what there is to draw, computed by the mirror.

A numeric column has a distribution, and a time series where the table has a `ts`; every other column has its most
frequent values. A bin, like a step in time, holds what is at its beginning and all up to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import TS, Column
from liveboard.serving.query import Query

BINS = 30
STEPS = 60
VALUES = 20

Run = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs SQL with its parameters."""


class Distribution(msgspec.Struct, frozen=True):
    """How many rows have a value in each of the bins of one width between `low` and `high`, and what they come to."""

    low: float
    high: float
    counts: list[int]
    mean: float
    sum: float


class SeriesStep(msgspec.Struct, frozen=True):
    """The values of the rows of a span of time."""

    at: int
    """When it begins, in milliseconds since 1970."""
    least: float
    mean: float
    greatest: float


class Frequency(msgspec.Struct, frozen=True):
    """How many rows have a value."""

    value: str | None
    rows: int


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to draw; empty parts are left to the one who draws."""

    column: str
    rows: int
    distribution: Distribution | None = None
    series: list[SeriesStep] = []
    frequencies: list[Frequency] = []


class ChartAsk(msgspec.Struct, frozen=True):
    """A column, over all rows that a query lets through."""

    query: Query
    columns: tuple[Column, ...]
    place: int

    def answer(self, run: Run, table: str) -> Chart:
        """The chart of the table with this name in the database."""
        where, parameters = self.query.where or "TRUE", self.query.parameters
        column = self.columns[self.place]
        rows = run(f"SELECT count(*) FROM {table} WHERE {where}", parameters)[0][0]
        if not column.kind.is_number:
            return Chart(column=column.name, rows=rows, frequencies=self._frequencies(run, table, where))
        # Numbers that are not finite have no place in a picture.
        source = (
            f"(SELECT *, c{self.place}::DOUBLE AS v FROM {table} WHERE ({where}) AND isfinite(c{self.place}::DOUBLE))"
        )
        return Chart(
            column=column.name,
            rows=rows,
            distribution=self._distribution(run, source),
            series=self._series(run, source),
        )

    def _frequencies(self, run: Run, table: str, where: str) -> list[Frequency]:
        sql = f"SELECT c{self.place}::VARCHAR AS v, count(*) AS n FROM {table} WHERE {where} GROUP BY v"
        found = run(f"{sql} ORDER BY n DESC, v NULLS LAST LIMIT {VALUES}", self.query.parameters)
        return [Frequency(value, count) for value, count in found]

    def _distribution(self, run: Run, source: str) -> Distribution | None:
        parameters = self.query.parameters
        low, high, mean, total = run(f"SELECT min(v), max(v), avg(v), sum(v) FROM {source}", parameters)[0]
        if low is None:
            return None
        if low == high:
            count = run(f"SELECT count(*) FROM {source}", parameters)[0][0]
            return Distribution(low, high, [count], mean, total)
        counts = [0] * BINS
        bin_ = f"least(floor((v / 2 - ? / 2) / (? / 2 - ? / 2) * {BINS}), {BINS - 1})::INT"
        # DuckDB takes parameters in the order of the text.
        sql = f"SELECT {bin_} AS b, count(*) FROM {source} GROUP BY b"
        for place, count in run(sql, (low, high, low, *parameters)):
            counts[place] = count
        return Distribution(low, high, counts, mean, total)

    def _series(self, run: Run, source: str) -> list[SeriesStep]:
        if TS not in self.columns:
            return []
        time = f"epoch_ms(try_cast(c{self.columns.index(TS)} AS TIMESTAMP))"
        parameters = self.query.parameters
        first, last = run(f"SELECT min({time}), max({time}) FROM {source}", parameters)[0]
        if first is None:
            return []
        width = max(1, (last - first) // STEPS + 1)
        sql = f"SELECT ({time} - ?) // ? AS step, min(v), avg(v), max(v) FROM {source} WHERE {time} IS NOT NULL"
        found = run(f"{sql} GROUP BY step ORDER BY step", (first, width, *parameters))
        return [SeriesStep(first + step * width, least, mean, greatest) for step, least, mean, greatest in found]


def chart_ask(columns: Sequence[Column], query: Query, name: str) -> ChartAsk:
    """What to compute for a column; a FrameError if there is no such column."""
    names = [column.name for column in columns]
    if name not in names:
        raise FrameError(Code.BAD_FILTER, f'column: expected one of {", ".join(names)}, found "{name[:100]}"')
    return ChartAsk(query, tuple(columns), names.index(name))
