"""Which windows have ended, told from what is in the changelogs."""

from __future__ import annotations

from liveboard.kafka.reader import Change
from liveboard.orchestrator.ending import Windows

MINUTE = 60_000


def at(minute: int, second: int = 0) -> str:
    return f"2026-01-31T09:{minute:02}:{second:02}.000000Z"


def row(group: str, end: int, newest: str, topic: str = "a") -> Change:
    key = f'="{group}","{at(end - 1)}","{at(end)}"'
    return Change(topic, key.encode(), f'["{group}","{at(end - 1)}","{at(end)}",1,"{newest}"]'.encode(), 0)


def removed(change: Change) -> Change:
    return change._replace(value=None)


def test_b40_a_window_ends_when_the_newest_time_of_any_row_is_so_much_later() -> None:
    windows = Windows({"a": 2 * MINUTE, "b": 5 * MINUTE})
    old, other = row("x", 10, at(9, 30)), row("x", 10, at(9, 30), "b")
    windows.hear([old, other, row("y", 12, at(11, 59))])
    assert windows.ended() == []
    windows.hear([row("y", 13, at(12))])
    assert windows.ended() == [("a", old.key)]
    windows.hear([row("y", 16, at(15), "b")])
    assert set(windows.ended()) == {("b", other.key), ("a", row("y", 12, "").key), ("a", row("y", 13, "").key)}
    assert windows.ended() == []


def test_b40_a_row_that_is_written_again_is_removed_again() -> None:
    windows = Windows({"a": 0})
    old = row("x", 10, at(9, 30))
    windows.hear([old, row("x", 20, at(19))])
    assert windows.ended() == [("a", old.key)]
    windows.hear([removed(old)])
    assert windows.ended() == []
    windows.hear([old])
    assert windows.ended() == [("a", old.key)]


def test_b40_what_was_removed_before_is_left_alone() -> None:
    windows = Windows({"a": 0})
    old = row("x", 10, at(9, 30))
    windows.hear([old, removed(old), row("x", 20, at(19))])
    assert windows.ended() == []


def test_b40_a_time_that_nobody_can_count_with_ends_nothing() -> None:
    windows = Windows({"a": 0})
    odd = Change(
        "a",
        b'="x","+50000-01-01T00:00:00.00Z","+50000-01-01T00:01:00.00Z"',
        b'["x","","",1,"' + at(1).encode() + b'"]',
        0,
    )
    windows.hear([odd])
    assert windows.ended() == []
