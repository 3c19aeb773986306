"""A board of cards and named views, in a real browser; all tests share one server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from axe import problems
from live import NAMES, Board, Running, serving
from looking import fill, log_in, table, user
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from liveboard.config import KeySettings, Secret
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration

WALL = "the wall's key"
KEYS = {"wall": KeySettings(name="wall", role="viewer", key=Secret(WALL))}


@pytest.fixture(scope="module")
def board(kafka: str) -> Board:
    """A board with a live generation, on which nobody has kept anything."""
    admin = Admin({"bootstrap.servers": kafka})
    admin.create(["users", "users-b", "liveboard-control"])
    admin.create_changelogs([NAMES.verdicts])
    admin.delete([NAMES.saved])
    board = Board(kafka)
    fill(board)
    return board


@pytest.fixture(scope="module")
def running(board: Board) -> Iterator[Running]:
    """A server that shows the board."""
    with serving(board.bootstrap, keys=KEYS) as running:
        running.bound(str(board.live))
        yield running
        Admin({"bootstrap.servers": board.bootstrap}).delete([NAMES.saved])


def cards(page: Page) -> list[str]:
    """The cards from the first to the last."""
    found = page.locator("app-card-board .card").evaluate_all("cards => cards.map(card => card.dataset.card)")
    return [" ".join(card.split()) for card in found]


def tabs(page: Page) -> Locator:
    """The tabs of the boards."""
    return page.get_by_role("navigation", name="Boards").get_by_role("link")


def save_as(page: Page, name: str) -> None:
    """Keeps the board under a name."""
    page.get_by_role("button", name="Boards", exact=True).click()
    page.get_by_label("Name of the board").fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(tabs(page).filter(has_text=name)).to_have_attribute("aria-current", "page")
    page.keyboard.press("Escape")


def test_b29_the_first_board_is_made_from_the_configuration(page: Page, running: Running, board: Board) -> None:
    log_in(page, running)
    expect(page.locator("app-live-table")).to_have_count(2)
    assert cards(page) == [
        "number users_ui rows",
        "number final_ui rows",
        "line final_ui balance",
        "line users_ui age",
        "table users_ui",
        "table final_ui",
    ]
    figure = page.get_by_role("region", name="Rows of users_ui").locator("strong")
    expect(figure).to_have_text("1,000")
    board.write(str(board.live), {"0-1000": user(1_000)})
    expect(figure).to_have_text("1,001")
    line = page.get_by_role("region", name="balance over time, final_ui")
    line.scroll_into_view_if_needed()
    expect(line.get_by_role("img", name="balance over time")).to_be_visible()
    expect(line.get_by_role("status")).to_have_text("Over 1,000 rows")


def test_b43_cards_are_added_arranged_resized_and_removed_and_the_address_has_them(
    page: Page, running: Running
) -> None:
    log_in(page, running)
    expect(page.locator("app-live-table")).to_have_count(2)
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Add card").click()
    dialog.get_by_label("What").select_option("Top values")
    dialog.get_by_label("Table").select_option("final_ui")
    dialog.get_by_label("Column").select_option("name")
    page.get_by_role("button", name="Add", exact=True).click()
    top = page.get_by_role("region", name="Top name, final_ui")
    expect(top.get_by_role("row").first).to_contain_text("0.1%")

    handle = page.get_by_role("button", name="Move Top name, final_ui")
    handle.focus()
    page.keyboard.press("ArrowLeft")
    expect(handle).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_text("Top name, final_ui is card 5 of 7")).to_be_attached()
    page.get_by_role("button", name="Move Rows of users_ui").drag_to(page.locator(".card").nth(1))

    page.get_by_role("button", name="Card users_ui").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Wider").click()
    page.get_by_role("button", name="Taller").press("Enter")
    page.keyboard.press("Escape")
    grip = page.locator('[data-card^="table final_ui"] .grip')
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    width = page.locator('[data-card^="table final_ui"]').evaluate("card => card.offsetWidth")
    assert box is not None
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 - width / 3, box["y"] + 8, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Card Rows of final_ui").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Card age over time, users_ui").click()
    page.get_by_role("button", name="Edit…").click()
    dialog.get_by_label("What").select_option("Distribution")
    page.get_by_role("button", name="Change").click()

    expected = (
        "number,users_ui,6,1;line,final_ui,6,2,balance;distribution,users_ui,6,3,age;top,final_ui,3,3,name;"
        "table,users_ui,7,5;table,final_ui,4,4"
    )
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("cards") == [expected])
    names = [part.split(",")[0] for part in expected.split(";")]
    for step in ("reload", "back"):
        if step == "reload":
            page.reload()
        else:
            page.get_by_label("Open users_ui alone").click()
            page.get_by_label("Back to the board").wait_for()
            page.go_back()
        expect(page.locator("app-live-table")).to_have_count(2)
        expect(page.get_by_text("not saved")).to_be_visible()
        assert [card.split()[0] for card in cards(page)] == names
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".card")).to_have_count(6)


def test_b43_boards_are_kept_as_tabs_and_shared_by_admins(
    page: Page, context: BrowserContext, running: Running, browser: Browser
) -> None:
    log_in(page, running, "/?cards=number,users_ui,3,1")
    expect(page.locator(".card")).to_have_count(1)
    save_as(page, "Wall")
    assert parse_qs(urlsplit(page.url).query) == {"board": ["Wall"]}
    expect(page.get_by_text("not saved")).to_have_count(0)
    tabs(page).filter(has_text="Overview").click()
    expect(page.locator(".card")).to_have_count(6)
    page.go_back()
    expect(page.locator(".card")).to_have_count(1)

    elsewhere = browser.new_context()
    viewer = elsewhere.new_page()
    viewer.set_default_timeout(20_000)
    log_in(viewer, running, key=WALL)
    expect(viewer.locator(".card")).to_have_count(6)
    expect(tabs(viewer)).to_have_count(1)
    page.get_by_role("button", name="Boards", exact=True).click()
    page.get_by_role("button", name="Share Wall").click()
    expect(page.get_by_text("“Wall” is there for everybody now.")).to_be_visible()
    page.get_by_role("button", name="Begin with Wall").click()
    expect(page.get_by_role("button", name="Begin with Wall")).to_have_attribute("aria-pressed", "true")
    viewer.goto(f"http://127.0.0.1:{running.port}/")
    expect(viewer.locator(".card")).to_have_count(1)
    viewer.get_by_role("button", name="Boards", exact=True).click()
    expect(viewer.get_by_role("button", name="Share Wall")).to_have_count(0)
    expect(viewer.get_by_role("button", name="Delete Wall")).to_have_count(0)
    elsewhere.close()

    page.get_by_role("button", name="Delete Wall").click()
    expect(tabs(page)).to_have_count(1)
    expect(page.locator(".card")).to_have_count(6)


def test_b43_a_view_is_kept_under_a_name_and_a_table_can_begin_with_it(page: Page, running: Running) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    grid.get_by_label("Search all rows of users_ui").fill("User 99")
    expect(grid.locator(".range")).to_contain_text("of 11")
    page.wait_for_url(re.compile(r"view\.users_ui="))
    grid.get_by_role("button", name="Views").click()
    page.get_by_label("Name of the view").fill("Nineties")
    page.get_by_label("Name of the view").press("Enter")
    expect(page.get_by_text("Saved as “Nineties”.")).to_be_visible()
    page.get_by_role("button", name="Begin with Nineties").click()
    expect(page.get_by_role("button", name="Begin with Nineties")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Plain").click()
    expect(grid.locator(".range")).not_to_contain_text("of 11")
    page.goto(f"http://127.0.0.1:{running.port}/table/users_ui")
    expect(grid.locator(".range")).to_contain_text("of 11")
    expect(grid.get_by_label("Search all rows of users_ui")).to_have_value("User 99")
    grid.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Delete Nineties").click()
    expect(page.get_by_text("“Nineties” is deleted.")).to_be_visible()


def test_a_chart_stays_on_the_board(page: Page, running: Running) -> None:
    log_in(page, running, "/table/final_ui")
    grid = table(page, "final_ui")
    grid.get_by_role("button", name="Chart").click()
    page.get_by_role("button", name="Keep on the board: Distribution of age").click()
    card = page.get_by_role("region", name="Distribution of age, final_ui")
    expect(card.get_by_role("img", name="Distribution of age")).to_be_visible()
    page.wait_for_url(lambda url: "add" not in parse_qs(urlsplit(url).query))
    assert len(cards(page)) == 7


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_nothing_serious_keeps_people_from_the_cards(
    browser: Browser, running: Running, scheme: str, width: int
) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
    page.set_default_timeout(20_000)
    found = {}
    log_in(
        page, running, "/?cards=number,users_ui,3,1;top,users_ui,3,3,name;line,final_ui,6,3,balance;table,users_ui,6,4"
    )
    expect(page.get_by_role("img", name="balance over time")).to_be_visible()
    found["board"] = problems(page)
    for button in ("Boards", "Card users_ui", "Views"):
        page.get_by_role("button", name=button, exact=True).click()
        found[button] = problems(page)
        page.keyboard.press("Escape")
    page.get_by_role("button", name="Add card").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    found["editor"] = problems(page)
    overflow = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.close()
    assert {place: each for place, each in found.items() if each} == {}
    assert overflow[0] <= overflow[1], "the page must not be wider than the screen"
