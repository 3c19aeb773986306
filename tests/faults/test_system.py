"""B11, B15, B24: one system of real processes is taken through faults of every kind, under load.

After each of them every table of both servers is what the oracle says, and viewers who stayed see it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import system
from soak import Soak

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

SEED = 21
BY_CHANCE = 4


def test_b11_b15_b24_faults_of_every_kind(tmp_path: Path) -> None:
    with system.running(tmp_path) as target:
        target.expect_healed()
        said: list[str] = []
        soak = Soak(target, SEED, rate=20, say=said.append)
        for fault in (*system.STOPS, *system.LINKS, *system.MESSAGES, *system.KILLS[:1]):
            soak.fault(fault)
        for _ in range(BY_CHANCE):
            soak.fault()
        target.board.expect_nothing_left_behind()
        soak.end()
        assert not target.board.pipeline.is_running()
