"""B38: crashes and swaps of a board with tables by key."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from harness import difference
from swapping import swapping, wiring

from liveboard.contract.changelog import decode_row

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def test_b38_kill_9_and_a_swap_under_load(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path, by_key="users") as swaps:
        swaps.start()
        first = swaps.wait_until_live(wiring(0))
        with swaps.load(0, rate=40):
            for what in ("java", "python"):
                with closing(swaps.bench(wiring(0), first)) as bench:
                    bench.let_pass(100)
                swaps.pipeline.kill(what)
                swaps.pipeline.start()
                swaps.wait_until_live(wiring(0))
        swaps.expect_oracle(first)

        # Nothing comes while it is built: at the switch all is there, and what was removed is not.
        swaps.ask(wiring(1, "inner"))
        second = swaps.wait_until_live(wiring(1, "inner"))
        record = swaps.status().generations[second]
        with closing(swaps.bench(wiring(1, "inner"), second)) as bench:
            for name, expected in bench.expected().items():
                messages = bench.topics.messages(bench.names.changelog(second, name))
                newest = {m.key().decode(): m.value() for m in messages if m.offset() < record.complete_at[name]}
                found = {key: decode_row(value, record.tables[name]) for key, value in newest.items() if value}
                assert difference(name, found, expected) == ""
        swaps.fill(1)
        swaps.expect_oracle(second)
        swaps.pipeline.stop()
