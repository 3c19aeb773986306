"""A live table against a plain dictionary: content, order, windows, removals, the cap."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from liveboard.contract.schema import TS, Column
from liveboard.serving.table import Table, in_order

COLUMNS = (Column("n", "bigint"), TS)


def row(number: int, second: int = 0) -> bytes:
    return b'[%d,"2026-01-31T09:30:%02d.000000Z"]' % (number, second)


CHANGES = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 3))).map(
        lambda change: (b"0-%d" % change[0], None if change[1] is None else row(change[1], change[0] % 4))
    ),
    max_size=20,
)


@given(st.lists(CHANGES, max_size=8), st.integers(0, 30), st.integers(1, 10))
def test_windows_and_changes_are_those_of_a_dictionary(
    batches: list[list[tuple[bytes, bytes]]], at: int, size: int
) -> None:
    table, model = Table("t", "g1", COLUMNS), dict[bytes, bytes]()
    for batch in batches:
        before = [table.row(position) for position in range(table.end)]
        for key, value in batch:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        applied = table.apply(batch)
        rows = sorted(model.items(), key=lambda item: (item[1][-24:], len(item[0]), item[0]))
        assert len(table) == len(rows)
        window = rows[at : at + size]
        assert table.window(at, size) == ([key for key, _ in window], [value for _, value in window])
        before += [None] * (table.end - len(before))
        for position, row_before in enumerate(before):
            assert applied.before.get(position, table.row(position)) == row_before
        for index, (key, value) in enumerate(rows):
            position = table.position_at(index)
            assert table.row(position) == (key, value)
            assert table.index_of(position) == index


@given(st.lists(CHANGES, max_size=8))
def test_b38_rows_by_key_are_in_the_order_of_their_keys_whatever_their_time(
    batches: list[list[tuple[bytes, bytes]]],
) -> None:
    table, model = Table("t", "g1", COLUMNS), dict[bytes, bytes]()
    with patch("liveboard.serving.table._FEW_HOLES", 3):
        for number, batch in enumerate(batches):
            before = {position: table.row(position) for position in range(table.end + 1_000)}
            changes = [(b"=" + key, value and row(number, len(value) % 60)) for key, value in batch]
            applied = table.apply(changes)
            for key, value in changes:
                if value is None:
                    model.pop(key, None)
                else:
                    model[key] = value
            ordered = sorted(model, key=lambda key: (len(key), key))
            assert table.window(0, 1_000) == (ordered, [model[key] for key in ordered])
            assert in_order(model)[0] == ordered
            assert [table.position_at(at) for at in range(len(ordered))] == sorted(
                position for position in range(table.end) if table.row(position)
            )
            for position, was in before.items():
                assert applied.before.get(position, table.row(position)) == was


def test_b38_a_new_key_that_belongs_far_in_front_is_appended() -> None:
    with patch("liveboard.serving.table.NEW_KEY_AMONG_ROWS", 2):
        table = Table("t", "g1", COLUMNS, {b"=%d" % n: row(n) for n in (1, 3, 5, 7)})
        table.apply([(b"=4", row(4)), (b"=2", row(2))])
        assert table.window(0, 10)[0] == [b"=1", b"=3", b"=4", b"=5", b"=7", b"=2"]


def test_b38_rows_that_come_and_go_leave_no_room_behind() -> None:
    table = Table("t", "g1", COLUMNS, {b"=%d" % n: row(n) for n in range(10)})
    for n in range(20_000):
        table.apply([(b"=%d" % (n + 10), row(n)), (b"=%d" % n, None)])
    assert len(table) == 10
    assert len(table.rows()[1]) < 2_000


def test_b38_a_cap_lets_the_first_keys_go_and_keeps_them_out() -> None:
    table = Table("t", "g1", COLUMNS, {b"=%d" % n: row(n, 9 - n) for n in range(10)}, max_rows=5)
    assert table.window(0, 10)[0] == [b"=%d" % n for n in range(5, 10)]
    table.apply([(b"=2", row(2, 59)), (b"=7", row(77, 59))])
    assert table.window(0, 10)[0] == [b"=%d" % n for n in range(5, 10)]
    assert table.window(2, 1)[1] == [row(77, 59)]


def test_b7_a_changed_row_stays_where_it_is_and_a_row_written_again_is_no_change() -> None:
    table = Table("t", "g1", COLUMNS, {b"0-0": row(1), b"0-1": row(2)})
    assert table.apply([(b"0-0", row(3)), (b"0-1", row(2))]).before == {0: (b"0-0", row(1))}
    assert table.window(0, 10) == ([b"0-0", b"0-1"], [row(3), row(2)])


def test_b7_what_is_read_at_the_start_is_put_in_order_of_arrival() -> None:
    rows = {b"0-10": row(1, 5), b"0-9": row(2, 5), b"1-3": row(3, 1), b"0-11": row(4, 4)}
    assert in_order(rows)[0] == [b"1-3", b"0-11", b"0-9", b"0-10"]
    assert in_order({})[:2] == ([], [])


KEYS = st.binary(max_size=3).filter(lambda key: not key.startswith(b"="))


@given(st.dictionaries(KEYS, st.tuples(st.integers(0, 9), st.integers(0, 3))), st.integers(1, 5))
def test_b7_the_order_of_any_rows_is_that_of_time_and_key(rows: dict[bytes, tuple[int, int]], at_once: int) -> None:
    gathered = {key: row(*values) for key, values in rows.items()}
    ordered = sorted(rows, key=lambda key: (rows[key][1], len(key), key))
    for some in (gathered, {key: gathered[key] for key in ordered}):
        with patch("liveboard.serving.table._SORT_SLICE", at_once):
            table = Table.in_order("t", "g1", COLUMNS, dict(some))
        assert table.window(0, 1_000) == (ordered, [gathered[key] for key in ordered])
        assert len(table) == table.updates == len(rows)
        table.apply([(key, row(99)) for key in ordered])
        assert table.window(0, 1_000) == (ordered, [row(99)] * len(rows))
    capped = Table.in_order("t", "g1", COLUMNS, dict(gathered), max_rows=2)
    assert capped.window(0, 1_000)[0] == ordered[-2:]
    assert capped.evicted == max(0, len(rows) - 2)


def test_b7_rows_that_overtake_each_other_are_put_in_order_and_a_very_late_one_is_appended() -> None:
    with patch("liveboard.serving.table.LATE_BY_ROWS", 2):
        table = Table("t", "g1", COLUMNS, {b"0-0": row(0, 0)})
        table.apply([(b"1-0", row(1, 2)), (b"0-2", row(2, 1)), (b"0-3", row(3, 3)), (b"0-4", row(4, 3))])
        assert table.window(0, 10)[0] == [b"0-0", b"0-2", b"1-0", b"0-3", b"0-4"]
        table.apply([(b"1-1", row(5, 3)), (b"1-2", row(6, 2))])
        assert table.window(0, 10)[0] == [b"0-0", b"0-2", b"1-0", b"0-3", b"0-4", b"1-1", b"1-2"]
        table.apply([(b"0-3", row(7, 3)), (b"1-2", None), (b"0-1", row(8, 3))])
        assert table.window(0, 10)[0] == [b"0-0", b"0-2", b"1-0", b"0-3", b"0-4", b"1-1", b"0-1"]


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 9), st.integers(0, 6))
def test_b7_the_order_does_not_depend_on_which_rows_come_at_once(seconds: list[int], at_once: int, most: int) -> None:
    changes = [(b"0-%d" % n, row(n, second)) for n, second in enumerate(seconds)]
    one_by_one, batched = Table("t", "g1", COLUMNS), Table("t", "g1", COLUMNS)
    with patch("liveboard.serving.table.LATE_BY_ROWS", most):
        for change in changes:
            one_by_one.apply([change])
        for first in range(0, len(changes), at_once):
            batched.apply(changes[first : first + at_once])
    assert batched.window(0, 100) == one_by_one.window(0, 100)


@given(st.integers(1, 300), st.lists(st.integers(1, 100), max_size=10))
def test_the_cap_lets_the_oldest_go_and_counts_them(cap: int, batches: list[int]) -> None:
    table = Table("t", "g1", COLUMNS, max_rows=cap)
    written = 0
    for count in batches:
        keys = [b"0-%d" % n for n in range(written, written + count)]
        applied = table.apply((key, row(1)) for key in keys)
        written += count
        kept = written - table.evicted
        assert len(table) == kept
        assert kept <= cap
        assert kept >= min(written, cap - cap // 100)
        assert table.window(0, cap)[0] == [b"0-%d" % n for n in range(table.evicted, written)]
        assert applied.removed or not table.evicted or table.evicted < written


def test_a_change_to_a_row_that_went_out_does_not_bring_it_back() -> None:
    table = Table("t", "g1", COLUMNS, {b"0-%d" % n: row(n, n) for n in range(10)}, max_rows=5)
    assert table.evicted == 5
    table.apply([(b"0-2", row(99, 2)), (b"0-7", row(77, 7)), (b"0-10", row(10, 10))])
    assert table.window(0, 10)[0] == [b"0-6", b"0-7", b"0-8", b"0-9", b"0-10"]
    assert table.window(1, 1)[1] == [row(77, 7)]
