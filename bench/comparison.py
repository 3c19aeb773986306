"""docs/comparison.md: every figure against Deephaven as it is kept, so that none has to be copied by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import report

_PEERS = ("Deephaven, showcase", "Deephaven, tuned")
_INTRODUCTION = """\
# Every figure against Deephaven

Written by `make bench` from `bench/results.json`: do not edit. [performance.md](performance.md) says what the figures
mean. A figure is the median of its rounds, with the smallest and the largest of them in parentheses. *Times* is
liveboard's figure divided by Deephaven's: below 1, liveboard needs less. The commit is the last one before the
measurement that changed the product.
"""


def write(kept: Path, page: Path) -> None:
    """Writes the page from the kept runs."""
    page.write_text(text(report.load(kept)))


def text(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """The page as Markdown: a section for each run, a line for each figure, and both Deephavens side by side."""
    return "\n".join([_INTRODUCTION, *(_section(name, runs[name]) for name in sorted(runs))])


def _section(name: str, run: Mapping[str, Any]) -> str:
    lines: dict[str, dict[str, report.Row]] = {}
    for row in run["results"]:
        measure, _, peer = row["measure"].partition(", against ")
        lines.setdefault(measure, {})[peer] = row
    peers = [peer for peer in _PEERS if any(peer in found for found in lines.values())]
    heads = ["what", "unit", "liveboard", *(cell for peer in peers for cell in (peer, "times")), "wanted"]
    rounds = max(len(row.get("rounds", {}).get("liveboard", "1")) for row in run["results"])
    commit = run.get("machine", {}).get("commit", "unknown")
    table = [heads, ["---"] * len(heads), *(_cells(measure, found, peers) for measure, found in lines.items())]
    return "\n".join(
        [
            f"## {name}",
            "",
            f"{run['date'][:10]}, commit {commit}, {rounds} round{'s' * (rounds > 1)}.",
            "",
            *(f"| {' | '.join(cells)} |" for cells in table),
            "",
        ]
    )


def _cells(measure: str, found: Mapping[str, report.Row], peers: list[str]) -> list[str]:
    some = next(iter(found.values()))
    sides = [
        report.spread(found.get(peer, {}), value).replace("-", " to ")
        for peer in peers
        for value in ("deephaven", "ratio")
    ]
    wanted = {
        f"{row['target']}{'' if row['met'] else ': missed'}": None
        for row in found.values()
        # What only Deephaven has a figure of, liveboard did not keep up with.
        if "target" in row and (row["met"] is not None or ("deephaven" in row and "liveboard" not in row))
    }
    return [measure, some["unit"], report.spread(some, "liveboard").replace("-", " to "), *sides, ", ".join(wanted)]
