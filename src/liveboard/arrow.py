"""What the types of columns are in Arrow: in files, for SQL, and in the client's frames."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from liveboard.contract.types import TYPES, ColumnType

# By the names that the contract has for them; a decimal has its digits as arguments.
ARROW_TYPES: dict[str, Callable[..., pa.DataType]] = {
    "string": pa.string,
    "bool": pa.bool_,
    "int32": pa.int32,
    "int64": pa.int64,
    "double": pa.float64,
    "decimal128": pa.decimal128,
    "date32[day]": pa.date32,
    "timestamp[us, tz=UTC]": lambda: pa.timestamp("us", tz="UTC"),
    "binary": pa.binary,
}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """What values of the type are in Arrow."""
    return ARROW_TYPES[TYPES[kind.name].arrow](*kind.parameters)
