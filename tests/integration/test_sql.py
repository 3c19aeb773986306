"""SQL over live tables: views, answers and live statements, over a real broker, a real server and its processes."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import duckdb
import pyarrow as pa
import pytest
from live import KEY, Board, Running, at, get, serving, wait

import liveboard
from liveboard.commands import cli
from liveboard.config import Secret
from liveboard.config.settings import KeySettings
from liveboard.contract.board import View
from liveboard.contract.errors import LiveboardError
from liveboard.contract.schema import TS, Column
from liveboard.serving.limits import Limits

pytestmark = pytest.mark.integration

VIEWER = "a viewer's own key"
ACCOUNTS = (Column("userId", "string"), Column("kind", "string"), Column("balance", "double"), TS)
PEOPLE = (Column("userId", "string"), Column("born", "date"), Column("points", "decimal(10,2)"), TS)
TABLES = {"accounts_ui": ACCOUNTS, "people_ui": PEOPLE}
BY_KIND = "SELECT kind, count(*) AS n, sum(balance) AS total FROM accounts_ui GROUP BY kind ORDER BY kind"
JOINED = """
    SELECT p.userId, p.born, p.points, count(a.kind) AS accounts, max(a.ts) AS newest
    FROM people_ui p LEFT JOIN accounts_ui a USING (userId) GROUP BY ALL ORDER BY points DESC, p.userId
"""
VIEWS = (
    View(name="by_kind", sql=BY_KIND),
    View(name="joined", sql=JOINED),
    View(name="rich", sql="SELECT userId, balance FROM accounts_ui WHERE balance > 50", key=("userId",)),
    View(name="of_a_view", sql="SELECT sum(n)::BIGINT AS n FROM by_kind"),
)


def account(number: int, kind: str | None = "gold", balance: float = 0.0) -> dict[str, list[Any]]:
    return {f"0-{number}": [f"u{number % 7}", kind, balance or number * 1.25, at(number)]}


def person(number: int) -> dict[str, list[Any]]:
    return {f"0-{number}": [f"u{number}", f"200{number}-01-31", f"{number}.50", at(number)]}


def build(board: Board, accounts: int = 100) -> str:
    """A live generation of people and accounts."""
    generation = board.build(TABLES)
    for number in range(5):
        board.write(generation, person(number), "people_ui")
    rows: dict[str, Any] = {}
    for number in range(accounts):
        rows |= account(number, ("gold", "silver", None)[number % 3])
    board.write(generation, rows, "accounts_ui")
    board.switch(generation)
    return generation


@pytest.fixture(scope="module")
def running(kafka: str) -> Iterator[Running]:
    keys = {
        name: KeySettings(name=name, role="viewer", key=Secret(key), tables=tables)
        for name, key, tables in (("some", VIEWER, ("people_ui", "by_kind")),)
    }
    limits = Limits(sql_seconds=2, sql_memory_mb=128, sql_rows=1_000)
    with serving(kafka, views=VIEWS, keys=keys, limits=limits) as running:
        yield running


@pytest.fixture
def board(running: Running, kafka: str) -> Board:
    board = Board(kafka)
    generation = build(board)
    running.bound(generation)
    wait(lambda: shown(running, "of_a_view") == [[100]])
    return board


def ask(running: Running, sql: str, key: str = KEY) -> tuple[int, Any]:
    return get(running, "/api/query", key, json.dumps({"sql": sql}).encode())


def shown(running: Running, view: str) -> list[list[Any]] | None:
    status, window = get(running, f"/api/tables/{view}?size=10000")
    return window["rows"] if status == 200 else None


def exported(running: Running, table: str, **asked: str) -> pa.Table:
    url = f"http://127.0.0.1:{running.port}/api/tables/{table}/export?{urlencode({'format': 'arrow', **asked})}"
    with urlopen(Request(url, headers={"Authorization": f"Bearer {KEY}"})) as answer:
        return pa.ipc.open_file(io.BytesIO(answer.read())).read_all()


def over_exports(running: Running, sql: str) -> list[dict[str, Any]]:
    """The same statement, over the exported rows, by a DuckDB of the test's own."""
    database = duckdb.connect(":memory:", config={"threads": "1"})
    database.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        database.register(table, exported(running, table))
    found: list[dict[str, Any]] = database.sql(sql).to_arrow_table().to_pylist()
    database.close()
    return found


def test_b40_a_view_is_the_same_statement_over_the_exported_rows(board: Board, running: Running) -> None:
    chance = random.Random(40)
    for _ in range(5):
        rows: dict[str, Any] = {}
        for _ in range(30):
            number = chance.randrange(150)
            rows |= account(number, chance.choice(["gold", "silver", "basic", None]), chance.random() * 100)
            if chance.random() < 0.2:
                rows[f"0-{number}"] = None
        board.write(str(board.live), rows, "accounts_ui")
    for view in VIEWS[:3]:
        wait(lambda view=view: exported(running, view.name).to_pylist() == over_exports(running, view.sql))  # type: ignore[misc]


def test_b40_a_view_is_a_table_like_others(board: Board, running: Running) -> None:
    info = {table["name"]: table for table in get(running, "/api/tables")[1]["tables"]}["by_kind"]
    assert [column["type"] for column in info["columns"]] == ["string", "int64", "float64"]
    rows = shown(running, "by_kind") or []
    assert [row[0] for row in rows] == ["gold", "silver", None]
    parameters = urlencode({"sort": '[["total","asc"]]', "filter": '[["kind","is not null"]]', "search": "g"})
    assert get(running, f"/api/tables/by_kind?{parameters}")[1]["rows"] == [rows[0]]
    # It has the order of its statement, also for those who want the newest rows first.
    assert get(running, "/api/tables/by_kind?order=newest")[1]["rows"] == rows
    assert get(running, "/api/tables/by_kind/chart?column=n")[1]["distribution"]["sum"] == 100
    assert exported(running, "by_kind", search="silver").num_rows == 1
    key = urlencode({"key": '="gold"'})
    assert get(running, f"/api/tables/by_kind/row?{key}")[1]["row"] == rows[0]


def test_b40_rows_keep_their_keys_and_change_in_place(board: Board, running: Running) -> None:
    with running.client() as client:
        client.subscribe(1, "by_kind")
        assert [key for key, _ in client.rows[1]] == ['="gold"', '="silver"', "=null"]
        board.write(str(board.live), account(1, "silver", 1_000.0), "accounts_ui")
        delta = client.receive_ev("delta")
        assert [(index, key) for index, key, _ in delta["rows"]] == [(1, '="silver"')]
        board.write(str(board.live), account(200, "basic", 1.0), "accounts_ui")
        client.until(lambda: [key for key, _ in client.rows[1]] == ['="basic"', '="gold"', '="silver"', "=null"])
        client.subscribe(2, "rich")
        assert all(key.startswith('="u') for key, _ in client.rows[2])


def test_b40_a_view_follows_a_swap_without_an_empty_moment(board: Board, running: Running) -> None:
    with running.client() as client:
        client.subscribe(1, "by_kind")
        build(board, accounts=9)
        client.until(lambda: sum(row[1] for _, row in client.rows[1]) == 9)
        totals = [frame["total"] for frame in client.frames if frame["ev"] in ("snapshot", "delta")]
        assert 0 not in totals
        assert "error" not in {frame["ev"] for frame in client.frames}


def test_b41_an_answer_over_http(board: Board, running: Running) -> None:
    status, answer = ask(running, "SELECT kind, count(*) AS n FROM accounts_ui WHERE kind = 'gold' GROUP BY 1;")
    columns = [{"name": "kind", "type": "string"}, {"name": "n", "type": "int64"}]
    assert (status, answer) == (200, {"columns": columns, "rows": [["gold", 34]]})
    board.write(str(board.live), account(500), "accounts_ui")
    wait(lambda: ask(running, "SELECT count(*) FROM accounts_ui")[1]["rows"] == [[101]])
    assert ask(running, "SELECT max(points) FROM people_ui")[1]["rows"] == [["4.50"]]
    wait(lambda: ask(running, "SELECT n FROM of_a_view")[1]["rows"] == [[101]])
    assert ask(running, "DELETE FROM accounts_ui") == (
        400,
        {"error": {"code": "bad_sql", "message": "expected one SELECT statement, found: another kind of statement"}},
    )
    assert get(running, "/api/query", KEY, b"{}")[0] == 400
    assert get(running, "/api/query", None, b'{"sql": "SELECT 1"}')[0] == 401


def test_b41_a_key_asks_over_what_it_sees(board: Board, running: Running) -> None:
    assert ask(running, "SELECT count(*) FROM people_ui", VIEWER)[1]["rows"] == [[5]]
    # Whoever configures a view means those to see it whose keys name it.
    assert ask(running, "SELECT kind FROM by_kind", VIEWER)[0] == 200
    for table in ("accounts_ui", "joined", "orchestrator_status", "nowhere"):
        status, answer = ask(running, f"SELECT * FROM {table}", VIEWER)
        expected = f'expected a table (people_ui, by_kind), found "{table}"'
        assert (status, answer["error"]) == (404, {"code": "unknown_table", "message": expected})
        assert get(running, f"/api/tables/{table}", VIEWER)[0] == 404


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
        "SELECT list(a.userId) FROM accounts_ui a, accounts_ui b, accounts_ui c, accounts_ui d",
        # It does not listen while it works, so its process is ended.
        "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))",
    ],
)
def test_b41_a_heavy_statement_ends_and_slows_nobody(board: Board, running: Running, sql: str) -> None:
    with running.client() as client:
        client.subscribe(1, "by_kind")
        client.subscribe(2, "people_ui")
        status, answer = ask(running, sql)
        assert (status, answer["error"]["code"]) == (400, "over_limit")
        board.write(str(board.live), {**account(1, "silver", 5_000.0)}, "accounts_ui")
        client.until(lambda: client.rows[1][1][1][2] > 5_000)
        assert ask(running, "SELECT count(*) FROM accounts_ui")[1]["rows"] == [[100]]


def test_b40_a_statement_is_live_for_all_who_ask_it(board: Board, running: Running) -> None:
    sql = "SELECT kind, count(*) AS n FROM accounts_ui GROUP BY kind ORDER BY n DESC, kind"
    with running.client() as one, running.client() as other, running.client(psk=VIEWER) as viewer:
        for client in (one, other):
            client.send(op="subscribe", id=1, sql=sql)
            client.until(lambda client=client: client.rows.get(1))  # type: ignore[misc]
        assert len(running.server.sql._asked) == 1
        board.write(str(board.live), account(1, "gold", 1.0), "accounts_ui")
        for client in (one, other):
            client.until(lambda client=client: client.rows[1][0][1] == ["gold", 35])  # type: ignore[misc]
        one.send(op="window", id=1, size=1)
        one.until(lambda: len(one.rows[1]) == 1)
        viewer.send(op="subscribe", id=1, sql=sql)
        assert viewer.receive_ev("error")["code"] == "unknown_table"
        viewer.send(op="subscribe", id=2, sql="SELECT now()")
        assert viewer.receive_ev("error")["code"] == "bad_sql"
        # It follows a swap like a view.
        build(board, accounts=3)
        other.until(lambda: [row for _, row in other.rows[1]] == [["gold", 1], ["silver", 1], [None, 1]])
        other.send(op="unsubscribe", id=1)
    wait(lambda: not running.server.sql._asked)


def test_b40_the_client_asks_and_watches(board: Board, running: Running) -> None:
    url = f"http://127.0.0.1:{running.port}"
    with liveboard.connect(url, KEY) as client:
        result = client.query("SELECT userId, born, points, ts, [1] AS list FROM people_ui ORDER BY 1 LIMIT 1")
        assert result.to_arrow().to_pylist() == result.records()
        assert (len(result), result.to_pandas().shape, result.to_polars().shape) == (1, (1, 5), (1, 5))
        with pytest.raises(LiveboardError, match="expected one SELECT statement"):
            client.query("DROP TABLE people_ui")
        updates = client.query_updates("SELECT count(*) AS n FROM accounts_ui")
        assert next(updates).records() == [{"n": 100}]
        board.write(str(board.live), account(900), "accounts_ui")
        assert next(updates).records() == [{"n": 101}]
        updates.dispose()

    async def awaited() -> int:
        async with await liveboard.connect_async(url, KEY) as client:
            return len(await client.query("FROM people_ui"))

    assert asyncio.run(awaited()) == 5


def test_the_command_prints_an_answer(board: Board, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--url", f"http://127.0.0.1:{running.port}", "--key", KEY]
    sql = "SELECT kind, n FROM by_kind WHERE kind = 'gold'"
    assert cli.main(["query", sql, *arguments]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if "gold" in line] == [
        ["│", "gold", "│", "34", "│"]
    ]
    assert cli.main(["query", sql, "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == {"kind": "gold", "n": 34}
    assert cli.main(["query", "SELECT nothing FROM by_kind", *arguments]) == 1
    assert 'column "nothing" not found' in capsys.readouterr().err


def test_b40_an_admin_defines_a_view_on_every_replica(
    board: Board, running: Running, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    people = "SELECT count(*) AS n, max(points) AS most FROM people_ui"
    arguments = ["--url", f"http://127.0.0.1:{running.port}", "--key", KEY]
    assert cli.main(["view", "crowd", people, *arguments]) == 0
    wait(lambda: shown(running, "crowd") == [[5, "4.50"]])
    # Who sees what it reads sees the view, and may not change it.
    assert ask(running, "SELECT n FROM crowd", VIEWER)[1]["rows"] == [[5]]
    with liveboard.connect(f"http://127.0.0.1:{running.port}", VIEWER) as viewer:
        with pytest.raises(LiveboardError, match="expected a key with the role admin"):
            viewer.define_view("mine", people)
        with pytest.raises(LiveboardError, match="expected a key with the role admin"):
            viewer.remove_view("crowd")
    with serving(kafka, views=VIEWS) as other, liveboard.connect(f"http://127.0.0.1:{other.port}", KEY) as client:
        wait(lambda: shown(other, "crowd") == [[5, "4.50"]])
        with pytest.raises(LiveboardError, match="expected a name that no other table has"):
            client.define_view("by_kind", people)
        with pytest.raises(LiveboardError, match="column"):
            client.define_view("crowd", "SELECT nothing FROM people_ui")
        # Redefined on one server it is another one on both, for keys that show what it reads now.
        client.define_view("crowd", "SELECT userId, balance FROM accounts_ui WHERE balance > 120", ["userId"])
        wait(lambda: (shown(running, "crowd") or [[]])[0] == ["u6", 121.25])
        assert ask(running, "SELECT * FROM crowd", VIEWER)[0] == 404
        kept = [each for each in get(running, "/api/views")[1]["views"] if each["kind"] == "sql"]
        assert [(each["name"], each["shared"], each["state"]["key"]) for each in kept] == [("crowd", True, ["userId"])]
        with running.client() as watching:
            watching.subscribe(1, "crowd")
            board.write(str(board.live), account(500, balance=1_000.0), "accounts_ui")
            watching.until(lambda: len(watching.rows[1]) == 4)
            assert cli.main(["view", "crowd", "--remove", *arguments]) == 0
            assert watching.receive_ev("error")["code"] == "unknown_table"
        wait(lambda: shown(other, "crowd") is None)
    assert cli.main(["view", "crowd", *arguments]) == 1
    assert "expected either a SELECT statement or --remove" in capsys.readouterr().err
