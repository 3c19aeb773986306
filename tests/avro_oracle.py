"""What rows must be of records in Avro, worked out with fastavro: written from behaviour B39, not from the pipeline."""

from __future__ import annotations

import base64
import functools
import io
import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import oracle
from oracle import Record, Refused, WrongWay

from liveboard.contract.board import Source
from liveboard.contract.schema import Column

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encoded(schema: Any, value: Any, schema_id: int | None = None) -> bytes:
    """The value in Avro, behind the registry's header if there is an id."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _parsed(json.dumps(schema)), value)
    return header(schema_id) + body.getvalue()


@functools.cache
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


def header(schema_id: int | None) -> bytes:
    """The registry's header."""
    return b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")


class AvroOracle:
    """Reads records by the schemas that the registry has, or by the one of a file (the schema of None)."""

    def __init__(self, schemas: Mapping[int | None, Any]) -> None:
        self._schemas = schemas

    def read(self, source: Source, record: Record) -> dict[str, Any]:
        """The typed row, or Refused."""
        schema, document = self._document(source, record.value or b"")
        named = dict(_named(schema, ""))
        row: dict[str, Any] = {}
        for column in sorted(source.columns, key=lambda column: bool(column.origin)):
            try:
                if column.origin:
                    row[column.name] = oracle.of_kafka(record, column)
                else:
                    row[column.name] = _at_path(schema, document, column, named)
            except ValueError as error:
                if source.on_error == "reject":
                    expected = str(error) if isinstance(error, WrongWay) else f"{column.place}: expected {column.type}"
                    raise Refused(expected) from None
                row[column.name] = None
        return {column.name: row[column.name] for column in source.columns}

    def _document(self, source: Source, value: bytes) -> tuple[Any, Any]:
        if len(value) > source.max_value_bytes:
            raise Refused(f"value: expected at most {source.max_value_bytes} bytes")
        if source.avro_schema_file:
            schema, body, expected = self._schemas[None], value, "value: expected Avro by avro_schema_file"
        else:
            if len(value) < 5 or value[0] != 0:
                raise Refused("value: expected Avro with a header (a zero byte and the id of a schema)")
            schema_id, body = int.from_bytes(value[1:5], "big"), value[5:]
            if schema_id not in self._schemas:
                raise Refused("value: expected the id of an Avro schema")
            schema, expected = self._schemas[schema_id], f"value: expected Avro by schema {schema_id}"
        try:
            return schema, fastavro.schemaless_reader(io.BytesIO(body), _parsed(json.dumps(schema)), None)
        except Exception:
            raise Refused(expected) from None


def _named(schema: Any, namespace: str) -> Iterator[tuple[str, Any]]:
    """The types that a schema names; the tests' schemas have no name twice, whatever its namespace."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named(each, namespace)
    elif isinstance(schema, dict):
        if "name" in schema:
            yield schema["name"], schema
        for each in schema.get("fields", ()):
            yield from _named(each["type"], namespace)
        for inner in ("items", "values", "type"):
            if isinstance(schema.get(inner), dict | list | str) and schema.get(inner) != schema["type"]:
                yield from _named(schema[inner], namespace)


def _at_path(schema: Any, found: Any, column: Column, named: Mapping[str, Any]) -> Any:
    way = ""
    schema = _branch(schema, found, named)
    for step in column.steps:
        kind = _kind(schema)
        if found is None:
            return None
        if isinstance(step, int):
            if kind != "array":
                raise WrongWay(f"{way}: expected an array")
            schema, found, way = schema["items"], found[step] if step < len(found) else None, f"{way}[{step}]"
        else:
            if kind not in ("record", "map"):
                raise WrongWay(f"{way}: expected a record")
            if kind == "record":
                schema = next((each["type"] for each in schema["fields"] if each["name"] == step), "null")
            else:
                schema = schema["values"]
            found, way = found.get(step), f"{way}.{step}" if way else step
        schema = _branch(schema, found, named)
    return None if found is None else _typed(schema, found, column, named)


def _kind(schema: Any) -> str:
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def _branch(schema: Any, found: Any, named: Mapping[str, Any]) -> Any:
    """The type that the value is of, without names and unions."""
    while isinstance(schema, str) and schema in named:
        schema = named[schema]
    if not isinstance(schema, list):
        return schema
    kinds: dict[type, tuple[str, ...]] = {
        type(None): ("null",),
        bool: ("boolean",),
        int: ("long", "int"),
        float: ("double", "float"),
        str: ("string", "enum"),
        bytes: ("bytes", "fixed"),
        dict: ("record", "map"),
        list: ("array",),
    }
    branches = [_branch(each, found, named) for each in schema]
    for kind in kinds.get(type(found), ()):
        for branch in branches:
            if _kind(branch) == kind:
                return branch
    return next(branch for branch in branches if isinstance(branch, dict) and "logicalType" in branch)


def _typed(schema: Any, found: Any, column: Column, named: Mapping[str, Any]) -> Any:
    kind = _kind(schema)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    of_integers = logical is None and kind in ("int", "long")
    match column.type.partition("(")[0]:
        case "string":
            if kind in ("string", "enum"):
                return str(found)
        case "boolean":
            if kind == "boolean":
                return found
        case "int":
            if of_integers and kind == "int":
                return found
        case "bigint":
            if of_integers:
                return found
        case "double":
            if (of_integers or kind in ("float", "double")) and math.isfinite(found):
                return float(found)
        case "decimal":
            if of_integers or logical == "decimal":
                return oracle.typed(f"{Decimal(found):f}", column)
        case "date":
            if logical == "date":
                return found.isoformat()
        case "timestamp":
            if logical in ("timestamp-millis", "timestamp-micros"):
                return _moment(found)
            if column.unit and of_integers:
                return oracle.typed(found, column)
        case "json":
            return json.dumps(_plain(schema, found, named), ensure_ascii=False, separators=(",", ":"))
        case "binary":
            if kind in ("bytes", "fixed") and logical is None:
                return base64.b64encode(found).decode()
    if kind == "string" and column.type.startswith(("decimal", "date", "timestamp")):
        return oracle.typed(str(found), column)
    raise ValueError(found)


def _plain(schema: Any, found: Any, named: Mapping[str, Any]) -> Any:
    """The value as JSON has it: fields in the order of the schema."""
    schema = _branch(schema, found, named)
    match found:
        case dict() if _kind(schema) == "record":
            return {each["name"]: _plain(each["type"], found[each["name"]], named) for each in schema["fields"]}
        case dict():
            return {key: _plain(schema["values"], value, named) for key, value in found.items()}
        case list():
            return [_plain(schema["items"], value, named) for value in found]
        case bytes():
            return base64.b64encode(found).decode()
        case datetime():
            return _moment(found)
        case date():
            return found.isoformat()
    return found


def _moment(found: datetime) -> str:
    return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
