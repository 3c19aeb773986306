"""Topics as Debezium writes them for a table of a database: a snapshot, then what happens to the rows."""

from __future__ import annotations

import json
from typing import Any

from boards import FIRST_MS
from harness import Event
from hypothesis import strategies as st

from liveboard.contract.board import Board, Join, Source
from liveboard.contract.schema import Column

PEOPLE = Source(
    name="people",
    topic="people",
    table="people_ui",
    columns=(Column("name", "string"), Column("person", "bigint", ("id",))),
    format="debezium",
    key=("person",),
)
VISITS = Source(name="visits", topic="visits", table="visits_ui", schema="person bigint, page string")
BOARD = Board(
    sources={"people": PEOPLE, "visits": VISITS},
    joins={
        "visitors": Join(name="visitors", left="visits", right="people", on="person", how="left", history=2),
        "then": Join(name="then", left="visits", right="people", on="person", how="asof", history=2),
        "newest": Join(name="newest", left="people", right="visits", on="person", how="left", history=2),
    },
)

_NAMES = st.sampled_from(["Ada", "Grace", 'Edith "E"', "", None])
# What is no change of a row, or not one that can be read.
_ODD: list[Any] = [
    {"op": "t", "source": {}},
    {"op": "m", "message": {"prefix": "p", "content": ""}},
    {"op": "x", "after": {"id": 1}},
    {"op": 5},
    {"after": {"id": 1, "name": "no op"}},
    {"op": "u", "after": None},
    {"op": "c", "after": "x"},
    {"op": "c", "after": {"id": "1", "name": "wrong id"}},
    {"op": "c", "after": {"id": 1, "name": 5}},
    {"op": "c", "after": {"name": "no id"}},
    {"schema": {}, "payload": None},
    {"id": 1, "name": "no envelope"},
    [],
    "c",
]


@st.composite
def changes(draw: st.DrawFn, source: str, partitions: int, *, most: int) -> list[Event]:
    """Of a table with the columns `id` and `name`, whose records have their partition by the key."""
    with_schema = draw(st.booleans())
    before_is_whole = draw(st.booleans())
    rows: dict[int, dict[str, Any]] = {}
    events: list[Event] = []

    def write(row_id: int, value: Any, key: Any) -> None:
        if with_schema:
            key, value = ({"schema": {"type": "struct"}, "payload": each} for each in (key, value))
        _send(row_id, json.dumps(value).encode(), json.dumps(key).encode())

    def _send(row_id: int, value: bytes | None, key: bytes | None) -> None:
        at = FIRST_MS + len(events) // 3
        events.append(Event(source, value, at, row_id % partitions, key))

    def change(op: str, row_id: int, after: dict[str, Any] | None) -> None:
        before = rows.pop(row_id, None)
        if before and not before_is_whole:
            # As PostgreSQL has it, unless it is told otherwise.
            before = {"id": row_id, "name": None} if op == "d" and draw(st.booleans()) else None
        if after:
            rows[row_id] = after
        value = {"before": before, "after": after, "source": {"table": "t"}, "op": op, "ts_ms": 1}
        write(row_id, value, {"id": row_id})

    for row_id in range(draw(st.integers(0, 4))):
        change("r", row_id, {"id": row_id, "name": draw(_NAMES)})
    for number in range(draw(st.integers(most // 2, most))):
        row_id = draw(st.integers(0, 5))
        what = draw(st.integers(0, 9))
        if what == 0:
            write(row_id, draw(st.sampled_from(_ODD)), {"id": row_id})
        elif row_id not in rows:
            change("c", row_id, {"id": row_id, "name": f"new {number}", "unknown": [1]})
        elif what < 4:
            change("d", row_id, None)
            if draw(st.booleans()):
                key = {"id": row_id}
                _send(row_id, None, json.dumps({"schema": {}, "payload": key} if with_schema else key).encode())
        else:
            change("u", row_id, {"id": row_id, "name": draw(_NAMES)})
    return events
