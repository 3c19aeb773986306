"""Draws the plots from the kept figures; runs in the peer's virtual environment.

plots.py RESULTS.json DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

_COLOURS = {"liveboard": "#0b6e4f", "Deephaven, showcase": "#c0392b", "Deephaven, tuned": "#e08e0b"}


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


def growth(points: dict[str, dict[str, dict[str, dict[str, float]]]], file: Path) -> None:
    """Latency against the size of what there is already."""
    figure, axes = plt.subplots(1, len(points), figsize=(5 * len(points), 3.6), squeeze=False, layout="constrained")
    for axis, (title, systems) in zip(axes[0], points.items(), strict=True):
        for name, sizes in systems.items():
            for percentile, style in (("p50", "-"), ("p99", "--")):
                values = [each[percentile] for each in sizes.values()]
                label = f"{name}, {percentile}"
                axis.plot([*map(int, sizes)], values, style, marker="o", color=_COLOURS[name], label=label)
        axis.set(xscale="log", yscale="log", xlabel=title, ylabel="ms to the client's callback")
        axis.grid(visible=True, which="major", alpha=0.3)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(file, dpi=110)


def main() -> None:
    """Draws what there are figures for."""
    kept: dict[str, dict[str, Any]] = json.loads(Path(sys.argv[1]).read_text())
    directory = Path(sys.argv[2])
    if run := kept.get("latency"):
        latency(run["percents"], run["curves"], directory / "against-latency.png")
    if run := kept.get("growth"):
        growth(run["points"], directory / "against-growth.png")


if __name__ == "__main__":
    main()
