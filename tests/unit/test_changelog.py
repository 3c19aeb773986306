import base64
from datetime import date

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from liveboard.contract.changelog import ChangelogError, Value, decode_row
from liveboard.contract.schema import Column
from liveboard.contract.types import TYPES

COLUMNS = tuple(Column(f"c_{type_}", type_) for type_ in TYPES)
SAFE = 2**53

ROWS = st.tuples(
    st.none() | st.text(),
    st.none() | st.booleans(),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([SAFE, SAFE + 1, -SAFE, -SAFE - 1]),
    st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float),
    st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.none() | st.dates().map(date.isoformat),
    st.none() | st.datetimes().map(lambda at: at.isoformat(timespec="microseconds") + "Z"),
    st.none() | st.just('{"a":[1]}'),
    st.none() | st.binary().map(lambda found: base64.b64encode(found).decode()),
)


def encoded(row: tuple[Value, ...]) -> bytes:
    """The value of the record, as the module's documentation has it."""
    bigint = row[3]
    wide = isinstance(bigint, int) and abs(bigint) > SAFE
    return orjson.dumps([*row[:3], str(bigint) if wide else bigint, *row[4:]])


@given(ROWS)
def test_any_row_comes_back(row: tuple[Value, ...]) -> None:
    decoded = decode_row(encoded(row), COLUMNS)
    assert decoded == row
    assert [type(value) for value in decoded] == [type(value) for value in row]


def test_a_double_without_a_fraction_stays_a_double() -> None:
    (value,) = decode_row(b"[3]", [Column("balance", "double")])
    assert isinstance(value, float)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "invalid JSON"),
        (b"[1", "invalid JSON"),
        (b"[1]", "expected a changelog row of 2 values, found 1 values"),
        (b"[1,2,3]", "found 3 values"),
        (b'{"a":1}', "found a JSON dict"),
        (b'["x",2]', "expected a bigint in \"a\", found 'x'"),
        (b"[1,[2]]", 'expected a double in "b"'),
    ],
)
def test_what_is_not_a_row_is_refused(value: bytes, message: str) -> None:
    with pytest.raises(ChangelogError) as caught:
        decode_row(value, [Column("a", "bigint"), Column("b", "double")])
    assert message in str(caught.value)
