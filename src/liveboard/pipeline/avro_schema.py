"""Avro schemas: what of them the columns of a source need, so that Spark reads just that.

A writer's schema is reduced to the fields that columns are made of. All else is skipped while a record is decoded. It
may be of types that Spark cannot read, and versions of a schema that differ there alone are read alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from liveboard.contract.errors import LiveboardError
from liveboard.contract.paths import Path
from liveboard.contract.schema import Column

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
# What Spark makes of int and long; all other logical types are left out, and their values are plain ones.
_TIMES = {
    "date": "int",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_DIGITS = 38


class AvroSchemaError(LiveboardError):
    """A text that is no Avro schema, or one that cannot be read here; the message says why."""


@dataclass(eq=False)
class AvroType:
    """One type of a schema; records may contain themselves."""

    kind: str
    """A primitive type, record, enum, fixed, array, map or union."""
    name: str = ""
    """Of records, enums and fixed types, with the namespace."""
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: Sequence[str] = ()
    fields: dict[str, AvroType] = field(default_factory=dict)
    inner: list[AvroType] = field(default_factory=list)
    """The types of a union, or the one of an array's or map's values."""

    @property
    def text(self) -> str:
        """The type as reasons name it."""
        if self.logical == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return self.logical or " ".join(filter(None, [self.kind, self.name.rpartition(".")[2]]))


@dataclass(frozen=True)
class AvroSchemas:
    """What is known of a source's schemas."""

    by_id: Mapping[int, AvroType] = field(default_factory=dict)
    unusable: Mapping[int, str] = field(default_factory=dict)
    """Ids whose records are rejected, with what was found instead of a schema."""
    only: AvroType | None = None
    """The one schema of values that have no header."""


def parse(text: str, references: Sequence[str] = ()) -> AvroType:
    """The type of a schema; `references` are schemas whose names it uses, each after those that it uses itself."""
    named: dict[str, AvroType] = {}
    for reference in references:
        _Reader(named).read(_json(reference), "")
    return _Reader(named).read(_json(text), "")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # Some registries keep the schema "string" as a bare word.
        if text.strip() in _PRIMITIVES:
            return text.strip()
        raise AvroSchemaError("expected an Avro schema in JSON, found another text") from None


class _Reader:
    def __init__(self, named: dict[str, AvroType]) -> None:
        self._named = named

    def read(self, schema: Any, namespace: str) -> AvroType:
        match schema:
            case str():
                return self._by_name(schema, namespace)
            case list():
                return AvroType("union", inner=[self.read(each, namespace) for each in schema])
            case {"type": "record" | "error" | "enum" | "fixed"}:
                return self._define(schema, namespace)
            case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
                return AvroType(schema["type"], inner=[self.read(inner, namespace)])
            case {"type": str() as kind} if kind in _PRIMITIVES:
                return _with_logical(AvroType(kind), schema)
            case {"type": inner}:
                return self.read(inner, namespace)
        raise AvroSchemaError(f"expected an Avro schema, found {json.dumps(schema)[:100]}")

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return AvroType(name)
        for full in (_full(name, namespace), name):
            if full in self._named:
                return self._named[full]
        raise AvroSchemaError(f'expected an Avro type, found "{name}", which is not defined')

    def _define(self, schema: Mapping[str, Any], namespace: str) -> AvroType:
        name = _full(str(schema.get("name", "")), str(schema.get("namespace") or namespace))
        kind = "record" if schema["type"] == "error" else str(schema["type"])
        defined = AvroType(kind, name)
        for part in name.split("."):
            _check_name(part)
        # Before its fields are read, since they may be of this type.
        self._named[name] = defined
        inside = name.rpartition(".")[0]
        try:
            if kind == "record":
                for each in schema["fields"]:
                    defined.fields[_check_name(each["name"])] = self.read(each["type"], inside)
            elif kind == "enum":
                defined.symbols = [_check_name(symbol) for symbol in schema["symbols"]]
            else:
                defined.size = int(schema["size"])
        except (KeyError, TypeError, ValueError) as error:
            raise AvroSchemaError(f"expected a whole {kind} {name}, found one without {error}") from None
        return _with_logical(defined, schema)


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise AvroSchemaError(f"expected a name of letters, digits and _, found {json.dumps(name)[:100]}")
    return name


def _with_logical(type_: AvroType, schema: Mapping[str, Any]) -> AvroType:
    """Notes the logical type, if it is one that Spark reads; one that is not valid counts for nothing, as in Avro."""
    logical = schema.get("logicalType")
    if isinstance(logical, str) and _TIMES.get(logical) == type_.kind:
        type_.logical = logical
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if logical == "decimal" and type_.kind in ("bytes", "fixed") and _whole(precision) and _whole(scale):
        digits = _MOST_DIGITS if type_.kind == "bytes" else _digits(type_.size)
        if 0 < precision <= min(digits, _MOST_DIGITS) and 0 <= scale <= precision:
            type_.logical, type_.precision, type_.scale = "decimal", precision, scale
    return type_


def _whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _digits(size: int) -> int:
    """How many digits always fit into that many bytes."""
    return math.floor(math.log10(2 ** (8 * min(size, _MOST_DIGITS) - 1) - 1)) if size > 0 else 0


@dataclass(frozen=True)
class TypeStep:
    """One step into a value."""

    into: str
    """record, array, map or union."""
    to: int | str
    """The field's name, the place in the array, the key of the map, or Spark's name for a type of the union."""
    name: str = ""
    """Of the record."""


@dataclass(frozen=True)
class FoundType:
    """A type that can be at the end of a column's path, or on the way where the path cannot go on."""

    way: tuple[TypeStep, ...]
    type: AvroType
    rest: Path = ()
    """What remains of the column's path where it cannot go on."""


def find(schema: AvroType, path: Path) -> list[FoundType]:
    """What a value of the schema can have at a path: several types for a union, nothing where a field is missing."""
    found = [FoundType((), schema, path)]
    while any(_goes_on(each) for each in found):
        found = [more for each in found for more in (_further(each) if _goes_on(each) else [each])]
    return [each for each in found if each.type.kind != "null"]


def _goes_on(found: FoundType) -> bool:
    if found.type.kind == "union" or not found.rest:
        return found.type.kind == "union"
    return found.type.kind in (("array",) if isinstance(found.rest[0], int) else ("record", "map"))


def _further(found: FoundType) -> Iterator[FoundType]:
    type_ = found.type
    if type_.kind == "union":
        for name, inner in _members(type_):
            yield FoundType((*found.way, TypeStep("union", name)) if name else found.way, inner, found.rest)
        return
    to, *rest = found.rest
    if type_.kind != "record":
        yield FoundType((*found.way, TypeStep(type_.kind, to)), type_.inner[0], tuple(rest))
    elif to in type_.fields:
        yield FoundType((*found.way, TypeStep("record", to, type_.name)), type_.fields[str(to)], tuple(rest))


def _members(union: AvroType) -> Iterator[tuple[str, AvroType]]:
    """The types of a union, and Spark's name for the value of each; empty where the union has just this value."""
    types = [each for each in union.inner if each.kind != "null"]
    plain = {each.kind for each in types if not each.logical}
    if len(types) == 1:
        yield "", types[0]
    elif len(types) == 2 and plain in ({"int", "long"}, {"float", "double"}):
        yield "", AvroType("long" if "long" in plain else "double")
    else:
        yield from ((f"member{number}", each) for number, each in enumerate(types))


class Needs:
    """Which fields of which records the columns of a source need."""

    def __init__(self, schema: AvroType, columns: Sequence[Column]) -> None:
        self._schema = schema
        self._fields: dict[str, set[str]] = {}
        self.recursive: tuple[str, ...] = ()
        """The columns that would need a record inside of itself, which Spark does not read."""
        for column in columns:
            needed: dict[str, set[str]] = {}
            if any(not _mark(each, needed) for each in find(schema, column.steps)):
                self.recursive = (*self.recursive, column.name)
            else:
                for name, fields in needed.items():
                    self._fields.setdefault(name, set()).update(fields)

    @property
    def reader(self) -> Any:
        """The schema with these fields alone, as JSON."""
        return _written(self._schema, self._fields)


def _mark(found: FoundType, needed: dict[str, set[str]]) -> bool:
    """Notes what is needed for it; False where a record would contain itself."""
    records = [step for step in found.way if step.into == "record"]
    for step in records:
        needed.setdefault(step.name, set()).add(str(step.to))
    names = [step.name for step in records]
    return len(set(names)) == len(names) and _mark_all(found.type, needed, names)


def _mark_all(type_: AvroType, needed: dict[str, set[str]], around: list[str]) -> bool:
    if type_.kind != "record":
        return all(_mark_all(each, needed, around) for each in type_.inner)
    if type_.name in around:
        return False
    needed.setdefault(type_.name, set()).update(type_.fields)
    return all(_mark_all(each, needed, [*around, type_.name]) for each in type_.fields.values())


def written(schema: AvroType) -> Any:
    """The whole schema as JSON, all that it refers to included."""
    return _written(schema, None)


def _written(schema: AvroType, needed: Mapping[str, set[str]] | None) -> Any:
    defined: set[str] = set()

    def write(type_: AvroType, around: tuple[str, ...]) -> Any:
        if needed is not None and type_.name and type_.name in around:
            raise AvroSchemaError(f"expected columns that need no record inside of itself, found {type_.name}")
        # Names without namespaces: how far a namespace reaches is a matter of its own.
        name = f"t{type_.name.encode().hex()}"
        if name in defined:
            return name
        if type_.name:
            defined.add(name)
        match type_.kind:
            case "record":
                names = type_.fields if needed is None else [n for n in type_.fields if n in needed.get(type_.name, ())]
                inside = (*around, type_.name)
                fields = [{"name": name, "type": write(type_.fields[name], inside)} for name in names]
                return {"type": "record", "name": name, "fields": fields}
            case "union":
                return [write(each, around) for each in type_.inner]
            case "array":
                return {"type": "array", "items": write(type_.inner[0], around)}
            case "map":
                return {"type": "map", "values": write(type_.inner[0], around)}
            case "enum":
                return {"type": "enum", "name": name, "symbols": list(type_.symbols)}
            case "fixed":
                return {"type": "fixed", "name": name, "size": type_.size, **_logical(type_)}
        logical = _logical(type_)
        return {"type": type_.kind, **logical} if logical else type_.kind

    return write(schema, ())


def _logical(type_: AvroType) -> dict[str, Any]:
    if type_.logical == "decimal":
        return {"logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    return {"logicalType": type_.logical} if type_.logical else {}
