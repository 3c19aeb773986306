"""Draws the plots from the kept figures; runs in the peer's virtual environment.

python -m peer.plots RESULTS.json DIRECTORY

The figures of the pipeline alone are taken from pipeline.json beside RESULTS.json, if it is there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from peer import points

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import LogFormatter

_COLOURS = {"liveboard": "#0b6e4f", "Deephaven, showcase": "#c0392b", "Deephaven, tuned": "#e08e0b"}
_JOIN_COLOURS = {"as-of": "#0b6e4f", "left": "#2c6fbb", "inner": "#8e44ad"}


def latency(percents: list[float], curves: dict[str, dict[str, list[float]]], file: Path) -> None:
    """Which share of the events was on the client's screen after which time."""
    figure, axes = plt.subplots(1, len(curves), figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, (rate, systems) in zip(axes, curves.items(), strict=True):
        for name, values in systems.items():
            axis.plot(values, percents, label=name, color=_COLOURS[name], linewidth=2)
        axis.set(
            xscale="log",
            xlabel="milliseconds from produce() to the client's callback",
            title=rate.replace("/s", " events/s"),
        )
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set(ylabel="% of the events", ylim=(0, 100.5))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(file, dpi=110)


def growth(sizes_of: dict[str, dict[str, dict[str, dict[str, float]]]], file: Path) -> None:
    """Latency against the size of what there is already."""
    figure, axes = plt.subplots(1, len(sizes_of), figsize=(5 * len(sizes_of), 3.6), squeeze=False, layout="constrained")
    for axis, (title, systems) in zip(axes[0], sizes_of.items(), strict=True):
        for name, sizes in systems.items():
            for percentile, style in (("p50", "-"), ("p99", "--")):
                values = [each[percentile] for each in sizes.values()]
                label = f"{name}, {percentile}"
                axis.plot([*map(int, sizes)], values, style, marker="o", color=_COLOURS[name], label=label)
        axis.set(xscale="log", yscale="log", xlabel=title, ylabel="ms to the client's callback")
        axis.grid(visible=True, which="major", alpha=0.3)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(file, dpi=110)


def first_minute(systems: points.Lines, file: Path) -> None:
    """How late events are shown right after a start, by time."""
    figure, axis = plt.subplots(figsize=(8, 3.8), layout="constrained")
    _lines(axis, systems, _COLOURS)
    axis.set(
        xlim=(0, None),
        xlabel="seconds since the first of 200 events/s, right after the start",
        ylabel="ms to the client's callback",
    )
    _in_powers(axis)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(file, dpi=110)


def keys(parts: dict[str, points.Lines], file: Path) -> None:
    """Latency and the time of a build against the number of keys that the same number of records has."""
    figure, axes = plt.subplots(1, len(parts), figsize=(4 * len(parts), 3.8), squeeze=False, layout="constrained")
    for axis, (title, joins) in zip(axes[0], parts.items(), strict=True):
        _lines(axis, joins, _JOIN_COLOURS)
        counts = sorted({count for lines in joins.values() for line in lines.values() for count in line})
        axis.set(xscale="log", xlabel="keys", title=title)
        axis.set_xticks(counts, labels=[f"{count:,}" for count in counts])
        axis.xaxis.minorticks_off()
        if title == points.BUILD:
            axis.set_ylim(0)
        else:
            # The p99 is many times the p50.
            _in_powers(axis)
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(file, dpi=110)


def _lines(axis: Any, compared: points.Lines, colours: dict[str, str]) -> None:
    """Each in the colour of what it tells of, the p99 dashed."""
    for name, lines in compared.items():
        for label, line in lines.items():
            style = "--" if label == "p99" else "-"
            axis.plot([*line], [*line.values()], style, marker="o", ms=4, color=colours[name], label=f"{name}, {label}")
    axis.grid(visible=True, which="major", alpha=0.3)


def _in_powers(axis: Any) -> None:
    """A logarithmic axis, with numbers as they are written in a text."""
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(LogFormatter())
    axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))


def main() -> None:
    """Draws what there are figures for."""
    results, directory = map(Path, sys.argv[1:])
    kept: dict[str, dict[str, Any]] = json.loads(results.read_text())
    pipeline = results.with_name("pipeline.json")
    of_pipeline: dict[str, dict[str, Any]] = json.loads(pipeline.read_text()) if pipeline.exists() else {}
    if run := kept.get("first-minute"):
        first_minute(points.first_minute(run), directory / "against-first-minute.png")
    if run := of_pipeline.get("keys"):
        keys(points.keys(run), directory / "keys.png")
    if run := kept.get("latency"):
        latency(run["percents"], run["curves"], directory / "against-latency.png")
    if run := kept.get("growth"):
        growth(run["points"], directory / "against-growth.png")


if __name__ == "__main__":
    main()
