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
| decimal            | a string of digits, as many behind the point as the type has            |
| date               | "2026-01-31"                                                            |
| timestamp          | "2026-01-31T09:30:00.000000Z": UTC, always six fraction digits          |
| json               | a string: the document's text without blanks, names in order            |
| binary             | a string in base64                                                      |
| any, where missing | null                                                                    |

The last column of every table is `ts`, a timestamp. Row keys are made from the positions (partition-offset) of the
source records, so that a record that is read again writes the same row again: `0-17`, of a pair `0-17:1-4`, of a
rejected record `topic-0-17`.

A row that belongs to a key of the data, and changes with it, has a key that begins with `=`: the JSON texts of the
key's columns, as `="u7"` or `="u7",3`, in a joined table perhaps with the position of the other record, as
`="u7":0-17`. Its `ts` can change like any other column. The rows of one table have keys of one kind.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson

from liveboard.contract.errors import LiveboardError
from liveboard.contract.schema import Column

Value = str | int | float | bool | None

BY_KEY = "="
"""The first character of row keys that belong to a key of the data."""
TS_AT = slice(-29, -2)
"""Where the text of `ts` is in the bytes of a row: it is the last column, and of one length, so it compares as time."""
_OPENING, _CLOSING = b"[]"


class ChangelogError(LiveboardError):
    """A changelog value that is not a row of the table."""


def encode_row(values: Sequence[Value]) -> bytes:
    """The row's value; rows that Spark writes are made the same way in `pipeline/rows.py`."""
    return orjson.dumps(values)


def is_row(value: bytes) -> bool:
    """Whether the bytes look like a row, at a glance: cheap enough to be asked for each of millions."""
    return bool(value) and value[0] == _OPENING and value[-1] == _CLOSING


def decode_row(value: bytes, columns: Sequence[Column]) -> tuple[Value, ...]:
    """The row's values: bigint always as int, double as float, others as the strings they are."""
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
    if item is None:
        return None
    try:
        value: Value = column.kind.read(item)
        return value
    except (TypeError, ValueError):
        raise ChangelogError(f'expected a {column.type} in "{column.name}", found {item!r}') from None
