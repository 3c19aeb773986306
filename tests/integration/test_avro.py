"""B39 without Kafka: what is made of Avro values by the schemas that are known, and why others are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import oracle
import pytest
from avro_oracle import AvroOracle, encoded, header
from boards import FIRST_MS
from harness import Bench, Event, difference, made, until
from hypothesis import given, settings
from hypothesis import strategies as st
from kafkaless import kafka_frame
from oracle import Record
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from liveboard.contract.board import Board, Source
from liveboard.contract.changelog import decode_row
from liveboard.contract.paths import parse_path
from liveboard.contract.schema import Column
from liveboard.contract.tables import table_columns
from liveboard.pipeline import avro_schema
from liveboard.pipeline.avro_fields import AVRO_FIELDS
from liveboard.pipeline.avro_format import UnknownSchema, unknown_schema
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.generation import reason
from liveboard.pipeline.history import apart
from liveboard.pipeline.parse import parse
from liveboard.pipeline.route import entries, own_row

pytestmark = pytest.mark.integration

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
UUID_TEXT = "6f1c8f6e-6f0d-4f3c-9a44-0b8f3a1d2c3b"


def record(*fields: tuple[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": name, "type": type_} for name, type_ in fields]}


def source(*columns: Column, **options: Any) -> Source:
    return Source(name="s", topic="s", table="s_ui", columns=columns, format="avro", **options)


def at(name: str, type_: str, path: str = "", **options: str) -> Column:
    return Column(name, type_, parse_path(path or name), **options)


def known(schemas: Mapping[int, Any], **more: Any) -> dict[str, AvroSchemas]:
    by_id = {schema_id: avro_schema.parse(json.dumps(schema)) for schema_id, schema in schemas.items()}
    return {"s": AvroSchemas(by_id, **more)}


def parsed(spark: SparkSession, of: Source, schemas: Mapping[str, AvroSchemas], *values: bytes | None) -> list[Row]:
    frame = kafka_frame(spark, [Record("s", 0, offset, 0, value) for offset, value in enumerate(values)])
    return sorted(parse(frame, [of], schemas).collect(), key=lambda row: int(row["offset"]))


LOGICAL = {
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 3},
    "fixed decimal": {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 1},
    "too many digits": {"type": "bytes", "logicalType": "decimal", "precision": 99, "scale": 3},
    "date": {"type": "int", "logicalType": "date"},
    "millis": {"type": "long", "logicalType": "timestamp-millis"},
    "micros": {"type": "long", "logicalType": "timestamp-micros"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "uuid": {"type": "string", "logicalType": "uuid"},
}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]}
INNER = record(("n", ["null", "long"]), ("t", LOGICAL["millis"]), name="Inner")
# The type of the column, the Avro type, the value, and what the column holds; in a tuple, why it is refused.
CASES: list[tuple[str, Any, Any, Any]] = [
    ("string", "string", "Köln", "Köln"),
    ("string", ENUM, "GREEN", "GREEN"),
    ("string", LOGICAL["uuid"], UUID(UUID_TEXT), UUID_TEXT),
    ("string", ["null", "string"], None, None),
    ("string", "long", 5, ("x: expected string, found 5 (long in schema ID)",)),
    ("string", "null", None, None),
    ("boolean", ["boolean"], True, True),
    ("boolean", "int", 1, ("x: expected boolean, found 1 (int in schema ID)",)),
    ("int", "int", -(2**31), -(2**31)),
    ("int", "long", 1, ("x: expected int, found 1 (long in schema ID)",)),
    ("int", LOGICAL["time"], timedelta(seconds=1), 1000),
    ("bigint", "int", 7, 7),
    ("bigint", ["int", "null", "long"], 2**40, 2**40),
    ("bigint", LOGICAL["date"], date(2026, 1, 31), ('x: expected bigint, found "2026-01-31" (date in schema ID)',)),
    ("bigint", "double", 1.0, ("x: expected bigint, found 1.0 (double in schema ID)",)),
    ("bigint", "string", "5", ('x: expected bigint, found "5" (string in schema ID)',)),
    ("double", "long", 3, 3.0),
    ("double", "float", 0.5, 0.5),
    ("double", "double", float("nan"), ('x: expected double, found "NaN" (double in schema ID)',)),
    ("double", LOGICAL["decimal"], Decimal("1.5"), ("x: expected double, found 1.500 (decimal(6,3) in schema ID)",)),
    ("decimal(5,2)", "int", 999, Decimal("999.00")),
    ("decimal(5,2)", "long", 1000, ("x: expected decimal(5,2), found 1000 (long in schema ID)",)),
    ("decimal(5,2)", LOGICAL["decimal"], Decimal("-12.34"), Decimal("-12.34")),
    (
        "decimal(5,2)",
        LOGICAL["decimal"],
        Decimal("1.005"),
        ("x: expected decimal(5,2), found 1.005 (decimal(6,3) in schema ID)",),
    ),
    ("decimal(12,1)", LOGICAL["fixed decimal"], Decimal("99999999.9"), Decimal("99999999.9")),
    ("decimal(5,2)", "string", "1.5", Decimal("1.50")),
    ("decimal(5,2)", "double", 1.5, ("x: expected decimal(5,2), found 1.5 (double in schema ID)",)),
    ("date", LOGICAL["date"], date(1, 1, 1), date(1, 1, 1)),
    ("date", "string", "2024-02-29", date(2024, 2, 29)),
    ("date", LOGICAL["millis"], NOON, ("x: expected date, found",)),
    ("timestamp", LOGICAL["millis"], NOON, NOON.replace(tzinfo=None)),
    ("timestamp", ["null", LOGICAL["micros"]], NOON, NOON.replace(tzinfo=None)),
    ("timestamp", LOGICAL["local"], NOON.replace(tzinfo=None), NOON.replace(tzinfo=None)),
    ("timestamp", "string", "2026-01-31T12:00:00Z", NOON.replace(tzinfo=None)),
    ("timestamp", "long", 5, ("x: expected timestamp, found 5 (long in schema ID)",)),
    ("timestamp", LOGICAL["date"], date(2026, 1, 31), ("x: expected timestamp, found",)),
    ("json", INNER, {"n": None, "t": NOON}, '{"n":null,"t":"2026-01-31T12:00:00.000000Z"}'),
    ("json", {"type": "array", "items": ENUM}, ["RED"], '["RED"]'),
    ("json", {"type": "array", "items": "int"}, [], "[]"),
    ("json", {"type": "map", "values": "bytes"}, {"a": b"\0"}, '{"a":"AA=="}'),
    ("json", "string", 'a"]', '"a\\"]"'),
    ("binary", "bytes", b"\xff", bytearray(b"\xff")),
    ("binary", {"type": "fixed", "name": "G", "size": 2}, b"ab", bytearray(b"ab")),
    ("binary", LOGICAL["too many digits"], b"\1", bytearray(b"\1")),
    ("binary", "string", "AA==", ('x: expected binary, found "AA==" (string in schema ID)',)),
    ("string", ["null", "string", "long"], "a", "a"),
    ("string", ["null", "string", "long"], 5, ("x: expected string, found 5 (long in schema ID)",)),
    ("bigint", ["null", "string", "long"], 5, 5),
]
ID = 258


@pytest.fixture(scope="module")
def cases(spark: SparkSession) -> dict[str, list[Row]]:
    """What is made of each case, by what the source says about wrong values.

    Each type of column has a source, each case a schema.
    """
    types = sorted({type_ for type_, *_ in CASES})
    records, schemas = [], {f"s{number}": AvroSchemas(by_id={}) for number in range(len(types))}
    for number, (type_, avro, value, _) in enumerate(CASES):
        schema, name = record(("x", avro)), f"s{types.index(type_)}"
        records.append(Record(name, 0, number, 0, encoded(schema, {"x": _raw(avro, value)}, ID + number)))
        by_id = {**schemas[name].by_id, ID + number: avro_schema.parse(json.dumps(schema))}
        schemas[name] = AvroSchemas(by_id)
    found: dict[str, list[Row]] = {}
    for on_error in ("reject", "null"):
        sources = [
            replace(source(at("x", type_), on_error=on_error), name=f"s{number}", topic=f"s{number}")
            for number, type_ in enumerate(types)
        ]
        frame = parse(kafka_frame(spark, records), sources, schemas)
        found[on_error] = sorted(frame.collect(), key=lambda row: int(row["offset"]))
    return found


def _raw(avro: Any, value: Any) -> Any:
    if avro is LOGICAL["too many digits"]:
        return Decimal("0.001")
    if avro is LOGICAL["time"]:
        return (datetime(1, 1, 1) + value).time()
    return value


def test_the_cases_have_every_type() -> None:
    assert {type_.partition("(")[0] for type_, *_ in CASES} == AVRO_FIELDS.keys()


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{type_} of {avro}"[:60] for type_, avro, *_ in CASES])
def test_b39_every_type_takes_what_widens_exactly(cases: dict[str, list[Row]], number: int) -> None:
    expected = CASES[number][3]
    rejected, kept = (cases[on_error][number] for on_error in ("reject", "null"))
    row = f"{rejected['topic']}_row"
    if isinstance(expected, tuple):
        assert rejected[row] is None
        assert rejected["reason"].startswith(expected[0].replace("ID", str(ID + number)))
        assert (kept[row]["x"], kept["reason"]) == (None, None)
    else:
        assert (rejected["reason"], rejected[row]["x"]) == (None, expected)


NODE = record(("name", "string"), ("next", ["null", "Node"]), name="Node")
NESTED = record(
    ("id", "long"),
    (
        "customer",
        ["null", record(("name", "string"), ("address", record(("city", "string"), name="Address")), name="C")],
    ),
    (
        "items",
        {"type": "array", "items": record(("sku", "string"), ("tags", {"type": "map", "values": "int"}), name="I")},
    ),
    ("either", ["null", "string", "Address", {"type": "array", "items": "long"}]),
    ("tree", NODE),
)
ORDER = {
    "id": 7,
    "customer": {"name": "Ada", "address": {"city": "Köln"}},
    "items": [{"sku": "a", "tags": {"x": 1}}],
    "either": {"city": "Bonn"},
    "tree": {"name": "root", "next": {"name": "leaf", "next": None}},
}


def test_b39_columns_by_path_into_records_arrays_maps_and_unions(spark: SparkSession) -> None:
    columns = [
        at("city", "string", "customer.address.city"),
        at("customer", "json"),
        at("sku", "string", "items[0].sku"),
        at("tag", "bigint", "items[0].tags.x"),
        at("none", "bigint", "items[0].tags.y"),
        at("later", "string", "items[3].sku"),
        at("missing", "string", "customer.phone.number"),
        at("either", "string", "either.city"),
        at("root", "string", "tree.name"),
    ]
    of, schemas = source(*columns), known({1: NESTED})
    first, second, third = parsed(
        spark,
        of,
        schemas,
        encoded(NESTED, ORDER, 1),
        encoded(NESTED, {**ORDER, "customer": None, "items": [], "either": None}, 1),
        encoded(NESTED, {**ORDER, "either": "Bonn"}, 1),
    )
    assert first["reason"] is None
    customer = '{"name":"Ada","address":{"city":"Köln"}}'
    assert [*first["s_row"]] == ["Köln", customer, "a", 1, None, None, None, "Bonn", "root"]
    assert [*second["s_row"]] == [None] * 8 + ["root"]
    assert third["reason"] == 'either: expected a record, found "Bonn" (string in schema 1)'


def test_b39_a_way_through_another_type_is_refused_at_its_place(spark: SparkSession) -> None:
    (row,) = parsed(spark, source(at("x", "string", "customer[0]")), known({1: NESTED}), encoded(NESTED, ORDER, 1))
    assert row["reason"].startswith('customer: expected an array, found {"name":"Ada","address":')
    (row,) = parsed(spark, source(at("x", "string", "id.more")), known({1: NESTED}), encoded(NESTED, ORDER, 1))
    assert row["reason"] == "id: expected a record, found 7 (long in schema 1)"


def test_b39_a_record_inside_of_itself_can_be_no_column_and_hurts_no_other(spark: SparkSession) -> None:
    of = source(at("root", "string", "tree.name"), at("tree", "json"))
    (row,) = parsed(spark, of, known({1: NESTED}), encoded(NESTED, ORDER, 1))
    assert row["reason"] == "tree: expected json, found a record that can contain itself in schema 1"
    (row,) = parsed(spark, replace(of, on_error="null"), known({1: NESTED}), encoded(NESTED, ORDER, 1))
    assert [*row["s_row"]] == ["root", None]


def test_b39_values_that_cannot_be_decoded_are_refused_with_their_schema_id(spark: SparkSession) -> None:
    schemas = known({1: NESTED}, unusable={9: "the registry has no such schema"})
    whole = encoded(NESTED, ORDER, 1)
    no_header = "value: expected Avro with a header (a zero byte and the id of a schema), found the bytes "
    no_avro = "value: expected Avro by schema 1, found bytes that it does not describe"
    reasons = {
        b"": no_header,
        b"\0\0\0": f"{no_header}000000",
        b'{"id":7}': f"{no_header}7b22696422",
        whole[:-1]: no_avro,
        header(1): no_avro,
        # A text that claims to have two gigabytes.
        header(1) + b"\x0e\x02\xfe\xff\xff\xff\x0f": no_avro,
        # An array of a billion records.
        header(1) + b"\x0e\x00\x80\xa8\xd6\xb9\x07": no_avro,
        header(9) + b"x": "value: expected the id of an Avro schema, found 9: the registry has no such schema",
        encoded(NESTED, {**ORDER, "customer": {"name": "x" * 5_000, "address": {"city": ""}}}, 1): (
            "value: expected at most 4000 bytes, found 5"
        ),
    }
    of = source(at("id", "bigint"), at("name", "string", "customer.name"), max_value_bytes=4_000)
    rows = parsed(spark, of, schemas, *reasons, None, whole)
    for row, expected in zip(rows, reasons.values(), strict=False):
        assert row["s_row"] is None
        assert row["reason"].startswith(expected)
    tombstone, good = rows[-2:]
    assert (tombstone["s_row"], tombstone["reason"]) == (None, None)
    assert ([*good["s_row"]], good["reason"]) == ([7, "Ada"], None)


def test_b39_text_that_is_no_utf_8_is_refused(spark: SparkSession) -> None:
    (row,) = parsed(spark, source(at("x", "string")), known({1: record(("x", "string"))}), header(1) + b"\x02\xff")
    assert row["reason"].startswith("x: expected string, found ")


def test_b39_a_schema_that_is_not_known_ends_the_query_and_is_named(spark: SparkSession) -> None:
    of = source(at("id", "bigint"))
    for schemas in ({}, known({1: NESTED}), known({}, unusable={1: "there is none"})):
        with pytest.raises(PySparkException) as caught:
            parsed(spark, of, schemas, encoded(NESTED, ORDER, 70_000))
        assert unknown_schema(reason(caught.value)) == UnknownSchema("s", 70_000)
    assert unknown_schema("something else") is None


def test_b39_a_stream_that_meets_a_schema_which_it_does_not_know_names_it_every_time(
    spark: SparkSession, kafka: str, checkpoint: Path
) -> None:
    board = Board(sources={"s": replace(source(at("id", "bigint")), topic="unknown-schemas")})
    with closing(Bench(kafka, board)) as bench:
        bench.create_topics(partitions=2)
        bench.produce(Event("s", encoded(NESTED, ORDER, 70_000), FIRST_MS, partition) for partition in (0, 1))
        generation = made(spark, bench.plan, checkpoint)
        for _ in range(4):
            generation.follow()
            until(generation.failure, "an error")
            assert unknown_schema(generation.failure()) == UnknownSchema("unknown-schemas", 70_000)
        generation.stop()


def test_b39_without_a_registry_there_is_one_schema_and_no_header(spark: SparkSession) -> None:
    of, schemas = (
        source(at("id", "bigint"), avro_schema_file="order.avsc"),
        {"s": AvroSchemas(only=avro_schema.parse(json.dumps(NESTED)))},
    )
    good, short = parsed(spark, of, schemas, encoded(NESTED, ORDER), b"\x80")
    assert ([*good["s_row"]], good["reason"]) == ([7], None)
    assert short["reason"] == "value: expected Avro by avro_schema_file, found bytes that it does not describe"


def test_each_value_is_decoded_once(spark: SparkSession) -> None:
    of = source(at("id", "bigint"), at("city", "string", "customer.address.city"), at("items", "json"))
    schemas = known({1: NESTED, 2: record(("id", "int")), 3: NESTED})
    frame = entries(kafka_frame(spark, [Record("s", 0, 0, 0, b"")]), Board(sources={"s": of}), schemas)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_avro(") == len(schemas["s"].by_id)


# Three versions of one schema: fields come, go, and change their types.
VERSIONS: dict[int | None, Any] = {
    1: record(("id", "int"), ("name", "string"), ("price", ["null", "float"]), ("old", ["null", "string"])),
    2: record(
        ("id", "long"),
        ("name", ["null", "string"]),
        ("price", LOGICAL["decimal"]),
        ("placed", LOGICAL["millis"]),
        ("customer", ["null", record(("city", ["null", "string"]), ("since", LOGICAL["date"]), name="Customer")]),
    ),
    70_000: record(
        ("customer", record(("city", "string"), ("since", ["null", LOGICAL["date"]]), name="Customer")),
        ("tags", {"type": "array", "items": ["null", "string", "long"]}),
        ("id", "long"),
        ("name", ENUM),
        ("placed", ["null", LOGICAL["micros"]]),
        ("raw", "bytes"),
    ),
}
COLUMNS = (
    at("id", "bigint"),
    at("name", "string"),
    at("price", "decimal(5,2)"),
    at("placed", "timestamp"),
    at("city", "string", "customer.city"),
    at("since", "date", "customer.since"),
    at("customer", "json"),
    at("tag", "string", "tags[1]"),
    at("raw", "binary"),
    Column("at", "bigint", origin="offset"),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))
DECIMALS = st.integers(-999_999, 999_999).map(lambda number: Decimal(number) / 1000)
DATES = st.dates(date(1, 1, 1), date(9999, 12, 31))
DOCUMENTS = {
    1: st.fixed_dictionaries(
        {
            "id": st.integers(-(2**31), 2**31 - 1),
            "name": TEXTS,
            "price": st.none() | st.just(1.5),
            "old": st.none() | TEXTS,
        }
    ),
    2: st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            "name": st.none() | TEXTS,
            "price": DECIMALS,
            "placed": MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
            "customer": st.none() | st.fixed_dictionaries({"city": st.none() | TEXTS, "since": DATES}),
        }
    ),
    70_000: st.fixed_dictionaries(
        {
            "customer": st.fixed_dictionaries({"city": TEXTS, "since": st.none() | DATES}),
            "tags": st.lists(st.none() | TEXTS | st.integers(0, 9), max_size=3),
            "id": st.integers(-(2**63), 2**63 - 1),
            "name": st.sampled_from(["RED", "GREEN"]),
            "placed": st.none() | MOMENTS,
            "raw": st.binary(max_size=4),
        }
    ),
}


@st.composite
def values(draw: st.DrawFn) -> bytes | None:
    schema_id = draw(st.sampled_from(sorted(DOCUMENTS)))
    whole = encoded(VERSIONS[schema_id], draw(DOCUMENTS[schema_id]), schema_id)
    kind = draw(st.integers(0, 19))
    broken = {0: None, 1: whole[:-1], 2: b"\1" + whole[1:], 3: header(13) + whole[5:], 4: whole[:4]}
    return broken.get(kind, whole)


@pytest.mark.parametrize("on_error", ["reject", "null"])
@settings(max_examples=1)
@given(st.lists(values(), min_size=60, max_size=100).filter(lambda found: len(set(found)) > 30))
def test_b39_the_tables_of_three_versions_are_what_the_oracle_says(
    spark: SparkSession, on_error: str, values: list[bytes | None]
) -> None:
    board = Board(sources={"s": source(*COLUMNS, on_error=on_error)})
    records = [Record("s", number % 3, number, number, value) for number, value in enumerate(values)]
    schemas = known({id_: schema for id_, schema in VERSIONS.items() if id_}, unusable={13: "there is none"})
    found = own_rows(spark, board, records, schemas)
    for name, table in oracle.tables(board, records, AvroOracle(VERSIONS).read).items():
        assert difference(name, found[name], table) == ""


def own_rows(
    spark: SparkSession, board: Board, records: list[Record], schemas: Mapping[str, AvroSchemas]
) -> dict[str, oracle.Table]:
    """The tables of the sources and the rejects, as the changelogs have them."""
    frame = apart(entries(kafka_frame(spark, records), board, schemas))
    entry = {name: F.col(name) for name in ("key", "record", "cut", "origin", "place")}
    row = own_row(board, **entry, counts=F.lit(True))
    columns = table_columns(board)
    found: dict[str, oracle.Table] = {name: {} for name in columns}
    for name, key, value in frame.select(row.alias("row")).select("row.*").collect():
        found[name][key] = decode_row(value.encode(), columns[name])
    return found
