"""Rows that explain themselves, and the states of a board named as what they are, in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from live import Board, Running, serving
from looking import expect_first, log_in, table
from origins import Origins
from playwright.sync_api import Locator, Page, expect

from liveboard.config import KeySettings, Secret
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.names import Names
from liveboard.contract.status import Phase
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration

DESK = KeySettings(name="desk", role="viewer", key=Secret("the desk's key"), tables=("final_ui",))


@pytest.fixture(scope="module")
def played(kafka: str) -> Board:
    """The board of this file."""
    Admin({"bootstrap.servers": kafka}).create_changelogs([Names().verdicts])
    return Board(kafka)


@pytest.fixture(scope="module")
def origins(played: Board) -> Origins:
    """Records and what was made of them."""
    return Origins(played)


@pytest.fixture(scope="module")
def shared(played: Board, origins: Origins) -> Iterator[Running]:
    """One server for all tests of this file."""
    with serving(played.bootstrap, keys={"desk": DESK}) as running:
        running.bound(origins.generation)
        yield running


def detail(page: Page) -> Locator:
    """The row that is shown whole."""
    return page.get_by_role("complementary")


def cell(page: Page, name: str, text: str) -> Locator:
    """A cell of a table."""
    return table(page, name).locator(".ag-cell").get_by_text(text, exact=True).first


def test_b44_a_click_on_a_row_shows_its_fields_and_the_records_behind_it(
    page: Page, shared: Running, origins: Origins
) -> None:
    log_in(page, shared, "/table/final_ui")
    cell(page, "final_ui", "Ada").click()
    row = detail(page)
    expect(row.get_by_role("heading", name="A row of final_ui")).to_be_visible()
    expect(row.locator("dl")).to_contain_text("Ada")
    expect(row.get_by_text("Left join on userId")).to_be_visible()
    users = row.get_by_role("region", name="Record of users")
    expect(users).to_contain_text(f"{origins.topics['users']} · partition 0 · offset 0")
    # Fields that the table does not have, too.
    expect(users.locator("pre")).to_contain_text('"secret": "of Ada"')
    accounts = row.get_by_role("region", name="Record of accounts")
    expect(accounts).to_contain_text("partition 0 · offset 2")
    cell(page, "final_ui", "Bob").click()
    expect(accounts).to_contain_text("no record of accounts with this userId")
    row.get_by_role("button", name="Close the row").click()
    expect(row).to_have_count(0)


def test_b44_enter_opens_a_row_and_escape_leads_back(page: Page, shared: Running) -> None:
    log_in(page, shared, "/table/rejects_ui")
    found = cell(page, "rejects_ui", "userId: expected string, found number")
    found.click()
    detail(page).get_by_role("button", name="Close the row").click()
    found.focus()
    page.keyboard.press("Enter")
    expect(detail(page).get_by_role("heading", name="A row of rejects_ui")).to_be_focused()
    expect(detail(page).locator("pre")).to_contain_text('"userId": 7')
    page.keyboard.press("Escape")
    expect(detail(page)).to_have_count(0)
    expect(found).to_be_focused()


def test_b44_a_key_that_does_not_show_the_sources_is_not_shown_their_records(page: Page, shared: Running) -> None:
    log_in(page, shared, "/table/final_ui", "the desk's key")
    cell(page, "final_ui", "Ada").click()
    expect(detail(page)).to_contain_text("The records that it was made of are not shown to this key.")
    expect(detail(page).locator("pre")).to_have_count(0)


@pytest.mark.parametrize(
    ("phase", "message", "text"),
    [
        (Phase.RESTARTING, "the Spark process has died", "pipeline down"),
        (Phase.AWAY, "Kafka has not answered since noon: no broker at localhost:9092", "Kafka away"),
        (Phase.STALE, "nothing has been heard since noon", "pipeline silent"),
    ],
)
def test_b44_the_header_says_what_the_board_does(
    page: Page, shared: Running, played: Board, phase: Phase, message: str, text: str
) -> None:
    played.announce()
    log_in(page, shared)
    state = page.locator("header .state").first
    expect(state).to_have_text("live")
    played.announce(phase=phase, message=message)
    expect(state).to_have_text(text)
    expect(page.locator(".banner")).to_have_text(message)
    played.announce()
    expect(state).to_have_text("live")
    expect(page.locator(".banner")).to_have_count(0)


def test_a_swap_shows_first_what_it_would_bring(page: Page, shared: Running, origins: Origins) -> None:
    sent: list[object] = []
    page.on("request", lambda each: sent.append(each.post_data_json) if each.url.endswith("/api/control") else None)
    log_in(page, shared)
    panel = page.get_by_role("region", name="Control panel")
    panel.locator("summary").click()
    panel.get_by_label("users", exact=True).select_option(origins.topics["accounts"])
    panel.get_by_role("button", name="Preview").click()
    preview = panel.get_by_role("region", name="Preview of the swap")
    expect(preview).to_contain_text(f"users: {origins.topics['users']} → {origins.topics['accounts']}")
    expect(preview).to_contain_text("Columns that would stay empty: name.")
    preview.get_by_role("button", name="Cancel").click()
    expect(preview).to_have_count(0)
    assert sent == []


def test_the_header_has_events_and_the_time_from_kafka_to_this_screen(
    page: Page, shared: Running, played: Board, origins: Origins
) -> None:
    log_in(page, shared, "/table/users_ui")
    expect_first(table(page), "userId", ["b"])
    # The clocks are known with the first pulse.
    expect(page.locator("header .figure").first).to_contain_text("events/s")
    # Of a board that was silent, only what comes after its first row is counted.
    played.announce()
    for key in ("first", "second"):
        now = timestamp_text(int(time.time() * 1000))
        played.write(origins.generation, {f"0-7{key}": [key, "Now", now]})
        expect_first(table(page), "userId", [key])
    expect(page.locator("header .figure").nth(1)).to_contain_text("from Kafka to this screen")
    played.write(origins.generation, {"0-7first": None, "0-7second": None})
