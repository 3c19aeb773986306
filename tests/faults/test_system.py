"""B11, B15, B24: one system of real processes is taken through faults of every kind, under load.

After each of them every table of both servers is what the oracle says, and viewers who stayed see it.
"""

from __future__ import annotations

from pathlib import Path

import nemesis
import pytest
import system
from soak import Soak

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

SEED = 21
BY_CHANCE = 1
SWAPS = 2


def test_b11_b15_b24_faults_of_every_kind(tmp_path: Path) -> None:
    with system.running(tmp_path) as target:
        target.expect_healed()
        said: list[str] = []
        soak = Soak(target, SEED, said.append)
        soak.group(*nemesis.STOPS, *nemesis.SERVER_KILLS[:1])
        soak.group(*nemesis.LINKS, *nemesis.CLOCKS, *nemesis.SERVER_DISKS)
        soak.group(*nemesis.MESSAGES)
        soak.group(nemesis.DAMAGES[0])
        soak.swaps(SWAPS)
        for _ in range(BY_CHANCE):
            soak.group()
        target.board.expect_nothing_left_behind()
        soak.end()
        assert not target.board.pipeline.is_running()
