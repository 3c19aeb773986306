"""How `make test` spreads the tests over its workers, each with a broker and a Spark of its own."""

from __future__ import annotations

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

# What takes longest comes first, so that the short ones fill the time that is left on the other workers.
LONGEST = (
    "tests/integration/test_content.py",
    "tests/integration/test_kafka_security.py",
    "tests/integration/test_up.py",
    "tests/integration/test_secured_board.py",
    "tests/faults/",
    "tests/integration/test_boards.py",
    "tests/integration/test_swap.py",
    "tests/integration/test_joins.py",
    "tests/integration/test_whole.py",
    "tests/browser/test_whole.py",
    "tests/integration/test_fuzz.py",
    "tests/integration/test_broker.py",
    "tests/integration/test_replicas.py",
    "tests/browser/",
    "tests/integration/",
)
# Their tests and classes run a pipeline each: any worker can take one. The tests of other files share more and stay
# together.
APART = (
    "tests/integration/test_up.py",
    "tests/integration/test_secured_board.py",
    "tests/integration/test_boards.py",
    "tests/integration/test_swap.py",
)


class Spreading(LoadScopeScheduling):  # type: ignore[misc]
    """Gives whole files to workers, and single tests and classes of those that are apart."""

    def _split_scope(self, nodeid: str) -> str:
        file, *names = nodeid.split("::")
        return f"{file}::{names[0]}" if nodeid.startswith(APART) else file


def longest_first(items: list[pytest.Item]) -> None:
    """Puts the tests into the order in which workers are to take them."""
    items.sort(key=lambda item: next((n for n, part in enumerate(LONGEST) if item.nodeid.startswith(part)), 99))
