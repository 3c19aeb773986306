"""What was measured: as results against their targets, as a table and as a file."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pyspark
from rich.console import Console
from rich.table import Table

from liveboard import __version__
from liveboard.java import find_java

_MET = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


@dataclass(frozen=True)
class Result:
    """One figure; `limit` is its target, an upper one unless `at_least`."""

    measure: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    rounds: tuple[float, ...] = ()
    """The figure of every round, where there was more than one; `value` is their median."""

    @property
    def target(self) -> str:
        """The target in words."""
        return "" if self.limit is None else f"{'≥' if self.at_least else '≤'} {self.limit:,g}"

    @property
    def met(self) -> bool | None:
        """Whether the target is reached, None where there is none."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def median(rounds: Sequence[Sequence[Result]]) -> list[Result]:
    """The results of several rounds as one."""
    if len(rounds) == 1:
        return list(rounds[0])
    values: dict[str, list[float]] = {}
    for result in (result for each in rounds for result in each):
        values.setdefault(result.measure, []).append(result.value)
    return [
        replace(
            result,
            value=statistics.median(values[result.measure]),
            rounds=tuple(_rounded(value) for value in values[result.measure]),
        )
        for result in rounds[-1]
    ]


def show(results: Iterable[Result], title: str = "liveboard pipeline") -> None:
    """Prints the table and how many targets are met."""
    table = Table("measure", "value", "unit", "target", "met", title=title)
    for column in (1, 3):
        table.columns[column].justify = "right"
    listed = list(results)
    for before, result in zip([*listed[:1], *listed], listed, strict=False):
        if _title(before) != _title(result):
            table.add_section()
        spread = f" ({_text(min(result.rounds))}-{_text(max(result.rounds))})" if result.rounds else ""
        table.add_row(result.measure, _text(result.value) + spread, result.unit, result.target, _MET[result.met])
    Console(width=None if os.isatty(1) else 120).print(table)
    aimed = [result for result in listed if result.met is not None]
    print(f"{sum(result.met is True for result in aimed)} of {len(aimed)} targets met")


def keep(file: Path, measures: dict[str, dict[str, Any]]) -> None:
    """Writes what was measured into the file, over older figures of the same measures."""
    try:
        kept = json.loads(file.read_text())
    except FileNotFoundError:
        kept = {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**kept, **measures}, indent=2, ensure_ascii=False) + "\n")


def as_json(result: Result) -> dict[str, Any]:
    """The result with its target and whether that is met."""
    plain = {key: value for key, value in asdict(result).items() if key not in ("limit", "at_least")}
    plain["value"] = _rounded(result.value)
    if not result.rounds:
        del plain["rounds"]
    if result.limit is not None:
        plain |= {"target": result.target, "met": result.met}
    return plain


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    java = subprocess.run([find_java().executable, "-version"], capture_output=True, text=True, timeout=30, check=True)
    version = re.search(r'version "([^"]+)"', java.stderr)
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": version[1] if version else "unknown",
        "spark": pyspark.__version__,
        "liveboard": __version__,
    }


def _title(result: Result) -> str:
    return result.measure.split(",")[0]


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 or value == int(value) else f"{value:,.3g}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if abs(value) < 1_000 else round(value)
