"""The aggregates of a configuration: what they become, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
from configured import File, Raw

from liveboard.contract.schema import Column
from liveboard.contract.tables import table_columns

AGGREGATE: Raw = {"source": "orders", "by": ["shop"], "measures": {"orders": "count(*)"}}


def board(**changes: Any) -> Raw:
    sources = {
        "orders": {"topic": "orders", "schema": "id bigint, shop string, price decimal(9,2)", "table": "orders_ui"},
        "stock": {
            "topic": "stock",
            "schema": "sku string, amount int",
            "table": "stock_ui",
            "mode": "upsert",
            "key": "sku",
        },
    }
    return {"board": {"sources": sources, "aggregates": {"by_shop": {**AGGREGATE, **changes}}}}


def test_b40_the_columns_of_an_aggregate(file: File) -> None:
    measures = {"orders": "count(*)", "revenue": "sum(price)", "mean": "avg(price)", "last": "max(ts)"}
    loaded = file.load(
        board(window="1 minute", slide="10 s", keep="1 hour", where="price > 0", measures=measures)
    ).board
    aggregate = loaded.aggregates["by_shop"]
    assert (aggregate.window, aggregate.slide, aggregate.keep) == (60_000, 10_000, 3_600_000)
    assert table_columns(loaded)["by_shop"] == (
        Column("shop", "string"),
        Column("window_start", "timestamp"),
        Column("window_end", "timestamp"),
        Column("orders", "bigint"),
        Column("revenue", "decimal(19,2)"),
        Column("mean", "double"),
        Column("last", "timestamp"),
        Column("ts", "timestamp"),
    )
    everything = file.load(board(by=[])).board
    assert [column.name for column in table_columns(everything)["by_shop"]] == ["orders", "ts"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"source": "order"}, 'source: expected a source (orders, stock), found "order", did you mean orders?'),
        ({"by": ["shp"]}, 'by: expected a column of orders (id, shop, price), found "shp", did you mean shop?'),
        ({"where": "price > 'x'"}, "where: expected two values of one type around >, found decimal(9,2) and string"),
        ({"measures": {}}, 'measures: expected at least one measure such as accounts = "count(*)", found none'),
        ({"measures": {"x": "sum(shop)"}}, "measures.x: expected a number in sum(…), found a string"),
        (
            {"measures": {"Shop": "count(*)"}},
            'measures.Shop: expected different column names (case ignored), found "Shop" twice',
        ),
        (
            {"measures": {"ts": "max(ts)"}},
            'measures.ts: expected a name other than "ts", which is the Kafka timestamp\'s',
        ),
        ({"keep": "1 hour"}, "keep: expected no keep without a window, found one"),
        (
            {"window": "1 minute", "slide": "7 s"},
            "slide: expected a duration that goes into the window up to 100 times without a rest,"
            " found 7000 ms of 60000 ms",
        ),
        ({"window": "0 s"}, 'window: expected a duration above zero such as "1 minute" or "500 ms", found "0 s"'),
        (
            {"source": "stock", "by": ["sku"], "window": "1 minute", "keep": "1 hour"},
            "keep: expected no keep over stock, a table by key, whose rows go when they are removed, found one",
        ),
    ],
)
def test_b40_a_wrong_aggregate_is_told_as_what_it_is(file: File, changes: Raw, problem: str) -> None:
    assert file.problems(board(**changes)) == [f"board.aggregates.by_shop.{problem} (FILE)"]


def test_b40_an_aggregate_can_be_added_to_the_default_board(file: File) -> None:
    aggregate = {"source": "users", "measures": {"people": "count(*)"}}
    loaded = file.load({"board": {"aggregates": {"people": aggregate}}}).board
    assert list(loaded.aggregates) == ["people"]
    assert list(loaded.sources) == ["users", "accounts"]
