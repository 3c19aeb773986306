"""Which table a name means, for whom, and when it comes to mean another."""

from __future__ import annotations

import pytest

from liveboard.contract.board import Wiring
from liveboard.contract.changelog import decode_row
from liveboard.contract.frames import Code, FrameError, Role
from liveboard.contract.names import STATUS_TABLE
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, State, status_columns
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue, Watcher
from liveboard.serving.table import Applied, Table

USERS = (Column("userId", "string"), TS)
ADMIN = Grant("admin", Role.ADMIN)
WALL = Grant("wall", Role.VIEWER, frozenset({"users_ui"}))
ROW = b'["ada","2026-01-31T09:30:00.000000Z"]'


class Noted(Watcher):
    """Notes what it is told, and which generation names mean at that moment."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.told: list[str] = []
        self._catalogue = catalogue
        catalogue.watcher = self

    def applied(self, table: Table, applied: Applied) -> None:
        if applied.before:
            self.told.append(f"applied {table.name}")

    def rebound(self) -> None:
        self.told.append(f"rebound to {self._catalogue.live}")

    def dropped(self, table: Table) -> None:
        self.told.append(f"dropped {table.name} of {table.generation}")


def status(live: str | None, *, complete: bool = False, **states: State) -> BoardStatus:
    """A board with the generations in these states; `complete`: the rows of a build are all written."""
    records = {
        name: GenerationRecord(
            state=state,
            wiring=Wiring({"users": "users"}, {}),
            tables={"users_ui": USERS, "final_ui": USERS},
            complete_at={"users_ui": 1} if complete or state is not State.BUILDING else {},
        )
        for name, state in states.items()
    }
    phase = Phase.LIVE if live else Phase.BUILDING
    return BoardStatus(sources=("users",), live=live, generations=records, phase=phase)


def loaded(catalogue: Catalogue, generation: str | None, *names: str) -> list[Table]:
    tables = [Table(name, generation, USERS, {b"0-0": ROW}) for name in names or ("users_ui", "final_ui")]
    for table in tables:
        catalogue.loaded(table)
    return tables


def shown_status(catalogue: Catalogue) -> tuple[object, object]:
    """The generation and the phase in the table orchestrator_status."""
    _, [row] = catalogue.find(ADMIN, STATUS_TABLE).window(0, 1)
    columns = status_columns(("users",))
    shown = dict(zip([column.name for column in columns], decode_row(row, columns), strict=True))
    return shown["generation"], shown["phase"]


def refusal(catalogue: Catalogue, grant: Grant, name: str, generation: str | None = None) -> FrameError:
    with pytest.raises(FrameError) as caught:
        catalogue.find(grant, name, generation)
    return caught.value


def test_b15_names_move_when_all_tables_are_loaded_and_in_one_step() -> None:
    catalogue = Catalogue()
    noted = Noted(catalogue)
    catalogue.status_changed(status("g1", g1=State.LIVE))
    old = loaded(catalogue, "g1")
    assert (catalogue.live, catalogue.is_ready, noted.told) == ("g1", True, ["rebound to g1"])
    catalogue.status_changed(status("g2", g1=State.RETIRING, g2=State.LIVE))
    assert (catalogue.live, catalogue.is_ready) == ("g1", False)
    [first] = loaded(catalogue, "g2", "users_ui")
    assert catalogue.find(ADMIN, "users_ui") is old[0]
    assert catalogue.find(ADMIN, "users_ui", "g2") is first
    [second] = loaded(catalogue, "g2", "final_ui")
    assert catalogue.named()[:2] == [first, second]
    assert (catalogue.live, catalogue.is_ready) == ("g2", True)
    assert [told for told in noted.told if told.startswith("rebound")] == ["rebound to g1", "rebound to g2"]


def test_the_status_is_of_the_generation_that_names_mean() -> None:
    catalogue = Catalogue()
    catalogue.status_changed(status(None, g1=State.BUILDING))
    assert shown_status(catalogue) == (None, "building")
    catalogue.status_changed(status("g1", g1=State.LIVE))
    assert shown_status(catalogue) == ("g1", "live")
    loaded(catalogue, "g1")
    catalogue.status_changed(status("g2", g1=State.RETIRING, g2=State.LIVE))
    assert shown_status(catalogue) == ("g1", "live")
    loaded(catalogue, "g2")
    assert shown_status(catalogue) == ("g2", "live")


def test_a_generation_is_shown_as_soon_as_its_rows_are_written_and_no_longer_if_it_fails_then() -> None:
    catalogue = Catalogue()
    noted = Noted(catalogue)
    catalogue.status_changed(status(None, g1=State.BUILDING))
    loaded(catalogue, "g1")
    assert noted.told == []
    catalogue.status_changed(status(None, complete=True, g1=State.BUILDING))
    assert "rebound to g1" in noted.told
    assert not catalogue.is_ready
    catalogue.status_changed(status("g1", g1=State.LIVE, g2=State.BUILDING))
    loaded(catalogue, "g2")
    assert "rebound to g2" not in noted.told
    assert (catalogue.is_ready, shown_status(catalogue)[0]) == (True, "g1")
    catalogue.status_changed(status("g1", complete=True, g1=State.LIVE, g2=State.BUILDING))
    assert noted.told[-1] == "rebound to g2"
    assert (catalogue.is_ready, shown_status(catalogue)[0]) == (True, "g2")
    catalogue.status_changed(status("g1", complete=True, g1=State.LIVE, g2=State.FAILED))
    assert "rebound to g1" in noted.told[-3:]
    assert (catalogue.is_ready, shown_status(catalogue)[0]) == (True, "g1")


def test_b16_a_closed_generation_goes_but_not_while_names_still_mean_it() -> None:
    catalogue = Catalogue()
    noted = Noted(catalogue)
    catalogue.status_changed(status("g1", g1=State.LIVE))
    loaded(catalogue, "g1")
    catalogue.status_changed(status("g2", g1=State.CLOSED, g2=State.LIVE))
    assert catalogue.find(ADMIN, "users_ui").generation == "g1"
    noted.told.clear()
    loaded(catalogue, "g2")
    assert noted.told[-3:] == ["rebound to g2", "dropped users_ui of g1", "dropped final_ui of g1"]
    error = refusal(catalogue, ADMIN, "users_ui", "g1")
    assert (error.code, str(error)) == (
        Code.UNKNOWN_TABLE,
        'expected a table of a generation that is kept (g2), found "users_ui" of "g1"',
    )


def test_changes_of_tables_that_are_not_loaded_are_left_out() -> None:
    catalogue = Catalogue()
    noted = Noted(catalogue)
    [users] = loaded(catalogue, "g1", "users_ui")
    catalogue.changed("g1", "users_ui", [(b"0-1", ROW)])
    catalogue.changed("g9", "users_ui", [(b"0-1", ROW)])
    assert (noted.told, len(users)) == (["applied users_ui"], 2)


def test_a_key_sees_its_own_tables_only_and_cannot_tell_others_from_none() -> None:
    catalogue = Catalogue()
    catalogue.status_changed(status("g1", g1=State.LIVE))
    loaded(catalogue, "g1")
    loaded(catalogue, None, "control_raw")
    assert [info.name for info in catalogue.infos(WALL)] == ["users_ui"]
    assert [info.name for info in catalogue.infos(ADMIN)] == ["users_ui", "final_ui", "control_raw", STATUS_TABLE]
    assert catalogue.find(WALL, "users_ui", "g1") is catalogue.find(ADMIN, "users_ui")
    for name in ("final_ui", "control_raw", STATUS_TABLE, "nothing"):
        for generation in (None, "g1"):
            error = refusal(catalogue, WALL, name, generation)
            known = "a table of a generation that is kept (g1)" if generation else "a table (users_ui)"
            found = f'"{name}" of "g1"' if generation else f'"{name}"'
            assert (error.code, str(error)) == (Code.UNKNOWN_TABLE, f"expected {known}, found {found}")
    assert refusal(catalogue, Grant("none", Role.VIEWER, frozenset()), "x").args == (
        'expected a table (none is loaded yet), found "x"',
    )


def test_b20_a_name_that_no_table_can_have_is_refused_as_such() -> None:
    assert refusal(Catalogue(), ADMIN, 'users"; DROP').code == Code.BAD_NAME
