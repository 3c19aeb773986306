"""Random JSON documents, with the values that are easily taken for something else."""

from __future__ import annotations

from hypothesis import strategies as st

_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["2026-01-31", "2026-02-30", "0000-01-01", "9.90", "-1.25", "00.10", "1e5", "true", "null"]),
    st.sampled_from(["2026-01-31T10:00:00Z", "2026-01-31 10:00:00.123+02:00", "2026-01-31T10:00:00.123456789Z"]),
    st.sampled_from(["12345678901234567890.12", "1234567890123456789012345678901234567.12"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.dates().map(str),
)
_NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(1_600_000_000, 1_800_000_000),
    st.integers(1_600_000_000_000, 1_800_000_000_000),
    st.just(10**45),
)
_SCALARS = st.one_of(st.none(), st.booleans(), _TEXTS, _NUMBERS)
_NAMES = st.one_of(
    st.sampled_from(["id", "name", "ts", "TS", "createdAt", "time", "a", "A", "a_b", "a.b", "$", 'a."b']),
    st.text(max_size=4),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=8,
)

DOCUMENTS = st.dictionaries(_NAMES, _VALUES, max_size=6)
