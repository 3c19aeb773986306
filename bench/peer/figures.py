"""Figures of the two systems side by side: as rows against their targets, as a table and as a file."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_MET = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


@dataclass(frozen=True)
class Target:
    """What is wanted of the ratio, or of liveboard alone."""

    most: float
    of_ratio: bool = True

    def __str__(self) -> str:
        return f"{'ratio' if self.of_ratio else 'liveboard'} ≤ {self.most:g}"

    def met(self, liveboard: float | None, ratio: float | None) -> bool | None:
        """Whether it is reached, None where nothing can be said."""
        found = ratio if self.of_ratio else liveboard
        return None if found is None else found <= self.most


@dataclass(frozen=True)
class Figure:
    """What one round measured; a system that could not be measured has None."""

    measure: str
    unit: str
    liveboard: float | None
    deephaven: float | None
    target: Target | None = None


Row = dict[str, Any]


def rows(rounds: Sequence[Sequence[Figure]]) -> list[Row]:
    """The figures of several rounds as rows of medians; the ratio is liveboard / Deephaven."""
    found: dict[str, list[Figure]] = {}
    for figure in (figure for each in rounds for figure in each):
        found.setdefault(figure.measure, []).append(figure)
    return [_row(figures) for figures in found.values()]


def _row(figures: Sequence[Figure]) -> Row:
    ours = [figure.liveboard for figure in figures if figure.liveboard is not None]
    theirs = [figure.deephaven for figure in figures if figure.deephaven is not None]
    liveboard = statistics.median(ours) if ours else None
    deephaven = statistics.median(theirs) if theirs else None
    ratio = liveboard / deephaven if liveboard is not None and deephaven else None
    last = figures[-1]
    return {
        "measure": last.measure,
        "unit": last.unit,
        "liveboard": _rounded(liveboard),
        "deephaven": _rounded(deephaven),
        "ratio": _rounded(ratio),
        "target": str(last.target) if last.target else None,
        "met": last.target.met(liveboard, ratio) if last.target else None,
        "rounds": {"liveboard": [*map(_rounded, ours)], "deephaven": [*map(_rounded, theirs)]},
    }


def keep(file: Path, about: Mapping[str, Any], name: str, run: Mapping[str, Any], measured: list[Row]) -> None:
    """Writes rows into the file, each in the place of an older one of the same measure; the others stay.

    `run` says how this measure was taken; `about`, with the date and the machine, is of the last run.
    """
    kept = load(file)
    results = {row["measure"]: row for row in (*kept["results"], *measured)}
    document = {**about, "runs": {**kept["runs"], name: run}, "results": list(results.values())}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_json(document))


def load(file: Path) -> dict[str, Any]:
    """What the file has, or nothing in the same form."""
    try:
        kept: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        kept = {"runs": {}, "results": []}
    return kept


def show(measured: Iterable[Row]) -> None:
    """Prints the table and how many targets are met."""
    table = Table("measure", "unit", "liveboard", "Deephaven", "ratio", "target", "met", title="liveboard / Deephaven")
    for column in (2, 3, 4):
        table.columns[column].justify = "right"
    listed = list(measured)
    for before, row in zip([*listed[:1], *listed], listed, strict=False):
        if before["measure"].split(",")[0] != row["measure"].split(",")[0]:
            table.add_section()
        texts = (
            row["measure"],
            row["unit"],
            _spread(row["liveboard"], row["rounds"]["liveboard"]),
            _spread(row["deephaven"], row["rounds"]["deephaven"]),
            text(row["ratio"]),
            row["target"] or "",
        )
        table.add_row(*texts, _MET[row["met"]])
    Console(width=None if os.isatty(1) else 150).print(table)
    aimed = [row for row in listed if row["met"] is not None]
    print(f"{sum(row['met'] for row in aimed)} of {len(aimed)} targets met")


def text(value: float | None) -> str:
    """A figure to read."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.3g}"


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def _spread(value: float | None, each: Sequence[float]) -> str:
    return text(value) + (f" ({text(min(each))}-{text(max(each))})" if len(each) > 1 else "")


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _json(document: Mapping[str, Any]) -> str:
    """Indented, with a line for each row and each curve."""
    lines = ["{"]
    for key, value in document.items():
        if key == "results":
            lines += ['  "results": [', ",\n".join(f"    {_line(row)}" for row in value), "  ],"]
        elif key == "runs":
            each = [f"    {_line(name)}: {_line(run)}" for name, run in value.items()]
            lines += ['  "runs": {', ",\n".join(each), "  },"]
        else:
            lines.append(f"  {_line(key)}: {_line(value)},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, "}", ""])


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
