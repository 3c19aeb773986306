"""The records of a changelog topic.

The Kafka key is the row's key in UTF-8. The value is a JSON array of the row's values in the order of the
table's columns, so that a server can put the bytes into a window without decoding them; a null value removes
the row. The last record of a key is the row.

| column type        | JSON                                                                    |
|--------------------|-------------------------------------------------------------------------|
| string, boolean    | string, true or false                                                   |
| int                | number                                                                  |
| bigint             | number; beyond ±2^53, where JavaScript loses digits, a string of digits |
| double             | number                                                                  |
| date               | "2026-01-31"                                                            |
| timestamp          | "2026-01-31T09:30:00.000000Z": UTC, always six fraction digits          |
| any, where missing | null                                                                    |

The last column of every table is `ts`, a timestamp. Row keys are made from the positions (partition-offset) of the
source records, so that a record that is read again writes the same row again: `0-17`, of a pair `0-17:1-4`, of a
rejected record `topic-0-17`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson

from liveboard.contract.schema import Column
from liveboard.errors import LiveboardError

Value = str | int | float | bool | None


class ChangelogError(LiveboardError):
    """A changelog value that is not a row of the table."""


def decode_row(value: bytes, columns: Sequence[Column]) -> tuple[Value, ...]:
    """The row's values: bigint always as int, double as float, date and timestamp as the strings they are."""
    try:
        row = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise ChangelogError(f"expected a changelog row as a JSON array, found invalid JSON: {error}") from None
    if not isinstance(row, list) or len(row) != len(columns):
        found = f"{len(row)} values" if isinstance(row, list) else f"a JSON {type(row).__name__}"
        raise ChangelogError(f"expected a changelog row of {len(columns)} values, found {found}")
    return tuple(_decode(item, column) for item, column in zip(row, columns, strict=True))


def timestamp_text(milliseconds: int) -> str:
    """A moment, given in milliseconds since 1970, as the timestamps of rows are written."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _decode(item: Value, column: Column) -> Value:
    if item is None or column.type not in ("bigint", "double"):
        return item
    try:
        return int(item) if column.type == "bigint" else float(item)
    except (TypeError, ValueError):
        raise ChangelogError(f'expected a {column.type} in "{column.name}", found {item!r}') from None
