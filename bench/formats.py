"""What reading costs by format: the same orders as flat JSON, as nested JSON, as Debezium's changes and in Avro."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import fastavro
from floor import warm_seconds
from load import FIRST_MS, Event, produce
from processes import in_process, say
from report import Figure
from run import sparking
from stage import PATIENCE_S, Stage

from liveboard.contract.board import Board, Source
from liveboard.contract.formats import FormatName
from liveboard.contract.paths import Path
from liveboard.contract.schema import Column, parse_schema
from liveboard.pipeline import avro_schema
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.route import entries

_FLAT = parse_schema("orderId bigint, sku string, city string, quantity bigint, price double")
_PATHS: dict[str, Path] = {
    "sku": ("items", 0, "sku"),
    "city": ("customer", "address", "city"),
    "quantity": ("items", 0, "quantity"),
}
_NESTED = tuple(Column(column.name, column.type, _PATHS.get(column.name)) for column in _FLAT)
_SCHEMA_ID = 1
_SCHEMA = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "orderId", "type": "long"},
        {"name": "sku", "type": "string"},
        {"name": "city", "type": ["null", "string"]},
        {"name": "quantity", "type": "long"},
        {"name": "price", "type": "double"},
    ],
}
_PARSED = fastavro.parse_schema(_SCHEMA)
Order = Mapping[str, object]


def _flat(order: Order) -> bytes:
    return json.dumps(order).encode()


def _nested(order: Order) -> bytes:
    items = [{"sku": order["sku"], "quantity": order["quantity"]}]
    customer = {"name": "Ada", "address": {"city": order["city"]}}
    document = {"orderId": order["orderId"], "price": order["price"], "customer": customer, "items": items}
    return json.dumps(document).encode()


def _debezium(order: Order) -> bytes:
    return json.dumps({"before": None, "after": order, "op": "c", "ts_ms": FIRST_MS}).encode()


def _avro(order: Order) -> bytes:
    out = io.BytesIO(b"\0" + _SCHEMA_ID.to_bytes(4, "big"))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, _PARSED, order)
    return out.getvalue()


@dataclass(frozen=True)
class _Form:
    """One way to write orders."""

    columns: tuple[Column, ...]
    written: Callable[[Order], bytes]
    format: FormatName = "json"
    key: tuple[str, ...] = ()


_FORMS = {
    "flat JSON": _Form(_FLAT, _flat),
    "nested JSON": _Form(_NESTED, _nested),
    "Debezium": _Form(_FLAT, _debezium, "debezium", ("orderId",)),
    "Avro": _Form(_FLAT, _avro, "avro"),
}


def formats(stage: Stage) -> list[Figure]:
    """From the topic until records are ready to be joined, into nothing; the third time counts."""
    return in_process("formats", 4 * PATIENCE_S, _measure, stage)


def _measure(stage: Stage) -> list[Figure]:
    count = stage.sizes.keys_records
    seconds: dict[str, float] = {}
    with sparking(stage) as spark:
        for name, form in _FORMS.items():
            topic, _ = stage.new_topics()
            say(f"formats: {count:,} orders as {name}")
            produce(stage.bootstrap, (Event(topic, form.written(_order(n)), FIRST_MS + n) for n in range(count)))
            source = Source(
                name="orders", topic=topic, table="orders_ui", columns=form.columns, format=form.format, key=form.key
            )
            known = AvroSchemas(by_id={_SCHEMA_ID: avro_schema.parse(json.dumps(_SCHEMA))})
            reader = spark.read.format("kafka").option("kafka.bootstrap.servers", stage.bootstrap)
            records = reader.option("subscribe", topic).option("minPartitions", str(2 * (os.cpu_count() or 1))).load()
            found = entries(records, Board(sources={"orders": source}), {"orders": known})
            seconds[name] = warm_seconds(f"as {name}", found)
    return [
        Figure(f"formats, {count:,} records ready to be joined, {name}, warm", "s", took)
        for name, took in seconds.items()
    ]


def _order(number: int) -> Order:
    return {
        "orderId": number,
        "sku": f"sku-{number % 500}",
        "city": f"city {number % 50}",
        "quantity": number % 7,
        "price": number % 1000 / 4,
    }
