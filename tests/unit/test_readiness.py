"""When a server is ready: what /readyz answers, and that the metric says the same. Without Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from live import USERS, Running, at, get, serving, wait
from ports import closed_port

from liveboard.contract.board import View, Wiring
from liveboard.contract.changelog import encode_row
from liveboard.contract.names import ALERTS_TABLE, CONTROL_TABLE
from liveboard.contract.status import AlertFigures, BoardStatus, GenerationRecord, Phase, State
from liveboard.serving.table import Table

VIEWS = (
    View(name="commands", sql="SELECT count(*) AS commands FROM control_raw"),
    View(name="of_a_view", sql="SELECT max(commands) AS most FROM commands"),
)


@contextmanager
def fed_by_hand(views: Sequence[View] = ()) -> Iterator[Running]:
    """A server whose tables come from the test."""
    with serving(f"127.0.0.1:{closed_port()}", views=views) as running:
        yield running


def load(running: Running, generation: str | None, name: str) -> None:
    """A table has been read."""
    row = encode_row(["ada", 36, at(0)])
    table = Table(name, generation, USERS, {b"0-0": row})
    running.server.feed.loop.call_soon_threadsafe(running.server.catalogue.loaded, table)


def go_live(running: Running, alerts: Sequence[str] = ()) -> None:
    """The board says that g1 is live."""
    record = GenerationRecord(
        state=State.LIVE, wiring=Wiring({}, {}), tables={"users_ui": USERS}, complete_at={"users_ui": 1}
    )
    status = BoardStatus(
        sources=("users",),
        live="g1",
        generations={"g1": record},
        phase=Phase.LIVE,
        alerts={name: AlertFigures() for name in alerts},
    )
    running.server.feed.loop.call_soon_threadsafe(running.server.catalogue.status_changed, status)


def said(running: Running) -> str:
    """Why the server is not ready, or nothing; the metric has to agree."""
    status, answer = get(running, "/readyz", key=None)
    found = re.findall(r"^liveboard_ready (\S+)$", get(running, "/metrics", key=None)[1], re.MULTILINE)
    assert status in (200, 503)
    if (float(found[0]) == 1) != (status == 200):
        return "the metric says something else"  # which is so while it changes between the two questions
    if status == 200:
        assert answer["generation"] == "g1"
        return ""
    assert answer["error"]["code"] == "not_ready"
    return str(answer["error"]["message"])


def test_a_server_is_ready_when_the_generation_and_the_control_table_are_there() -> None:
    with fed_by_hand() as running:
        assert said(running)
        go_live(running)
        wait(lambda: "generation g1" in said(running))
        load(running, "g1", "users_ui")
        wait(lambda: said(running) == "expected every table, found: loading control_raw")
        load(running, None, CONTROL_TABLE)
        wait(lambda: said(running) == "")


def test_alerts_and_views_that_are_not_there_yet_are_named() -> None:
    with fed_by_hand(VIEWS) as running:
        go_live(running, alerts=["overdrawn"])
        load(running, "g1", "users_ui")
        everything = "control_raw, alerts_ui, commands, of_a_view"
        wait(lambda: said(running) == f"expected every table, found: loading {everything}")
        load(running, None, ALERTS_TABLE)
        wait(lambda: said(running) == "expected every table, found: loading control_raw, commands, of_a_view")
        load(running, None, CONTROL_TABLE)
        wait(lambda: said(running) == "")
        assert running.server.catalogue.get(None, "of_a_view")


def test_a_view_whose_statement_fails_is_not_waited_for() -> None:
    with fed_by_hand([View(name="broken", sql="SELECT * FROM nowhere_ui")]) as running:
        go_live(running)
        load(running, "g1", "users_ui")
        wait(lambda: said(running) == "expected every table, found: loading control_raw, broken")
        load(running, None, CONTROL_TABLE)
        wait(lambda: said(running) == "")
