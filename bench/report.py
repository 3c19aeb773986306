"""What was measured: figures against their targets, kept with how they were measured, and shown as a table."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from liveboard import __version__
from liveboard.install import java

_ROOT = Path(__file__).parents[1]
_SYSTEMS = ("liveboard", "deephaven")
_MET = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


@dataclass(frozen=True)
class Target:
    """What is wanted of liveboard's value, or of its ratio to Deephaven's: not more, unless `at_least`."""

    limit: float
    of_ratio: bool = False
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'ratio ' if self.of_ratio else ''}{'≥' if self.at_least else '≤'} {self.limit:,g}"

    def met(self, values: Mapping[str, float]) -> bool | None:
        """Whether it is reached, None where nothing can be said."""
        found = values.get("ratio" if self.of_ratio else "liveboard")
        if found is None:
            return None
        return found >= self.limit if self.at_least else found <= self.limit


@dataclass(frozen=True)
class Figure:
    """What one round measured; a system that was not or could not be measured has None."""

    measure: str
    unit: str
    liveboard: float | None
    deephaven: float | None = None
    target: Target | None = None


Row = dict[str, Any]
"""A figure as it is kept: without what there is none of."""


def rows(rounds: Sequence[Sequence[Figure]]) -> list[Row]:
    """The figures of several rounds as rows of medians; the ratio is liveboard / Deephaven."""
    found: dict[str, list[Figure]] = {}
    for figure in (figure for each in rounds for figure in each):
        found.setdefault(figure.measure, []).append(figure)
    return [_row(figures) for figures in found.values()]


def _row(figures: Sequence[Figure]) -> Row:
    last = figures[-1]
    measured = {system: [getattr(figure, system) for figure in figures] for system in _SYSTEMS}
    rounds = {system: found for system, each in measured.items() if (found := [v for v in each if v is not None])}
    values = {system: statistics.median(each) for system, each in rounds.items()}
    if "liveboard" in values and values.get("deephaven"):
        values["ratio"] = values["liveboard"] / values["deephaven"]
    row: Row = {"measure": last.measure, "unit": last.unit}
    row |= {name: _rounded(value) for name, value in values.items()}
    if last.target:
        row |= {"target": str(last.target), "met": last.target.met(values)}
    if len(figures) > 1:
        row["rounds"] = {system: [*map(_rounded, each)] for system, each in rounds.items()}
    return row


def keep(file: Path, name: str, run: Mapping[str, Any], results: list[Row]) -> None:
    """Writes a run and its rows into the file, in the place of the older run of that name; the others stay."""
    kept = {**load(file), name: {**run, "results": results}}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_json(kept))


def load(file: Path) -> dict[str, dict[str, Any]]:
    """The runs that the file has, by name: how each was made, and its rows under `results`."""
    try:
        kept: dict[str, dict[str, Any]] = json.loads(file.read_text())
    except FileNotFoundError:
        kept = {}
    return kept


def show(measured: Iterable[Row], title: str) -> None:
    """Prints the table and how many targets are met."""
    listed = list(measured)
    names = ["liveboard", "deephaven", "ratio"] if any("deephaven" in row for row in listed) else ["liveboard"]
    table = Table("measure", "unit", *names, "target", "met", title=title)
    for column in table.columns[2 : 2 + len(names)]:
        column.justify = "right"
    for before, row in zip([*listed[:1], *listed], listed, strict=False):
        if _topic(before) != _topic(row):
            table.add_section()
        values = [spread(row, name) for name in names]
        table.add_row(row["measure"], row["unit"], *values, row.get("target"), _MET[row.get("met")])
    Console(width=None if os.isatty(1) else 150).print(table)
    aimed = [row for row in listed if row.get("met") is not None]
    print(f"{sum(row['met'] for row in aimed)} of {len(aimed)} targets met")


def spread(row: Row, name: str) -> str:
    """A value of the row, and the smallest and the largest of its rounds; nothing where there is none."""
    if name not in row:
        return ""
    each = row.get("rounds", {}).get(name)
    return _text(row[name]) + (f" ({_text(min(each))}-{_text(max(each))})" if each else "")


def percentile(values: Iterable[float], percent: float) -> float:
    """The smallest of the values that so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    said = subprocess.run([java.executable(), "-version"], capture_output=True, text=True, timeout=30, check=True)
    java_version = re.search(r'version "([^"]+)"', said.stderr)
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": java_version[1] if java_version else "unknown",
        "spark": version("pyspark"),
        "liveboard": __version__,
        "commit": _commit(),
    }


def _commit() -> str:
    """The last commit that changed what is measured (documents change no figure), where there is one."""
    measured = ["src", "web", "ivy.xml"]

    def git(*arguments: str) -> str:
        command = ["git", *arguments, "--", *measured]
        return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=30, check=True).stdout.strip()

    try:
        return git("log", "-1", "--format=%h") + ("+" if git("status", "--short") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _topic(row: Row) -> str:
    topic: str = row["measure"].split(",")[0]
    return topic


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 or value == int(value) else f"{value:,.3g}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if abs(value) < 1_000 else round(value)


def _json(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Indented, with a line for everything that is kept of a run and for each of its rows."""
    runs = []
    for name, run in kept.items():
        fields = [f"    {_line(key)}: {_line(value)}" for key, value in run.items() if key != "results"]
        results = ",\n".join(f"      {_line(row)}" for row in run["results"])
        fields.append(f'    "results": [\n{results}\n    ]')
        runs.append(f"  {_line(name)}: {{\n" + ",\n".join(fields) + "\n  }")
    return "{\n" + ",\n".join(runs) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
