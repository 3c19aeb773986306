"""What every table must contain, worked out in plain Python from the content of the topics alone.

Written from behaviour B1 to B11 and B37 to B40, not from the pipeline: slow, obvious, and without Spark.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from liveboard.contract.board import Board, Source
from liveboard.contract.schema import Column

Row = tuple[Any, ...]
Table = dict[str, Row]
_NUMBER = r"-?\d+(\.\d+)?([eE][+-]?\d+)?"


@dataclass(frozen=True)
class Record:
    """A record as it lies in Kafka."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def position(self) -> str:
        return f"{self.partition}-{self.offset}"

    @property
    def ts(self) -> str:
        seconds, milliseconds = divmod(self.timestamp_ms, 1000)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{milliseconds:03}000Z"

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.timestamp_ms, self.partition, self.offset)


Reader = Callable[[Source, Record], dict[str, Any]]
"""Makes a row of a record, or raises Refused."""


class Refused(Exception):
    """The record does not fit its source: `field: expected what`."""


@dataclass(frozen=True)
class Found:
    """A record that could be read: its row, or None where it removes the row of its key."""

    record: Record
    row: dict[str, Any] | None
    key: tuple[Any, ...] | None = None
    """Of a table by key."""

    @property
    def name(self) -> str:
        """What the row is called by."""
        return self.record.position if self.key is None else "=" + ",".join(map(_json, self.key))


def tables(board: Board, records: Iterable[Record], read_avro: Reader | None = None) -> dict[str, Table]:
    """All tables of the board: table name to row key to row; `read_avro` reads the records of sources in Avro."""
    rows: dict[str, list[Found]] = {name: [] for name in board.sources}
    result: dict[str, Table] = {source.table: {} for source in board.sources.values()}
    rejects: Table = {}
    by_topic = {source.topic: source for source in board.sources.values()}
    for record in records:
        source = by_topic[record.topic]
        if record.value is None and not _is_by_key(source):
            continue
        try:
            reader = read_avro if read_avro and source.format == "avro" else read
            found = _keyed(source, record, reader) if _is_by_key(source) else Found(record, reader(source, record))
        except Refused as refused:
            shown = None if record.value is None else record.value.decode("utf-8", "replace")[:65_536]
            if record.value is not None and source.format == "avro":
                shown = base64.b64encode(record.value[:49_152]).decode()
            key = f"{record.topic}-{record.position}"
            rejects[key] = (record.topic, record.partition, record.offset, str(refused), shown, record.ts)
            continue
        rows[source.name].append(found)
    for name, source in board.sources.items():
        shown_rows = _current(rows[name]) if _is_by_key(source) else rows[name]
        result[source.table] = {found.name: (*found.row.values(), found.record.ts) for found in shown_rows if found.row}
    for name, join in board.joins.items():
        result[name] = _join(board, join, rows[join.left], rows[join.right])
    return {**result, **_aggregates(board, rows), "rejects_ui": rejects}


class Number(float):
    """A JSON number with a point or an exponent, and how it was written."""

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


class WrongWay(ValueError):
    """Something on the way to a value is no object or no array: `place: expected what`."""


def read(source: Source, record: Record) -> dict[str, Any]:
    """The typed row, or Refused."""
    return _columns(source, record, _document(source, record.value or b""))


def _columns(source: Source, record: Record, document: dict[str, Any]) -> dict[str, Any]:
    row = {}
    # What is in the value is asked for first.
    for column in sorted(source.columns, key=lambda column: bool(column.origin)):
        try:
            row[column.name] = of_kafka(record, column) if column.origin else _at_path(document, column)
        except ValueError as error:
            if source.on_error == "reject" or column.name in source.key:
                expected = str(error) if isinstance(error, WrongWay) else f"{column.place}: expected {column.type}"
                raise Refused(expected) from None
            row[column.name] = None
    return {column.name: row[column.name] for column in source.columns}


def _document(source: Source, value: bytes) -> dict[str, Any]:
    if len(value) > source.max_value_bytes:
        raise Refused(f"value: expected at most {source.max_value_bytes} bytes")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("value: expected UTF-8 text") from None
    try:
        document = json.loads(text, parse_float=Number)
    except (ValueError, RecursionError):
        raise Refused("value: expected a JSON object") from None
    if not isinstance(document, dict):
        raise Refused("value: expected a JSON object")
    return document


def _at_path(document: Any, column: Column) -> Any:
    """What is at the end of the column's path; null where there is nothing, or null on the way."""
    found, way = document, ""
    for step in column.steps:
        if isinstance(step, int):
            if not isinstance(found, list):
                raise WrongWay(f"{way}: expected an array")
            found, way = found[step] if step < len(found) else None, f"{way}[{step}]"
        else:
            if not isinstance(found, dict):
                raise WrongWay(f"{way}: expected an object")
            found, way = found.get(step), f"{way}.{step}" if way else step
        if found is None:
            return None
    return typed(found, column)


def of_kafka(record: Record, column: Column) -> Any:
    """What is not in the value."""
    match column.origin:
        case "partition":
            return record.partition
        case "offset":
            return record.offset
        case "timestamp":
            return record.ts
        case "key":
            found = record.key
        case header:
            found = dict(record.headers).get(header.removeprefix("headers."))
    if found is None:
        return None
    if column.type == "binary":
        return base64.b64encode(found).decode()
    try:
        text = found.decode()
    except UnicodeDecodeError:
        place = f"{column.place}: expected UTF-8 text"
        raise WrongWay(place) from None
    if column.type.startswith(("string", "date", "timestamp", "decimal")):
        return typed(text, column)
    value = json.loads(text, parse_float=Number)
    return None if value is None else typed(value, column)


def typed(found: Any, column: Column) -> Any:
    """The column's value of what came; a ValueError where it is wrong."""
    integer = isinstance(found, int) and not isinstance(found, bool)
    numeric = str(found) if integer else found.text if isinstance(found, Number) else found
    match column.type.partition("(")[0]:
        case "string":
            if isinstance(found, str):
                return found.encode("utf-8", "replace").decode()
        case "boolean":
            if isinstance(found, bool):
                return found
        case "int" | "bigint":
            bits = 31 if column.type == "int" else 63
            if integer and -(2**bits) <= found < 2**bits:
                return found
        case "double":
            if integer or isinstance(found, float):
                try:
                    number = float(found)
                except OverflowError:
                    number = math.inf
                if math.isfinite(number):
                    return number
        case "decimal":
            precision, scale = map(int, column.type[8:-1].split(","))
            if isinstance(numeric, str) and re.fullmatch(_NUMBER, numeric, re.ASCII):
                exactly = Decimal(numeric)
                with localcontext(prec=1000):
                    exact = exactly.quantize(Decimal(1).scaleb(-scale))
                if exact == exactly and abs(exactly) < Decimal(10) ** (precision - scale):
                    return f"{exact:f}" if exact else f"{abs(exact):f}"
        case "json":
            return _compact(found)
        case "binary":
            if isinstance(found, str):
                return base64.b64encode(base64.b64decode(found, validate=True)).decode()
        case "date":
            if isinstance(found, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", found, re.ASCII):
                return date.fromisoformat(found).isoformat()
        case "timestamp":
            pattern = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?"
            if isinstance(found, str) and re.fullmatch(pattern, found, re.ASCII):
                fraction = re.search(r"\.\d+", found)
                padded = found.replace(fraction[0], fraction[0].ljust(7, "0")) if fraction else found
                moment = datetime.fromisoformat(padded)
                moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
                return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            if column.unit and isinstance(numeric, str) and re.fullmatch(_NUMBER, numeric, re.ASCII):
                units = {"s": 1_000_000, "ms": 1_000, "us": 1}
                microseconds = math.floor(Decimal(numeric) * units[column.unit])
                try:
                    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
                except OverflowError:
                    raise ValueError(found) from None
                return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    raise ValueError(found)


def _compact(found: Any) -> str:
    """The document's text: without blanks, names in the order of the alphabet, numbers without needless zeros."""
    if isinstance(found, dict):
        return "{" + ",".join(f"{_compact(name)}:{_compact(found[name])}" for name in sorted(found)) + "}"
    if isinstance(found, list):
        return "[" + ",".join(map(_compact, found)) + "]"
    if isinstance(found, float) and not math.isfinite(found):
        return '"NaN"' if math.isnan(found) else '"Infinity"' if found > 0 else '"-Infinity"'
    if isinstance(found, Number):
        with_exponent = "e" in found.text.lower()
        return repr(float(found)) if with_exponent else f"{Decimal(found.text).normalize():f}"
    if isinstance(found, str):
        found = found.encode("utf-8", "replace").decode()
    return re.sub(
        r"\\u[0-9a-f]{4}", lambda escape: f"\\u{escape[0][2:].upper()}", json.dumps(found, ensure_ascii=False)
    )


def _is_by_key(source: Source) -> bool:
    return source.mode == "upsert" or source.format == "debezium"


def _keyed(source: Source, record: Record, reader: Reader) -> Found:
    """A record of a table by key."""
    if record.value is None:
        return Found(record, None, _removed_key(source, record))
    if source.format == "debezium":
        change = _document(source, record.value)
        if isinstance(change.get("payload"), dict):
            change = change["payload"]
        if change.get("op") == "d":
            return Found(record, None, _key_in(source, change.get("before")) or _removed_key(source, record))
        if change.get("op") not in ("c", "r", "u"):
            raise Refused("op: expected c, r, u or d")
        if not isinstance(change.get("after"), dict):
            raise Refused(f"after: expected an object, since op is {change['op']}")
        row = _columns(source, record, change["after"])
    else:
        row = reader(source, record)
    for column in _key_columns(source):
        if row[column.name] is None:
            raise Refused(f"{column.place}: expected a value, since it is the key")
    return Found(record, row, tuple(row[name] for name in source.key))


def _key_columns(source: Source) -> list[Column]:
    columns = {column.name: column for column in source.columns}
    return [columns[name] for name in source.key]


def _key_in(source: Source, document: Any) -> tuple[Any, ...] | None:
    """The key in a document that has its columns, by path or by name; None where it is not there."""
    key: list[Any] = []
    for column in _key_columns(source):
        found = None
        for place in (column, Column(column.name, column.type)):
            try:
                found = _at_path(document, place) if found is None and isinstance(document, dict) else found
            except ValueError:
                continue
        key.append(found)
    return None if None in key else tuple(key)


def _removed_key(source: Source, record: Record) -> tuple[Any, ...]:
    """What a tombstone removes."""
    columns = _key_columns(source)
    fields = ", ".join(f'"{name}": …' for name in source.key)
    expected = f"{{{fields}}}"
    if len(columns) == 1:
        type_ = columns[0].type
        expected = f"{source.key[0]} as {'text' if type_ == 'string' else type_} or as {expected}"
    refused = Refused(f"key: expected {expected}")
    try:
        if all(column.origin for column in columns):
            key = tuple(of_kafka(record, column) for column in columns)
            if None in key:
                raise refused
            return key
        if record.key is None:
            raise refused
        text = record.key.decode()
        try:
            document = json.loads(text, parse_float=Number)
        except ValueError:
            document = None
        if isinstance(document, dict):
            if source.format == "debezium" and isinstance(document.get("payload"), dict):
                document = document["payload"]
            found = _key_in(source, document)
            if found is None:
                raise refused
            return found
        if len(columns) > 1:
            raise refused
        is_text = columns[0].type in ("string", "date", "timestamp")
        return (typed(text if is_text and not isinstance(document, str) else document, columns[0]),)
    except ValueError:
        raise refused from None


def _current(found: list[Found]) -> list[Found]:
    """The newest record of each key, by position."""
    newest: dict[Any, Found] = {}
    for one in sorted(found, key=lambda one: (one.record.partition, one.record.offset)):
        newest[one.key] = one
    return list(newest.values())


def _json(value: Any) -> str:
    is_long = isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53
    return json.dumps(str(value) if is_long else value, ensure_ascii=False)


def _join(board: Board, join: Any, lefts: list[Found], rights: list[Found]) -> Table:
    left_by_key, right_by_key = (_is_by_key(board.sources[name]) for name in (join.left, join.right))
    if left_by_key:
        lefts = [one for one in _current(lefts) if one.row]
    if right_by_key and join.how != "asof":
        rights = [one for one in _current(rights) if one.row]
    of_key: dict[Any, list[Found]] = {}
    for right in rights:
        of_key.setdefault(_value(right, join.on), []).append(right)
    result: Table = {}
    for left in lefts:
        assert left.row is not None
        key = left.row[join.on]
        matches = of_key.get(key, []) if key is not None else []
        if join.how == "inner":
            for right in matches:
                name = left.name if right_by_key else f"{left.name}:{right.name}"
                result[name] = _joined(board, join, left, right)
            continue
        if join.how == "asof":
            matches = [one for one in matches if one.record.timestamp_ms <= left.record.timestamp_ms]
        result[left.name] = _joined(board, join, left, max(matches, key=lambda one: one.record.order, default=None))
    return result


def _value(found: Found, on: str) -> Any:
    """Of the join's column, which is the key of what removes a row."""
    return found.row[on] if found.row else found.key and found.key[0]


def _joined(board: Board, join: Any, left: Found, right: Found | None) -> Row:
    assert left.row is not None
    own = [value for name, value in left.row.items() if name != join.on]
    names = [column.name for column in board.sources[join.right].columns if column.name != join.on]
    others = [right.row[name] if right and right.row else None for name in names]
    return (left.row[join.on], *own, *others, left.record.ts)


class Near(float):
    """A double that was made of many, in whatever order: equal to all that rounding can make of it."""

    def __new__(cls, value: float, tolerance: float) -> Near:
        near = super().__new__(cls, value)
        near.tolerance = tolerance
        return near

    tolerance: float

    def __eq__(self, other: object) -> bool:
        if not math.isfinite(self.tolerance):
            return True  # beyond what doubles can hold, on the way at least
        return isinstance(other, int | float) and abs(float(self) - other) <= self.tolerance

    __hash__ = float.__hash__


# What the conditions and arguments of the tests' boards mean; of a null, nothing is true.
_MEANING: dict[str, Callable[[dict[str, Any]], Any]] = {
    "": lambda row: True,
    "age > 0 AND NOT name IN ('a', 'null')": lambda row: (
        None not in (row["age"], row["name"]) and row["age"] > 0 and row["name"] not in ("a", "null")
    ),
    "balance IS NOT NULL": lambda row: row["balance"] is not None,
    "stock > 0 OR `unit price` BETWEEN -100.5 AND 1000": lambda row: (
        (row["stock"] is not None and row["stock"] > 0)
        or (row["unit price"] is not None and -100.5 <= row["unit price"] <= 1000)
    ),
    "balance * 2": lambda row: _within_doubles(row["balance"] * 2),
    "stock * 2": lambda row: None if row["stock"] is None else row["stock"] * 2,
    "total * 2": lambda row: None if row["total"] is None else f"{Decimal(row['total']) * 2:f}",
}


def _within_doubles(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _aggregates(board: Board, rows: dict[str, list[Found]]) -> dict[str, Table]:
    """One row for each group; windows that have ended by the newest time in such aggregates are gone."""
    for name in {each.source for each in board.aggregates.values()}:
        if _is_by_key(board.sources[name]):
            rows = {**rows, name: [one for one in _current(rows[name]) if one.row]}
    groups = {name: _groups(each, rows[each.source]) for name, each in board.aggregates.items()}
    times = [
        one.record.timestamp_ms for name in groups for g in groups[name].values() for one in g if _keep(board, name)
    ]
    now = max(times, default=0)
    result: dict[str, Table] = {}
    for name, each in board.aggregates.items():
        types = {column.name: column.type for column in board.sources[each.source].columns}
        result[name] = {}
        for (values, start), found in groups[name].items():
            window = [] if start is None else [_moment(start), _moment(start + each.window)]
            if start is not None and each.keep and start + each.window + each.keep <= now:
                continue
            measures = [_measured(text, types, found) for text in each.measures.values()]
            newest = max(one.record.ts for one in found)
            result[name]["=" + ",".join(map(_json, [*values, *window]))] = (*values, *window, *measures, newest)
    return result


def _keep(board: Board, name: str) -> int:
    return board.aggregates[name].keep


def _groups(aggregate: Any, found: list[Found]) -> dict[tuple[Any, int | None], list[Found]]:
    groups: dict[tuple[Any, int | None], list[Found]] = {}
    for one in found:
        assert one.row is not None
        if not _MEANING[aggregate.where](one.row):
            continue
        values = tuple(one.row[name] for name in aggregate.by)
        at, slide = one.record.timestamp_ms, aggregate.slide or aggregate.window
        last = at - at % slide if slide else 0
        starts = range(last, at - aggregate.window, -slide) if slide else [None]
        for start in starts:
            groups.setdefault((values, start), []).append(one)
    return groups


def _moment(milliseconds: int) -> str:
    return Record("", 0, 0, milliseconds, None).ts


def _measured(text: str, types: dict[str, str], found: list[Found]) -> Any:
    function, argument = text.lower()[: text.index("(")], text[text.index("(") + 1 : -1]
    if argument == "*":
        return len(found)
    values = [value for one in found if (value := _argument(argument, one)) is not None]
    name = argument.partition(" * ")[0].strip("`")
    type_ = types.get(name, "timestamp")
    is_decimal = type_.startswith("decimal")
    numbers = [Decimal(value) for value in values] if is_decimal else values
    match function:
        case "count":
            return len(values)
        case "min" | "max":
            pick = min if function == "min" else max
            return pick(values, key=Decimal if is_decimal else None) if values else None
        case "avg" if values:
            total = _fsum(numbers) / len(values) if type_ == "double" else sum(numbers) / len(values)
            return Near(float(total), 1e-9 * _size(numbers))
        case "sum" if values:
            if type_ == "double":
                return Near(_fsum(numbers), 1e-9 * _size(numbers))
            total = sum(numbers)
            return total if type_ == "int" else f"{total:f}" if is_decimal else str(total)
    return None


def _argument(text: str, one: Found) -> Any:
    assert one.row is not None
    if text == "ts":
        return one.record.ts
    return _MEANING[text](one.row) if text in _MEANING else one.row[text.strip("`")]


def _size(numbers: list[Any]) -> float:
    return sum(abs(float(number)) for number in numbers)


def _fsum(numbers: list[Any]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf
