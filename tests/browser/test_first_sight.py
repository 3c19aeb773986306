"""Boards of every kind, as a stranger meets them: empty, all rejected, without joins, with aggregates and alerts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from axe import problems
from harness import until
from live import KEY, NAMES, Board, Running, serving
from looking import expect_first, log_in, stamp, table
from playwright.sync_api import Browser, Page, expect
from ports import closed_port

from liveboard.contract.board import View, Wiring
from liveboard.contract.schema import REJECT_COLUMNS, TS, Column
from liveboard.contract.status import AlertFigures, Phase, Progress
from liveboard.kafka.admin import Admin
from liveboard.kafka.broker import Broker

pytestmark = pytest.mark.integration

USERS = (Column("userId", "string"), Column("name", "string"), Column("email", "string"), Column("age", "bigint"), TS)
ACCOUNTS = (Column("userId", "string"), Column("accountType", "string"), Column("balance", "double"), TS)
JOINED = (*USERS[:-1], *ACCOUNTS[1:])
BY_TYPE = (Column("accountType", "string"), Column("accounts", "bigint"), Column("total", "double"), TS)
TABLES = {"users_ui": USERS, "accounts_ui": ACCOUNTS, "final_ui": JOINED, "user_account": JOINED}
WHOLE = {**TABLES, "by_type": BY_TYPE, "rejects_ui": REJECT_COLUMNS}
SOURCES = {"users": {"table": "users_ui"}, "accounts": {"table": "accounts_ui"}}
JOIN = {"left": "users", "right": "accounts", "on": "userId"}
DESCRIBED = {
    "sources": SOURCES,
    "joins": {"final_ui": JOIN, "user_account": JOIN},
    "aggregates": {"by_type": {}},
}
WIRING = Wiring({"users": "users", "accounts": "accounts"}, {"final_ui": "left", "user_account": "asof"})
# Its time is that of a row, but it has no newest one.
LATEST = View(
    name="latest", sql="SELECT accountType, max(balance) AS most, max(ts) AS ts FROM accounts_ui GROUP BY accountType"
)
TYPES = ("mortgage", "brokerage", "checking")
# From now on the page remembers in window.fastest the greatest number of rows a second that a table has claimed.
NOTE_FASTEST = """() => {
    window.fastest = 0;
    const look = () => {
        const text = document.querySelector('.tempo')?.textContent ?? '0';
        window.fastest = Math.max(window.fastest, parseFloat(text.replaceAll(',', '')) || 0);
    };
    setInterval(look, 20);
}"""
# What of the page is cut: texts that end in dots, or parts that lie outside their card.
CUT_HEADINGS = """grids => grids.flatMap(grid => [...grid.querySelectorAll('.ag-header-cell-text')])
    .filter(text => text.scrollWidth > text.clientWidth).map(text => text.textContent)"""
CUT_FOOTERS = """cards => cards.filter(card => {
    const [inner, outer] = [card.querySelector('footer'), card].map(each => each.getBoundingClientRect());
    return inner.bottom > outer.bottom || inner.right > outer.right;
}).map(card => card.querySelector('h2').textContent)"""


@pytest.fixture(scope="module")
def played(kafka: str) -> Board:
    """The board of this file; each test plays a generation of its own."""
    admin = Admin({"bootstrap.servers": kafka})
    admin.create(["users", "accounts"])
    admin.create_changelogs([NAMES.verdicts])
    return Board(kafka)


@pytest.fixture(scope="module")
def shared(played: Board) -> Iterator[Running]:
    """One server for all tests of this file."""
    with serving(played.bootstrap, views=(LATEST,)) as running:
        yield running


@pytest.fixture
def show(played: Board, shared: Running) -> Callable[..., str]:
    """Makes a generation of the default board with these rows the live one."""

    def show(rows: dict[str, dict[str, list[Any]]], **status: Any) -> str:
        generation = played.build(WHOLE, WIRING, DESCRIBED)
        for name, some in rows.items():
            played.write(generation, some, name)
        played.switch(generation)
        played.announce(sources=("users", "accounts"), **status)
        shared.bound(generation)
        return generation

    return show


def person(number: int) -> list[Any]:
    """A row of users_ui without its time."""
    return [f"u{number:05d}", f"Grace Hopper {number}", f"grace.hopper.{number}@a-long-domain.example", 20 + number]


def ordinary() -> dict[str, dict[str, list[Any]]]:
    """Some rows of each table."""
    numbers = range(60)
    accounts = [[TYPES[n % 3], 100_000.25 * (n % 3) + n] for n in numbers]
    joined = {f"0-{n}": [*person(n), *accounts[n], stamp(n)] for n in numbers}
    return {
        "users_ui": {f"0-{n}": [*person(n), stamp(n)] for n in numbers},
        "accounts_ui": {f"0-{n}": [f"u{n:05d}", *accounts[n], stamp(n)] for n in numbers},
        "final_ui": joined,
        "user_account": joined,
        "by_type": {f'="{name}"': [name, 20, 30_000.5 * (3 - n), stamp(n)] for n, name in enumerate(TYPES)},
    }


def reject(topic: str, offset: int) -> dict[str, list[Any]]:
    """A row of rejects_ui."""
    reason, value = "userId: expected string, found object", '{"userId":{}}'
    return {f"{topic}-0-{offset}": [topic, 0, offset, reason, value, stamp(offset % 60)]}


def test_b44_an_empty_board_says_how_to_send_the_first_record(
    page: Page, shared: Running, played: Board, show: Callable[..., str]
) -> None:
    generation = show({})
    log_in(page, shared)
    first = page.get_by_role("region", name="The first record")
    commands = [
        """liveboard send users '{"userId":"userId-1","name":"name-1","email":"email-1","age":1}'""",
        """liveboard send accounts '{"userId":"userId-1","accountType":"accountType-1","balance":1.5}'""",
    ]
    expect(first.locator("code")).to_have_text(commands)
    # A grid that is just being drawn has a line of headings before it has headings.
    expect(page.locator(".ag-header-row:not(:has([role=columnheader]))")).to_have_count(0)
    assert problems(page) == []
    played.write(generation, {"0-0": [*person(0), stamp(0)]})
    expect(first).to_have_count(0)
    expect_first(table(page), "userId", ["u00000"])


def test_b44_records_that_are_all_rejected_are_told_on_the_card(
    page: Page, shared: Running, show: Callable[..., str]
) -> None:
    rejects = {**reject("accounts", 0)}
    for offset in range(250):
        rejects |= reject("users", offset)
    show({"accounts_ui": ordinary()["accounts_ui"], "rejects_ui": rejects})
    log_in(page, shared)
    card = page.locator('[data-card^="table users_ui"]')
    expect(card.locator(".notice")).to_contain_text(
        "250 of 250 records of users rejected: userId: expected string, found object"
    )
    expect(page.locator("header .state").first).to_have_text("live, users rejected")
    expect(card.locator(".grid")).to_contain_text("no rows yet")
    # Of the accounts only one was.
    expect(page.locator(".notice")).to_have_count(1)
    assert problems(page) == []
    card.get_by_role("link", name="Look at the rejects of users").click()
    grid = table(page, "rejects_ui")
    expect(grid.locator(".range")).to_contain_text("of 250")
    expect_first(grid, "topic", ["users"])


def test_a_board_without_joins_offers_none(page: Page, shared: Running, played: Board) -> None:
    tables = {"users_ui": USERS, "rejects_ui": REJECT_COLUMNS}
    described = {"sources": {"users": {"table": "users_ui"}}, "joins": {}}
    generation = played.build(tables, Wiring({"users": "users"}, {}), described)
    played.write(generation, {"0-0": [*person(0), stamp(0)]})
    played.switch(generation)
    shared.bound(generation)
    log_in(page, shared)
    expect_first(table(page), "userId", ["u00000"])
    panel = page.get_by_role("region", name="Control panel")
    expect(panel.locator("summary")).to_contain_text("users: users")
    expect(panel.locator("summary")).not_to_contain_text("join")
    panel.locator("summary").click()
    expect(panel.get_by_label("users", exact=True)).to_be_visible()
    expect(panel.get_by_label("join", exact=True)).to_have_count(0)


def test_b40_aggregates_views_and_alerts_are_cards(
    page: Page, shared: Running, played: Board, show: Callable[..., str]
) -> None:
    admin = Admin({"bootstrap.servers": played.bootstrap})
    admin.delete([NAMES.raised])
    admin.create_changelogs([NAMES.raised])
    played.write_topic(NAMES.raised, {'="low","0-9"': ["low", "final_ui", "0-9", "raised", stamp(1), stamp(2)]})
    generation = show(ordinary(), alerts={"low": AlertFigures(raised=1)})
    log_in(page, shared)
    figure = page.get_by_role("region", name="Sum of total, by_type").locator("strong")
    expect(figure).to_have_text("180,003")
    groups = page.get_by_role("region", name="total by accountType, by_type")
    expect(groups.get_by_role("row")).to_have_text(
        ["mortgage90,001.550%", "brokerage60,00133.3%", "checking30,000.516.7%"]
    )
    expect(page.get_by_role("region", name="most by accountType, latest").get_by_role("row")).to_have_count(3)
    played.write(generation, {'="checking"': ["checking", 21, 120_000.0, stamp(9)]}, "by_type")
    expect(groups.get_by_role("row").first).to_contain_text("checking120,000")
    expect(figure).to_have_text("270,003")

    page.get_by_role("button", name="Add card").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What").select_option("Table")
    dialog.get_by_label("Table").select_option("alerts_ui")
    page.get_by_role("button", name="Add", exact=True).click()
    expect_first(table(page, "alerts_ui"), "alert", ["low"])

    page.goto(f"http://127.0.0.1:{shared.port}/table/latest")
    grid = table(page, "latest")
    expect(grid.locator(".ag-row")).to_have_count(3)
    expect(grid.get_by_role("button", name="Newest first")).to_be_disabled()
    expect(grid.locator(".tempo")).to_have_text("0 rows/s")


def test_no_heading_and_no_pager_is_cut(page: Page, shared: Running, show: Callable[..., str]) -> None:
    show(ordinary())
    log_in(page, shared)
    grid = table(page, "user_account")
    grid.scroll_into_view_if_needed()
    expect_first(grid, "userId", ["u00059"])
    grids = page.locator("app-live-table")
    expect(grids).to_have_count(4)
    assert grids.evaluate_all(CUT_HEADINGS) == []
    grid.locator(".ag-cell").first.click()
    expect(page.get_by_role("complementary")).to_be_visible()
    assert grids.evaluate_all(CUT_HEADINGS) == []
    assert grids.evaluate_all(CUT_FOOTERS) == []


def test_rows_that_only_moved_are_not_counted(
    page: Page, shared: Running, played: Board, show: Callable[..., str]
) -> None:
    generation = show(ordinary())
    log_in(page, shared, "/table/users_ui")
    grid = table(page)
    grid.get_by_role("columnheader", name="age").click()
    expect_first(grid, "userId", ["u00000"])
    page.evaluate(NOTE_FASTEST)
    # Five come to the top, and all others move; the first ones are also sent once more.
    again = {f"0-{n}": [*person(n), stamp(n)] for n in range(20)}
    came = {f"0-{100 + n}": [f"n{n}", "New", "new@a.example", n, stamp(n)] for n in range(5)}
    played.write(generation, {**again, **came})
    expect_first(grid, "userId", ["n0", "n1", "n2", "n3", "n4", "u00000"])
    # Not wait_for_function: the page allows no text to be run as a script.
    until(lambda: page.evaluate("window.fastest > 0"), "rows that are counted")
    assert page.evaluate("window.fastest") <= 1, "five in five seconds"


def test_a_chart_says_what_its_line_and_its_band_are(page: Page, shared: Running, show: Callable[..., str]) -> None:
    show(ordinary())
    log_in(page, shared)
    chart = page.get_by_role("region", name="balance over time, accounts_ui")
    expect(chart.get_by_role("img", name="balance over time")).to_be_visible()
    expect(chart.locator(".legend span")).to_have_text(["least to greatest", "mean"])


def test_the_first_start_is_called_so(page: Page, shared: Running, played: Board, show: Callable[..., str]) -> None:
    show({})
    beginning = Board(played.bootstrap)
    beginning.announce(phase=Phase.STARTING, sources=("users",))
    log_in(page, shared)
    state = page.locator("header .state")
    expect(state).to_have_text("starting")
    expect(page.locator(".banner")).to_contain_text("The pipeline is starting")
    expect(page.get_by_text("nothing live")).to_have_count(0)
    expect(page.get_by_text("stale")).to_have_count(0)
    generation = beginning.build(WHOLE, WIRING, DESCRIBED)
    record = beginning.generations[generation]
    for progress, text in ((Progress(0, 0, 0.0), "starting"), (Progress(45, 100, 9.0), "building, 45 %")):
        beginning.generations[generation] = type(record)(
            state=record.state, wiring=record.wiring, tables=record.tables, progress=progress
        )
        beginning.announce(phase=Phase.BUILDING, message="building")
        expect(state).to_have_text(text)


def test_b44_a_board_that_is_not_there_yet_and_a_broker_that_is_away_are_named(page: Page, tmp_path: Path) -> None:
    with Broker(tmp_path, closed_port()) as broker, serving(broker.bootstrap_servers) as running:
        log_in(page, running)
        state = page.locator("header .state")
        expect(state).to_have_text("no board yet")
        board = Board(broker.bootstrap_servers)
        generation = board.build(WHOLE, WIRING, DESCRIBED)
        board.write(generation, {"0-0": [*person(0), stamp(0)]})
        board.switch(generation)
        grid = table(page)
        expect_first(grid, "userId", ["u00000"])
        expect(state).to_have_text("live")
        broker.stop()
        expect(state).to_have_text("Kafka away", timeout=60_000)
        expect(page.locator(".banner")).to_contain_text(
            f"expected a Kafka broker at {broker.bootstrap_servers}, found none"
        )
        expect(grid.locator(".state")).to_contain_text("stale since")
        expect_first(grid, "userId", ["u00000"])


def test_a_board_by_its_name_is_embedded_to_be_looked_at(page: Page, shared: Running, show: Callable[..., str]) -> None:
    show(ordinary())
    cards = [
        {"kind": "number", "table": "users_ui", "column": "", "width": 3, "height": 1},
        {"kind": "table", "table": "final_ui", "column": "", "width": 12, "height": 4},
    ]
    body = {"tables": ["users_ui"], "state": [{**each, "measure": "rows", "query": "", "view": ""} for each in cards]}
    place = urlencode({"kind": "board", "table": "", "name": "Lobby", "shared": "true"})
    address = f"http://127.0.0.1:{shared.port}"
    headers = {"Authorization": f"Bearer {KEY}"}
    urlopen(Request(f"{address}/api/views?{place}", json.dumps(body).encode(), headers, method="PUT")).close()
    page.goto(f"{address}/embed/board/Lobby#key={KEY.replace(' ', '%20')}")
    expect_first(table(page, "final_ui"), "userId", ["u00059"])
    expect(page.locator(".card")).to_have_count(2)
    expect(page.get_by_role("navigation")).to_have_count(0)
    for name in ("Add card", "Log out", "Boards", "Move final_ui", "Card final_ui", "Views"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert problems(page) == []
    page.get_by_label("Open final_ui alone").click()
    expect(page).to_have_url(f"{address}/embed/table/final_ui")
    expect_first(table(page, "final_ui"), "userId", ["u00059"])


@pytest.mark.parametrize(("scheme", "width", "height"), [("dark", 3840, 2160), ("light", 390, 844)])
def test_the_first_board_fits_the_screen(
    browser: Browser, shared: Running, show: Callable[..., str], scheme: Any, width: int, height: int
) -> None:
    show(ordinary())
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
    page.set_default_timeout(20_000)
    log_in(page, shared)
    expect_first(table(page, "final_ui"), "userId", ["u00059"])
    found = problems(page)
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    grids = page.locator("app-live-table")
    cut = (grids.evaluate_all(CUT_HEADINGS), grids.evaluate_all(CUT_FOOTERS))
    page.close()
    assert (found, cut) == ([], ([], []))
    assert wide[0] <= wide[1], "the page must not be wider than the screen"
