"""Tables on disk: what is read back, what is ignored, and that a file written under changes leads to the same table."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liveboard.contract.schema import TS, Column
from liveboard.serving import snapshots
from liveboard.serving.changelogs import Changelog
from liveboard.serving.snapshots import Snapshots
from liveboard.serving.table import Change, Table

COLUMNS = (Column("n", "bigint"), TS)
TOPIC = "liveboard.g1.users_ui"


def row(number: int, second: int) -> bytes:
    return b'[%d,"2026-01-31T09:30:%02d.000000Z"]' % (number, second)


ROWS = {b"0-%d" % n: row(n, n % 60) for n in range(10)}
CHANGES = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 3))).map(
        lambda change: (b"0-%d" % change[0], None if change[1] is None else row(change[1], change[0] % 4))
    ),
    max_size=12,
)


def read(folder: Path, topic_id: str = "one", begin: int = 0, end: int = 100) -> tuple[int, dict[bytes, bytes]]:
    """From where a changelog reads on, and with which rows it begins."""
    changelog = Changelog(TOPIC, "g1", "users_ui", COLUMNS)
    Snapshots(folder).load(changelog, topic_id, begin, end)
    position, table = changelog.position, changelog.load(0)
    return position, dict(zip(*table.window(0, 1_000), strict=True))


def written(folder: Path, table: Table, offset: int = 50, meanwhile: list[list[Change]] | None = None) -> Path:
    """A file of the table, some of whose rows change while it is written."""
    changes = iter(meanwhile or [])
    write_block = snapshots._write_block

    async def write() -> None:
        def block(*arguments: object) -> None:
            write_block(*arguments)  # type: ignore[arg-type]
            table.apply(next(changes, []))

        kept = Snapshots(folder)
        with patch.object(snapshots, "_write_block", block):
            kept.write(table, TOPIC, "one", offset)
            assert kept._task is not None
            await kept._task

    asyncio.run(write())
    return folder / f"{TOPIC}.rows"


def test_a_table_comes_back_with_the_offset_to_read_on_from(tmp_path: Path) -> None:
    file = written(tmp_path / "server", Table("users_ui", "g1", COLUMNS, ROWS))
    assert read(file.parent) == (50, ROWS)
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_what_is_damaged_anywhere_is_ignored(tmp_path: Path) -> None:
    file = written(tmp_path, Table("users_ui", "g1", COLUMNS, ROWS))
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at])
        assert read(tmp_path) == (0, {})
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read(tmp_path) == (0, {})


@pytest.mark.parametrize(
    "now",
    [{"topic_id": "another"}, {"begin": 51}, {"end": 49}, {}],
    ids=["topic made anew", "older records gone", "topic lost its end", "too old"],
)
def test_what_does_not_fit_is_ignored(tmp_path: Path, now: dict[str, object]) -> None:
    written(tmp_path, Table("users_ui", "g1", COLUMNS, ROWS))
    with patch.object(snapshots, "OLDEST_S", snapshots.OLDEST_S if now else -1):
        assert read(tmp_path, **now) == (0, {})  # type: ignore[arg-type]


def test_another_format_is_ignored(tmp_path: Path) -> None:
    written(tmp_path, Table("users_ui", "g1", COLUMNS, ROWS))
    with patch.object(snapshots, "FORMAT", 2):
        assert read(tmp_path) == (0, {})


def test_a_table_that_lets_rows_go_is_not_written(tmp_path: Path) -> None:
    kept = Snapshots(tmp_path)
    kept.write(Table("users_ui", "g1", COLUMNS, ROWS, max_rows=5), TOPIC, "one", 50)
    assert kept._task is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_harms_nothing(tmp_path: Path) -> None:
    with patch.object(snapshots, "_write_block", side_effect=OSError("no space")):
        file = tmp_path / f"{TOPIC}.rows"
        kept = Snapshots(tmp_path)

        async def write() -> None:
            kept.write(Table("users_ui", "g1", COLUMNS, ROWS), TOPIC, "one", 50)
            assert kept._task is not None
            await kept._task

        asyncio.run(write())
    assert not file.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_followed_or_will_never_be_finished_is_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "--version"], stdout=subprocess.DEVNULL)
    gone.wait()
    ours, another, killed = (f"{TOPIC}.{process}" for process in (os.getpid(), os.getppid(), gone.pid))
    kept = {f"{TOPIC}.rows", another, "other.g1.users_ui.rows", "notes"}
    for name in (*kept, killed, ours, "liveboard.g2.users_ui.rows"):
        (tmp_path / name).touch()
    snapshots_there = Snapshots(tmp_path)

    def left() -> set[str]:
        snapshots_there.keep_only({TOPIC}, re.compile(r"liveboard\.g\d+\."))
        return {file.name for file in tmp_path.iterdir()}

    changelog = Changelog(TOPIC, "g1", "users_ui", COLUMNS)
    changelog.begin_with(ROWS, 50)
    changelog.load(0)
    with patch.multiple(snapshots, EVERY_S=0.0, WORTH_RECORDS=50):
        assert snapshots_there.due([changelog]) is changelog
    assert left() == {*kept, ours}
    snapshots_there.write(None, TOPIC, "one", 50)
    assert left() == kept


@settings(max_examples=40)
@given(st.lists(CHANGES, max_size=4), st.lists(CHANGES, max_size=10), st.integers(1, 4))
def test_whatever_changes_while_it_is_written_the_table_is_the_same_after_reading_on(
    tmp_path_factory: pytest.TempPathFactory, before: list[list[Change]], meanwhile: list[list[Change]], at_once: int
) -> None:
    folder = tmp_path_factory.mktemp("server")
    table = Table("users_ui", "g1", COLUMNS)
    for changes in before:
        table.apply(changes)
    with patch.object(snapshots, "_SLICE", at_once), patch("liveboard.serving.table._FEW_HOLES", 2):
        written(folder, table, meanwhile=meanwhile)
    _, rows = read(folder)
    again = Table.in_order("users_ui", "g1", COLUMNS, rows)
    # What came after the offset is read again, also what the file has already.
    for changes in meanwhile:
        again.apply(changes)
    expected = Table("users_ui", "g1", COLUMNS)
    for changes in (*before, *meanwhile):
        expected.apply(changes)
    assert again.window(0, 1_000) == expected.window(0, 1_000)


@given(st.lists(CHANGES, max_size=6), st.integers(0, 40))
def test_a_server_has_the_same_order_whenever_it_starts_and_whatever_was_compacted(
    batches: list[list[Change]], start: int
) -> None:
    """A compacted changelog has the last record of each key, and a server that starts gathers what is there then."""
    log = [change for batch in batches for change in batch]
    running, gathered = Table("users_ui", "g1", COLUMNS), dict[bytes, bytes]()
    running.apply(log)
    newest = {key: number for number, (key, _) in enumerate(log[:start])}
    for number, (key, value) in enumerate(log[:start]):
        if value is not None and newest[key] == number:
            gathered[key] = value
    later = Table.in_order("users_ui", "g1", COLUMNS, gathered)
    for change in log[start:]:
        later.apply([change])
    assert later.window(0, 1_000) == running.window(0, 1_000)
