"""What people keep on the server: whose it is, who sees it, and how much of it there may be."""

from __future__ import annotations

import pytest

from liveboard.config import LimitSettings
from liveboard.contract.frames import FrameError, Role
from liveboard.serving.auth import Grant
from liveboard.serving.gate import Forbidden
from liveboard.serving.saved import Kept, Place, Saved, SavedKind, document_of, place_of

ADMIN = Grant("ada", Role.ADMIN)
VIEWER = Grant("vic", Role.VIEWER)
DESK = Grant("desk", Role.VIEWER, frozenset({"users_ui"}))
VIEW = b'{"state":{"sort":[]}}'
LIMITS = LimitSettings(saved=2)


def view(owner: str | None, name: str, table: str = "users_ui") -> Place:
    """The place of a named view."""
    return Place(owner, SavedKind.VIEW, table, name)


def board(owner: str | None, name: str) -> Place:
    """The place of a board."""
    return Place(owner, SavedKind.BOARD, "", name)


def names(kept: list[Kept]) -> list[str]:
    """What they are called."""
    return sorted(each.name for each in kept)


def put(saved: Saved, grant: Grant, place: Place, body: bytes = VIEW) -> None:
    """Keeps a document, as the server does."""
    document = document_of(body)
    saved.check(grant, place, document, LIMITS)
    saved.wrote(place, document, 0)


def test_b43_everybody_sees_their_own_and_what_is_shared() -> None:
    saved = Saved()
    put(saved, VIEWER, view("vic", "mine"))
    put(saved, ADMIN, view(None, "ours"))
    put(saved, ADMIN, view("ada", "hers"))
    assert names(saved.shown_to(VIEWER)) == ["mine", "ours"]
    assert names(saved.shown_to(ADMIN)) == ["hers", "ours"]
    assert [kept.shared for kept in saved.shown_to(DESK)] == [True]


def test_a_key_sees_nothing_about_tables_that_it_does_not_show() -> None:
    saved = Saved()
    put(saved, ADMIN, view(None, "joined", "final_ui"))
    put(saved, ADMIN, board(None, "all"), b'{"tables":["users_ui","final_ui"],"state":[]}')
    assert names(saved.shown_to(DESK)) == []
    assert names(saved.shown_to(VIEWER)) == ["all", "joined"]
    with pytest.raises(FrameError, match='expected tables that the key shows, found "final_ui"'):
        put(saved, DESK, board("desk", "all"), b'{"tables":["final_ui"],"state":[]}')


def test_only_an_admin_shares() -> None:
    with pytest.raises(Forbidden, match=r"role admin to share .* found one with the role viewer; keep it for yourself"):
        put(Saved(), VIEWER, view(None, "ours"))


def test_an_owner_keeps_a_limited_number() -> None:
    saved = Saved()
    for name in ("one", "two", "one"):
        put(saved, VIEWER, view("vic", name))
    with pytest.raises(FrameError, match="expected up to 2 views and boards, found 2 ones of this key; delete some"):
        put(saved, VIEWER, board("vic", "three"))
    put(saved, ADMIN, view("ada", "three"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "vieew"}, 'kind: expected view, board, default, sql, found "vieew"'),
        ({"kind": "view", "name": "a"}, 'expected a table that the key shows, found ""'),
        ({"kind": "view", "name": "a", "table": "final_ui"}, 'expected a table that the key shows, found "final_ui"'),
        ({"kind": "view", "name": "a", "table": "x y"}, 'expected a table that the key shows, found "x y"'),
        ({"kind": "board", "name": "a", "table": "users_ui"}, 'expected no table for a board, found "users_ui"'),
        ({"kind": "sql", "name": "no table's name"}, "expected a table name of up to 80"),
        ({"kind": "sql", "table": "users_ui", "name": "a"}, "expected no table for a sql"),
        ({"kind": "default", "name": "a"}, 'expected no name for a default, found "a"'),
        ({"kind": "board", "name": " a"}, "expected a name of 1 to 80 characters without blanks"),
        ({"kind": "board", "name": ""}, "expected a name of 1 to 80 characters without blanks"),
        ({"kind": "board", "name": "a\nb"}, "expected a name of 1 to 80 characters without blanks"),
        ({"kind": "board", "name": "a" * 81}, "expected a name of 1 to 80 characters without blanks"),
        ({"kind": "board", "name": "a", "shared": "yes"}, 'shared: expected true or false, found "yes"'),
        ({"kind": "board", "owner": "vic"}, 'expected kind, table, name, shared, found "owner"'),
    ],
)
def test_a_place_is_one_that_there_can_be(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(FrameError, match=message):
        place_of(DESK, parameters.items())


def test_a_place_belongs_to_the_key_or_to_all() -> None:
    assert place_of(DESK, {"kind": "board", "name": "Überblick"}.items()) == board("desk", "Überblick")
    assert place_of(ADMIN, {"kind": "view", "table": "t", "name": "v", "shared": "true"}.items()) == view(
        None, "v", "t"
    )


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"state":"\xff"}', b'{"state":1,"x":2}', b'{"state":' + b"[" * 99_999]
)
def test_a_document_is_json_of_its_shape(body: bytes) -> None:
    with pytest.raises(FrameError, match=r"expected .* as JSON, found: "):
        document_of(body)


def test_what_was_written_here_is_shown_until_it_is_read_and_never_goes_back() -> None:
    saved = Saved()
    place, key = view("vic", "mine"), b'["vic","view","users_ui","mine"]'

    def state() -> list[bytes]:
        return [bytes(kept.state) for kept in saved.shown_to(VIEWER)]

    saved.wrote(place, document_of(b'{"state":1}'), 5)
    saved.wrote(place, document_of(b'{"state":2}'), 6)
    saved.take(key, b'{"state":1}', 5)
    assert state() == [b"2"]
    saved.take(key, b'{"state":2}', 6)
    saved.take(key, b'{"state":3}', 7)
    assert state() == [b"3"]
    # An acknowledgement that comes after its record.
    saved.wrote(place, document_of(b'{"state":2}'), 6)
    assert state() == [b"3"]
    saved.take(key, None, 8)
    assert state() == []


def test_records_that_cannot_be_read_are_left_out() -> None:
    saved = Saved()
    for key, value in ((b"x", VIEW), (b'["vic","view","users_ui","a"]', b"x"), (b'["vic","odd","",""]', VIEW)):
        saved.take(key, value, 0)
    assert saved.shown_to(VIEWER) == []
