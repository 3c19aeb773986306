"""B38 without Kafka: what a tombstone removes, and why others are refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from kafkaless import kafka_frame
from oracle import Record
from pyspark.sql import SparkSession

from liveboard.contract.board import Source
from liveboard.contract.schema import Column
from liveboard.pipeline.parse import REMOVED, parse, row_column

pytestmark = pytest.mark.integration

TEXT = 'key: expected id as text or as {"id": …}, found '
NUMBER = 'key: expected id as bigint or as {"id": …}, found '
DAY = 'key: expected id as date or as {"id": …}, found '
BOTH = 'key: expected {"id": …, "a b": …}, found '
SCHEMAS = {"id string": ["id"], "id bigint": ["id"], "id date": ["id"], "id string, `a b` int": ["id", "a b"]}
# By the schema and the Kafka key: the key of the row that goes, or the reason.
KEYS: dict[str, dict[bytes | None, Any]] = {
    "id string": {
        b"u7": ["u7"],
        b'"u7"': ["u7"],
        b'{"id":"u7","other":1}': ["u7"],
        b"42": ["42"],
        b"": [""],
        b"'u7'": ["'u7'"],
        b"{": ["{"],
        b"u 7": ["u 7"],
        b'{"id":42}': TEXT + '{"id":42}',
        b'{"other":"u7"}': TEXT + '{"other":"u7"}',
        b"\xff": TEXT + "\N{REPLACEMENT CHARACTER}",
        None: TEXT + "none",
    },
    "id bigint": {
        b"42": [42],
        b'{"id":9007199254740993}': [2**53 + 1],
        b'"42"': NUMBER + '"42"',
        b"4.2": NUMBER + "4.2",
        b"42 43": NUMBER + "42 43",
        b"": NUMBER,
        b'{"id":null}': NUMBER + '{"id":null}',
    },
    "id date": {
        b"2026-01-31": [date(2026, 1, 31)],
        b'"2026-01-31"': [date(2026, 1, 31)],
        b'{"id":"2026-01-31"}': [date(2026, 1, 31)],
        b"2026-02-31": DAY + "2026-02-31",
    },
    "id string, `a b` int": {
        b'{"a b":1,"id":"u7"}': ["u7", 1],
        b'{"id":"u7"}': BOTH + '{"id":"u7"}',
        b"u7": BOTH + "u7",
    },
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_b38_a_tombstone_removes_what_its_kafka_key_says(spark: SparkSession, schema: str) -> None:
    source = Source(
        name="s", topic="s", schema=f"{schema}, more double", table="s_ui", mode="upsert", key=tuple(SCHEMAS[schema])
    )
    keys = list(KEYS[schema])
    frame = kafka_frame(spark, [Record("s", 0, offset, 0, None, key) for offset, key in enumerate(keys)])
    parsed = {keys[row["offset"]]: row for row in parse(frame, [source]).collect()}
    for key, expected in KEYS[schema].items():
        row = parsed[key][row_column(source)]
        found = parsed[key]["reason"] if row is None else [row[name] for name in source.key]
        assert (found, parsed[key][REMOVED]) == (expected, True)
        assert row is None or row["more"] is None


def test_b38_a_column_of_the_key_may_have_a_path_or_be_the_kafka_key_itself(spark: SparkSession) -> None:
    by_path = Source(
        name="s",
        topic="s",
        table="s_ui",
        columns=(Column("id", "bigint", ("order", "id")), Column("n", "int")),
        mode="upsert",
        key=("id",),
    )
    whole = replace(by_path, columns=(Column("id", "bigint", origin="key"), Column("n", "int")))
    reason = 'key: expected id as bigint or as {"id": …}, found '
    expected: dict[bytes, tuple[Any, Any]] = {
        b"7": (7, 7),
        b'{"order":{"id":7}}': (7, reason + '{"order":{"id":7}}'),
        b'{"id":7}': (7, reason + '{"id":7}'),
        b'{"order":7}': (reason + '{"order":7}', reason + '{"order":7}'),
    }
    frame = kafka_frame(spark, [Record("s", 0, offset, 0, None, key) for offset, key in enumerate(expected)])
    for number, source in enumerate((by_path, whole)):
        found = {
            bytes(row["key"]): row["reason"] if row[row_column(source)] is None else row[row_column(source)]["id"]
            for row in parse(frame, [source]).collect()
        }
        assert found == {key: both[number] for key, both in expected.items()}


def test_b38_a_record_needs_its_key(spark: SparkSession) -> None:
    source = Source(
        name="s", topic="s", schema="id bigint, n int", table="s_ui", mode="upsert", key=("id",), on_error="null"
    )
    reasons = {
        b'{"id":7,"n":"x"}': None,
        b'{"n":1}': "id: expected a value, since it is the key, found null",
        b'{"id":null}': "id: expected a value, since it is the key, found null",
        b'{"id":"7"}': 'id: expected bigint, found "7" (string)',
    }
    frame = kafka_frame(spark, [Record("s", 0, offset, 0, value) for offset, value in enumerate(reasons)])
    parsed = {row["value"]: row for row in parse(frame, [source]).collect()}
    assert {bytes(value): row["reason"] for value, row in parsed.items()} == reasons
    assert not any(row[REMOVED] for row in parsed.values())
