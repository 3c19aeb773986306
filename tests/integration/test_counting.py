"""B40: groups of a table by key over a real broker, counted by one after the other, each left in the middle."""

from __future__ import annotations

import json
from contextlib import closing
from random import Random

import pytest
from harness import Topics, until
from live import NAMES, Board, at

from liveboard.contract import board as contract
from liveboard.contract.board import Aggregate, Source
from liveboard.contract.errors import LiveboardError
from liveboard.counting.following import CountedTables
from liveboard.counting.groups import Groups
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration

STOCK = Source(
    name="stock",
    topic="stock",
    table="stock_ui",
    schema="sku string, shop int, weight double",
    mode="upsert",
    key=("sku",),
)
BY_SHOP = Aggregate(
    name="by_shop",
    source="stock",
    by=("shop",),
    where="weight IS NOT NULL",
    measures={"rows": "count(*)", "weight": "sum(weight)", "least": "min(weight)", "last": "max(sku)"},
)
BOARD = contract.Board(sources={"stock": STOCK}, aggregates={"by_shop": BY_SHOP})


def test_b40_whoever_comes_next_writes_the_differences(kafka: str) -> None:
    board, config, random = Board(kafka), {"bootstrap.servers": kafka}, Random(18)
    generation = board.build({"stock_ui": (), "by_shop": ()})
    written = NAMES.changelog(generation, "by_shop")
    rows: dict[str, list[object] | None] = {}

    def change(count: int, shops: int) -> None:
        changed: dict[str, list[object] | None] = {}
        for _ in range(count):
            sku = f"s{random.randrange(300)}"
            weight = random.choice([None, random.random() * 10 ** random.randrange(-9, 9)])
            row = [sku, random.randrange(shops), weight, at(random.randrange(999))]
            changed[f'="{sku}"'] = row if random.random() < 0.7 else None
        board.write(generation, changed, "stock_ui")
        rows.update(changed)

    def counting(is_sure: bool = True) -> CountedTables:
        return CountedTables(config, NAMES, Admin(config), BOARD, generation, lambda: is_sure)

    # Nobody counts while the last shops lose all their rows.
    for shops in (20, 20, 3):
        change(400, shops)
        if shops == 3:
            change(2_000, shops)
        with closing(counting()) as left:
            for _ in range(random.randrange(4)):
                left.advance()
                change(50, shops)
    with closing(counting(is_sure=False)) as unsure, pytest.raises(LiveboardError, match="is ours"):
        until(lambda: unsure.advance())
    with closing(Topics(kafka)) as topics, closing(counting()) as last:

        def found() -> dict[str, bytes | None]:
            newest = {message.key().decode(): message.value() for message in topics.messages(written)}
            return {key: value for key, value in newest.items() if value is not None}

        def is_right() -> bool:
            last.advance()
            return found() == _expected(rows)

        until(is_right, lambda: f"{_expected(rows)}, found {found()}")
        before = len(topics.messages(written))
        board.write(generation, {key: row for key, row in rows.items() if row}, "stock_ui")
        for _ in range(20):
            last.advance()
        # The same rows once more are no change.
        assert len(topics.messages(written)) == before


def _expected(rows: dict[str, list[object] | None]) -> dict[str, bytes | None]:
    groups = Groups(BY_SHOP, STOCK)
    for key, row in rows.items():
        groups.take(key.encode(), json.loads(json.dumps(row)))
    return {key.decode(): value for key, value in groups.changed().items()}
