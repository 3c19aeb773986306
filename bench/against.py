"""liveboard and Deephaven side by side, on one broker, in turn."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import comparison
from peer.aggregate import aggregate
from peer.backfill import KINDS, backfill
from peer.browser import browser
from peer.crowd import crowd
from peer.first_minute import first_minute
from peer.growth import growth
from peer.latency import latency, long
from peer.restart import restart
from peer.swap import swap
from peer.trades import trades
from stage import Suite

_HERE = Path(__file__).parent
_PEER = _HERE / "peer"


def _draw(file: Path) -> None:
    comparison.write(file, _HERE.parent / "docs/comparison.md")
    # As a module, so that it finds the others of its package.
    command = [str(_PEER / ".venv/bin/python"), "-m", "peer.plots", str(file.resolve()), str(_HERE.parent / "docs")]
    subprocess.run(command, cwd=_HERE, check=True)


SUITE = Suite(
    title="liveboard and Deephaven side by side",
    file="results.json",
    measures={
        "first-minute": first_minute,
        "latency": latency,
        "aggregate": aggregate,
        "trades": trades,
        **{f"backfill-{how}": partial(backfill, how=how) for how in KINDS},
        "viewers": crowd,
        "swap": swap,
        "restart": restart,
        "growth": growth,
        "long": long,
        "browser": browser,
    },
    seconds=30,
    rounds=3,
    # Long by themselves, and made of many samples or sizes.
    once=("growth", "long"),
    versions={"deephaven": "42.7"},
    draw=_draw,
)
