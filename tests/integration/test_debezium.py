"""B38 without Kafka: tables from topics as Debezium writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boards
import debezium
import pytest
from forms import arrived, check_both_forms_of, plan_of
from harness import Event
from hypothesis import given, settings
from hypothesis import strategies as st
from kafkaless import kafka_frame
from oracle import Record
from pyspark.sql import SparkSession

from liveboard.contract.schema import Column
from liveboard.pipeline.parse import REMOVED, parse, row_column

pytestmark = pytest.mark.integration


@given(data=st.data(), partitions=st.integers(1, 3))
@settings(max_examples=3)
def test_b38_both_forms_follow_a_database(spark: SparkSession, data: st.DataObject, partitions: int) -> None:
    changes = data.draw(debezium.changes("people", partitions, most=60).filter(boards.varied))
    visits = [
        Event(
            "visits", json.dumps({"person": n % 6, "page": f"p{n}"}).encode(), boards.FIRST_MS + n // 2, n % partitions
        )
        for n in range(12)
    ]
    # Each topic keeps its order; how the two come together is chance.
    events = list(changes)
    for visit in visits:
        events.insert(data.draw(st.integers(0, len(events))), visit)
    plan = plan_of(debezium.BOARD)
    check_both_forms_of(spark, plan, arrived(plan.board, events))


def change(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    """A change as Debezium writes it."""
    return {"op": op, "before": before, "after": after, "source": {"table": "people"}, "ts_ms": 1}


KEY = {"id": 7}
# A Kafka key, a value, and what becomes of it: the row, what is removed, or the reason.
CASES: list[tuple[Any, Any, Any]] = [
    (KEY, change("r", None, {"id": 7, "name": "Ada"}), ("Ada", 7)),
    (KEY, change("c", None, {"id": 7, "other": 1}), (None, 7)),
    (KEY, change("u", {"id": 7, "name": "Ada"}, {"id": 7, "name": "Grace"}), ("Grace", 7)),
    (KEY, change("d", {"id": 8, "name": "Ada"}), 8),
    (KEY, change("d", {"id": None}), 7),
    (KEY, change("d"), 7),
    (KEY, None, 7),
    ({"person": 7}, None, 7),
    (7, None, 7),
    (None, change("d"), 'key: expected person as bigint or as {"person": …}, found none'),
    ({"id": "7"}, change("d"), 'key: expected person as bigint or as {"person": …}, found {"id": "7"}'),
    (KEY, change("t"), "op: expected c, r, u or d, found t"),
    (KEY, {"op": "m", "message": {}}, "op: expected c, r, u or d, found m"),
    (KEY, {"id": 7, "name": "Ada"}, "op: expected c, r, u or d, found none"),
    (KEY, {"op": ["c"], "after": KEY}, 'op: expected c, r, u or d, found ["c"]'),
    (KEY, change("u"), "after: expected an object, since op is u, found none"),
    (KEY, change("c", None, [7]), "after: expected an object, since op is c, found none"),
    (KEY, change("c", None, {"id": "7"}), 'id: expected bigint, found "7" (string)'),
    (KEY, change("c", None, {"id": 7, "name": 5}), "name: expected string, found 5 (bigint)"),
    (KEY, change("c", None, {"name": "Ada"}), "id: expected a value, since it is the key, found null"),
    (KEY, [1], "value: expected a JSON object, found [1]"),
]


@pytest.mark.parametrize("with_schema", [False, True], ids=["bare", "with schema"])
@pytest.mark.parametrize("whole", [False, True], ids=["columns", "the whole row too"])
def test_b38_changes_and_what_is_none(spark: SparkSession, with_schema: bool, whole: bool) -> None:
    def written(document: Any) -> bytes | None:
        enveloped = {"schema": {"type": "struct"}, "payload": document}
        return (
            None
            if document is None
            else json.dumps(enveloped if with_schema and is_object(document) else document).encode()
        )

    def is_object(document: Any) -> bool:
        return isinstance(document, dict)

    raw = (Column("raw", "json", ()),) if whole else ()
    source = replace(debezium.PEOPLE, columns=(*debezium.PEOPLE.columns, *raw))
    records = [
        Record("people", 0, offset, 0, written(value), written(key)) for offset, (key, value, _) in enumerate(CASES)
    ]
    parsed = {row["offset"]: row for row in parse(kafka_frame(spark, records), [source]).collect()}
    for offset, (key, value, expected) in enumerate(CASES):
        found, row = parsed[offset], parsed[offset][row_column(source)]
        if isinstance(expected, str):
            shown = expected.replace('{"id": "7"}', str((records[offset].key or b"").decode())[:100])
            assert (row, found["reason"][: len(shown)]) == (None, shown), (key, value)
        elif isinstance(expected, int):
            assert (found[REMOVED], row["person"], found["reason"]) == (True, expected, None), (key, value)
        else:
            assert (found[REMOVED], (row["name"], row["person"]), found["reason"]) == (False, expected, None), value
