"""Values in Avro, with the registry's header (a zero byte and the id of the writer's schema) or of one schema.

The first look decodes each value by its writer's schema, reduced to what the columns need. Schemas that are reduced to
the same are read alike. The second look makes the columns of it, and says what is wrong with them.

A schema id that is not known is no fault of the record. The query ends with an error that `unknown_schema` recognises.
Whoever runs it can learn the schema and start the query again from its checkpoint, which comes to the record again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from liveboard.contract.board import Source
from liveboard.contract.paths import path_text
from liveboard.contract.schema import Column
from liveboard.pipeline.avro_fields import fitting, json_text
from liveboard.pipeline.avro_schema import AvroSchemaError, AvroSchemas, AvroType, FoundType, Needs, find, written
from liveboard.pipeline.formats import Format, Rule, shown

_HEADER_BYTES = 5
_UNKNOWN = re.compile(r"the Avro schema (\d+) of the topic ([A-Za-z0-9._-]+) is not known yet")


class UnknownSchema(NamedTuple):
    """What a query ended for: a record of this topic has a schema that it does not know."""

    topic: str
    id: int


def unknown_schema(text: str) -> UnknownSchema | None:
    """Whether a query's error is about a schema that it does not know."""
    found = _UNKNOWN.search(text)
    return UnknownSchema(found[2], int(found[1])) if found else None


class _Shape(NamedTuple):
    """What is read of some of the schemas: the same for all of them."""

    reader: str
    recursive: tuple[str, ...]


class AvroFormat(Format):
    """Avro by the schemas that are known."""

    def __init__(self, source: Source, first: Expr, second: Expr, schemas: AvroSchemas) -> None:
        super().__init__(source, first, second, schemas)
        self._unusable = dict(schemas.unusable)
        self._shapes: dict[_Shape, dict[int, AvroType]] = {}
        known = {0: schemas.only} if schemas.only else schemas.by_id
        for schema_id, schema in known.items():
            try:
                needs = Needs(schema, self.columns)
                shape = _Shape(json.dumps(needs.reader), needs.recursive)
                self._shapes.setdefault(shape, {})[schema_id] = schema
            except AvroSchemaError as error:
                self._unusable[schema_id] = str(error)

    def can_be_read(self) -> Expr:
        """A header, where one is expected."""
        if self.schemas.only:
            return F.lit(True)
        return (F.octet_length("value") >= _HEADER_BYTES) & (F.substring("value", 1, 1) == F.lit(b"\0"))

    def look(self) -> Expr:
        """The decoded value, in the field of its shape; the query ends where the schema is not known."""
        decoded = [self._decoded(shape, schemas).alias(_name(n)) for n, (shape, schemas) in self._numbered()]
        # Where no schema is known there is still something to look at: Spark leaves out what nobody looks at.
        looked = F.struct(*decoded or [F.struct(F.lit(None).cast("int").alias("read")).alias(_name(0))])
        if self.schemas.only:
            return looked
        known = [_header(each) for schemas in self._shapes.values() for each in schemas]
        known += [_header(each) for each in self._unusable]
        said = (F.lit("the Avro schema "), self._id(), F.lit(" of the topic "), "topic", F.lit(" is not known yet"))
        unknown = F.raise_error(F.concat(*said))
        return F.when(F.when(self._header().isin(known), True).otherwise(unknown.cast("boolean")), looked)

    def look_again(self) -> Expr | None:
        """The columns by number, and what is wrong with the first one that refuses the record."""
        made = [self._column(column) for column in self.columns]
        values = [value.alias(f"c{number}") for number, (value, _) in enumerate(made)]
        strict = map(self.source.is_strict, self.columns)
        reasons = [why for is_strict, (_, why) in zip(strict, made, strict=True) if is_strict and why is not None]
        wrong = F.coalesce(*reasons) if reasons else F.lit(None).cast("string")
        return F.when(self.has_row(), F.struct(*values, wrong.alias("wrong")))

    def has_row(self) -> Expr:
        """Whether it was decoded."""
        return F.coalesce(*[self.first[_name(n)]["read"] for n in range(len(self._shapes) or 1)]).isNotNull()

    def unreadable(self) -> list[Rule]:
        """No header, no schema, or bytes that the schema does not describe."""
        if self.schemas.only:
            said = self._unusable.get(0) or "bytes that it does not describe"
            return [Rule(~self.has_row(), lambda: F.lit(f"value: expected Avro by avro_schema_file, found {said}"))]
        no_header = Rule(
            ~F.coalesce(self.can_be_read(), F.lit(False)),
            lambda: F.concat(
                F.lit("value: expected Avro with a header (a zero byte and the id of a schema), found the bytes "),
                F.lower(F.hex(F.substring("value", 1, _HEADER_BYTES))),
            ),
        )
        unusable = [
            Rule(
                self._header() == _header(schema_id),
                partial(F.lit, f"value: expected the id of an Avro schema, found {schema_id}: {what}"),
            )
            for schema_id, what in self._unusable.items()
        ]
        undescribed = Rule(
            ~self.has_row(),
            lambda: F.concat(
                F.lit("value: expected Avro by schema "), self._id(), F.lit(", found bytes that it does not describe")
            ),
        )
        return [no_header, *unusable, undescribed]

    def wrong(self, columns: Sequence[Column]) -> list[Rule]:
        """Values of a type that is not the column's."""
        wrong = self.second["wrong"]
        if not columns:
            return []
        return [Rule(F.coalesce(wrong.isNotNull(), F.lit(False)), lambda: wrong)]

    def value(self, column: Column) -> Expr:
        """As the second look has it."""
        return self.second[f"c{self.columns.index(column)}"]

    def _numbered(self) -> Iterable[tuple[int, tuple[_Shape, dict[int, AvroType]]]]:
        return enumerate(self._shapes.items())

    def _header(self) -> Expr:
        return F.substring("value", 1, _HEADER_BYTES)

    def _id(self) -> Expr:
        return F.conv(F.hex(F.substring("value", 2, _HEADER_BYTES - 1)), 16, 10)

    def _decoded(self, shape: _Shape, schemas: Mapping[int, AvroType]) -> Expr:
        """struct(row, read): `read` is null where the bytes could not be decoded."""
        reader = json.dumps(_around(json.loads(shape.reader), is_reader=True))
        options = {"mode": "PERMISSIVE", "avroSchema": reader}

        def by(schema: AvroType, body: Expr) -> Expr:
            return from_avro(body, json.dumps(_around(written(schema), is_reader=False)), options)

        if self.schemas.only:
            return by(self.schemas.only, F.col("value"))
        body = F.substring("value", _HEADER_BYTES + 1, 2**31 - 1)
        branches = [F.when(self._header() == _header(id_), by(schema, body)) for id_, schema in schemas.items()]
        return F.coalesce(*branches)

    def _column(self, column: Column) -> tuple[Expr, Expr | None]:
        """The value, null where it is wrong, and why it is wrong, None where it never is."""
        values, reasons = [], []
        for number, (shape, schemas) in self._numbered():
            decoded = self.first[_name(number)]
            if column.name in shape.recursive:
                reasons.append(F.when(decoded["read"].isNotNull(), self._inside_itself(column)))
                continue
            schema = next(iter(schemas.values()))
            for found in find(schema, column.steps):
                came = _at(decoded["row"], found)
                value = None if found.rest else fitting(came, found.type, column)
                if value is not None:
                    values.append(value)
                is_wrong = came.isNotNull() if value is None else came.isNotNull() & value.isNull()
                reasons.append(F.when(is_wrong, self._why(column, found, came)))
        nothing = F.lit(None).cast(column.kind.spark)
        return F.coalesce(*values, nothing), F.coalesce(*reasons) if reasons else None

    def _why(self, column: Column, found: FoundType, came: Expr) -> Expr:
        place, expected = column.place, column.type
        if found.rest:
            place = path_text(column.steps[: -len(found.rest)])
            expected = "an array" if isinstance(found.rest[0], int) else "a record"
        of_schema = F.lit(f" ({found.type.text})") if self.schemas.only else self._of_schema(found.type)
        return F.concat(F.lit(f"{place}: expected {expected}, found "), shown(json_text(came)), of_schema)

    def _of_schema(self, type_: AvroType) -> Expr:
        return F.concat(F.lit(f" ({type_.text} in schema "), self._id(), F.lit(")"))

    def _inside_itself(self, column: Column) -> Expr:
        found = f"{column.place}: expected {column.type}, found a record that can contain itself"
        return F.lit(found) if self.schemas.only else F.concat(F.lit(f"{found} in schema "), self._id())


def _name(number: int) -> str:
    return f"shape{number}"


def _header(schema_id: int) -> Expr:
    return F.lit(b"\0" + schema_id.to_bytes(_HEADER_BYTES - 1, "big"))


def _around(schema: object, *, is_reader: bool) -> object:
    """The schema as the one field of a record, which is written as the field itself is.

    Spark makes a row of nulls of what it cannot decode. What it can decode has the default of a field that was not
    written.
    """
    fields: list[object] = [{"name": "row", "type": schema}]
    if is_reader:
        fields.append({"name": "read", "type": "int", "default": 1})
    return {"type": "record", "name": "value", "fields": fields}


def _at(value: Expr, found: FoundType) -> Expr:
    """The value at the place, null where the way there ends before."""
    for step in found.way:
        match step.into:
            case "array":
                value = F.get(value, F.lit(step.to))
            case "map":
                value = F.try_element_at(value, F.lit(step.to))
            case _:
                value = value[step.to]
    return value
