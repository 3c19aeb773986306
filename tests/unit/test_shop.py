"""The sample shop: the same for the same options, and every kind of record that it is there to show."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import oracle
import pytest

from liveboard import config
from liveboard.config import default_board
from liveboard.contract.errors import LiveboardError
from liveboard.inspect.formats import SampledRecord
from liveboard.inspect.joins import Proposal, proposals
from liveboard.inspect.topic import Topic, describe
from liveboard.sample import shop
from liveboard.sample.producing import Event

EXAMPLE = Path(__file__).parents[2] / "examples/shop.toml"


def _events(count: int = 3_000, **chosen: Any) -> list[Event]:
    seconds = iter(range(1_790_000_000, 1_800_000_000))
    return list(shop.events(shop.Options(count=count, clock=lambda: next(seconds), **chosen)))


def _topics(events: list[Event]) -> dict[str, Topic]:
    def records(topic: str) -> list[SampledRecord]:
        headers = [(event, tuple(name for name, _ in event.headers)) for event in events if event.topic == topic]
        return [SampledRecord(event.value, event.key.encode(), names) for event, names in headers]

    return {topic.removeprefix("shop."): describe(topic, records(topic)) for topic in shop.TOPICS}


def test_the_same_options_give_the_same_events() -> None:
    assert _events(300) == _events(300)
    assert _events(300) != _events(300, seed=2)


def test_products_change_and_go_and_come_back() -> None:
    shown: dict[str, bytes] = {}
    seen: Counter[str] = Counter()
    for event in _events(10_000):
        if event.topic == shop.PRODUCTS:
            if event.value is None:
                del shown[event.key]
                seen["deleted"] += 1
            else:
                seen["changed" if event.key in shown else "new"] += 1
                shown[event.key] = event.value
    assert seen["deleted"] > 20
    assert seen["changed"] > 200
    assert seen["new"] > 40


def test_customers_are_what_a_database_would_write() -> None:
    rows: dict[str, Any] = {}
    operations: Counter[str] = Counter()
    for event in _events(10_000):
        if event.topic == shop.CUSTOMERS:
            if event.value is None:
                assert event.key not in rows
                continue
            change = json.loads(event.value)
            operations[change["op"]] += 1
            assert change["before"] == rows.pop(event.key, None)
            if change["after"]:
                rows[event.key] = change["after"]
    assert operations.keys() == {"c", "u", "d"}


def test_what_is_inspected_is_what_is_produced() -> None:
    found = _topics(_events())
    orders, products, customers = found["orders"], found["products"], found["customers"]
    types = {column.name: f"{column.type} {column.unit}".strip() for column in orders.columns}
    assert types == {
        "orderId": "bigint",
        "placedAt": "timestamp ms",
        "status": "string",
        "productId": "string",
        "customer_id": "bigint",
        "customer_name": "string",
        "city": "string",
        "country": "string",
        "items": "json",
        "total": "decimal(18,2)",
        "weight": "double",
        "gift": "boolean",
        "coupon": "string",
    }
    assert orders.header_names == ("channel", "trace-id")
    assert not orders.is_table
    assert products.row_key == ("productId",)
    assert customers.row_key == ("id",)
    [proposal] = proposals(found)
    assert (proposal.left, proposal.right, proposal.on) == ("orders", "products", "productId")
    assert proposal.how == "left"
    assert isinstance(proposal, Proposal)


def test_some_orders_are_broken_when_asked_for() -> None:
    events = _events(1_000, bad=0.1)
    assert 50 < sum(bool(event.broken) for event in events) < 150
    assert [event for event in events if not event.broken] == _events(sum(not event.broken for event in events))


def test_every_record_of_the_shop_is_a_row_of_the_example() -> None:
    board = config.load(EXAMPLE, {}).board
    shop.check(board)
    records = [
        oracle.Record(event.topic, 0, number, number, event.value, event.key.encode(), event.headers)
        for number, event in enumerate(_events())
    ]
    tables = oracle.tables(board, records)
    assert tables["rejects_ui"] == {}
    assert all(len(rows) > 10 for table, rows in tables.items() if table != "rejects_ui")
    assert len(tables["products_ui"]) <= 40


def test_a_board_without_the_shop_is_refused() -> None:
    with pytest.raises(LiveboardError, match=r"expected a board that reads shop\.orders, .* found users, accounts"):
        shop.check(default_board())
