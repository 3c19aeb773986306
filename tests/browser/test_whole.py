"""The real whole in a real browser: `liveboard up --sample` from the wheel, with its broker, Spark and server, and what
kills them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import installed
import pytest
from confluent_kafka import Producer
from looking import COUNT_FEWEST_ROWS, expect_first, expect_range, table
from playwright.sync_api import Page, expect
from whole import Up, command, up_in

from liveboard.commands import access
from liveboard.commands.access import Access
from liveboard.kafka.admin import Admin

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1200)]

PATIENCE_MS = 120_000
STALE = re.compile(r"^stale since \d\d:\d\d:\d\d$")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Everything, as installed by pip in an empty virtual environment, with a little sample data."""
    liveboard = installed.from_wheel(tmp_path_factory.mktemp("installed"))
    with up_in(tmp_path_factory.mktemp("up"), liveboard=[str(liveboard)]) as running:
        running.until(lambda: running.rows().get("final_ui"))
        yield running


@pytest.fixture
def board(page: Page, up: Up) -> Page:
    """The board, opened by a login link."""
    url, key = re.findall(r"live tables at (http://\S+) with the key (\S+)", up.said_from_the_start())[-1]
    page.goto(access.login_link(Access(url, key)))
    expect(table(page, "final_ui").locator(".state")).to_have_text("live", timeout=PATIENCE_MS)
    return page


def kafka(up: Up) -> dict[str, str]:
    """How to reach its broker."""
    return {"bootstrap.servers": re.findall(r"Kafka (\S+), storage", up.said_from_the_start())[-1]}


def produce(up: Up, topic: str, *values: dict[str, Any]) -> None:
    """Events; Kafka has them afterwards."""
    producer = Producer(kafka(up))
    for value in values:
        producer.produce(topic, json.dumps(value))
    assert producer.flush(60) == 0


def expect_event(board: Page, up: Up, name: str) -> None:
    """An event goes all the way: into Kafka, through both raw table and join, onto the screen."""
    produce(up, "users", {"userId": f"id of {name}", "name": name, "age": 42})
    for each in ("users_ui", "final_ui"):
        grid = table(board, each)
        grid.get_by_role("searchbox").fill(name)
        expect(grid.locator(".range")).to_have_text("rows 1\N{EN DASH}1 of 1", timeout=PATIENCE_MS)
        expect_first(grid, "userId", [f"id of {name}"])


def test_all_of_it_is_installed_by_pip(up: Up) -> None:
    started = [command(process) for process in up.family() if "-m liveboard" in command(process)]
    assert len(started) >= 3
    assert [line for line in started if "/environment/bin/python" not in line] == []


def test_events_appear(board: Page, up: Up) -> None:
    expect_event(board, up, "Ada the first")


@pytest.mark.parametrize("victim", ["SparkSubmit", "-m liveboard serve"])
def test_b24_what_is_killed_makes_grids_stale_and_then_they_heal(
    board: Page, up: Up, complaints: list[str], victim: str
) -> None:
    # What the browser itself says about a server that is not there, or has no tables yet for a chart.
    complaints += ["WebSocket connection", "ERR_CONNECTION_REFUSED", "404 (Not Found)"]
    grid = table(board, "final_ui")
    up.find(victim).kill()
    expect(grid.locator(".state")).to_have_text(STALE, timeout=PATIENCE_MS)
    expect(grid.locator('.ag-row[row-index="0"]')).to_be_visible()
    for name in ("users_ui", "final_ui"):
        expect(table(board, name).locator(".state")).to_have_text("live", timeout=PATIENCE_MS)
    expect_event(board, up, f"After the end of {victim}")


def test_b30_a_swap_through_the_panel_moves_all_grids(board: Page, up: Up) -> None:
    Admin(kafka(up)).create(["other-users", "other-accounts"])
    produce(up, "other-users", *({"userId": f"o{n}", "name": f"Other {n}", "age": n} for n in range(50)))
    produce(up, "other-accounts", *({"userId": f"o{n}", "accountType": "gold", "balance": n} for n in range(20)))
    board.evaluate(COUNT_FEWEST_ROWS)
    panel = board.get_by_role("region", name="Control panel")
    panel.locator("summary").click()
    panel.get_by_label("users", exact=True).select_option("other-users")
    panel.get_by_label("accounts", exact=True).select_option("other-accounts")
    panel.get_by_label("join", exact=True).select_option("inner")
    panel.get_by_role("button", name="Preview").click()
    panel.get_by_role("button", name="Swap").click()
    expect(panel.locator("summary")).to_contain_text("users: other-users", timeout=PATIENCE_MS)
    for name, rows in (("users_ui", 50), ("accounts_ui", 20), ("final_ui", 20)):
        grid = table(board, name)
        expect_range(grid, 1, rows, rows)
        expect(grid.locator(".state")).to_have_text("live")
        expect(grid.locator(".ag-row").first).to_contain_text("o")
    expect(panel.locator("summary")).to_contain_text("join: inner")
    expect(panel.get_by_text("applied").first).to_be_visible()
    # No reload either: it would have forgotten that somebody counts.
    assert board.evaluate("window.fewest") > 0
