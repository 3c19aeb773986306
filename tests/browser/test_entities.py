"""Tables by what they are about, and what many grids of one table cost on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from live import Board, Running, wait
from looking import expect_range, log_in, user
from playwright.sync_api import Page, WebSocket, expect

pytestmark = pytest.mark.integration

GRIDS = 10


def sent_by(page: Page) -> list[dict[str, Any]]:
    """All frames that the page sends from now on."""
    frames: list[dict[str, Any]] = []

    def opened(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: frames.append(json.loads(frame)))

    page.on("websocket", opened)
    return frames


def test_b29_entities_have_their_tables_and_all_others_the_join(page: Page, running: Running) -> None:
    log_in(page, running, "/entity/user,account,whatever")
    expect(page.locator("app-entity-table h2")).to_have_text(["users_ui", "final_ui"])
    grids = page.locator("app-live-table")
    expect_range(grids.nth(0), 1, 300, 1_000)
    expect_range(grids.nth(1), 1, 300, 1_000)
    # This board has no accounts.
    expect(page.locator(".missing")).to_contain_text("There is no entity “account” on this board")
    expect(page.locator(".missing")).to_contain_text("There is: users_ui, final_ui, rejects_ui.")
    grids.nth(0).get_by_role("button", name="Next").click()
    expect_range(grids.nth(0), 301, 600, 1_000)


def test_b21_b22_ten_grids_are_one_subscription_which_the_last_one_closes(
    page: Page, running: Running, board: Board
) -> None:
    sent = sent_by(page)
    log_in(page, running, "/table/final_ui")
    expect_range(page.locator("app-live-table"), 1, 300, 1_000)
    move_to(page, "/entity/" + ",".join(["user"] * GRIDS))
    grids = page.locator("app-live-table")
    expect(grids).to_have_count(GRIDS)
    for number in range(GRIDS):
        expect_range(grids.nth(number), 1, 300, 1_000)
    board.write(str(board.live), {"0-998": user(998, age=77)})
    for number in range(GRIDS):
        expect(grids.nth(number).locator('.ag-row[row-index="1"] [col-id="age"]')).to_have_text("77")
    [subscribed] = [frame for frame in sent if frame["op"] == "subscribe" and frame["table"] == "users_ui"]
    assert [frame for frame in sent if frame["op"] == "unsubscribe" and frame["id"] == subscribed["id"]] == []
    page.go_back()
    expect_range(page.locator("app-live-table"), 1, 300, 1_000)
    # final_ui, and orchestrator_status for the state lines
    wait(lambda: running.server.hub.subscriptions == 2)
    closed = [frame for frame in sent if frame["op"] == "unsubscribe" and frame["id"] == subscribed["id"]]
    assert len(closed) == 1
    assert [frame["table"] for frame in sent if frame["op"] == "subscribe"].count("users_ui") == 1


def move_to(page: Page, path: str) -> None:
    """To another address inside the page, without loading it again."""
    page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate', { state: null })) }",
        path,
    )
