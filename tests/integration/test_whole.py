"""The whole: events into Kafka, Spark, the server, and what a viewer has on the other side, against the oracle."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
import rows as queries
from live import Client, Running, serving
from oracle import Table
from swapping import Swapping, swapping, wiring

from liveboard.contract.board import Wiring
from liveboard.contract.schema import Column

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

TABLES = ("users_ui", "accounts_ui", "final_ui", "user_account", "rejects_ui")
MOST = 10_000


def test_viewers_see_what_the_topics_hold_and_swaps_break_nothing(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path) as board:
        board.start()
        first = board.wait_until_live(wiring(0))
        with serving(board.bootstrap) as server:
            server.bound(first)
            with server.client() as client:
                for id, table in enumerate(TABLES):
                    assert client.subscribe(id, table, size=MOST)["generation"] == first
                with board.load(0, 40):
                    client.until(lambda: client.totals[TABLES.index("final_ui")] > 200)
                expected = _expected(board, wiring(0), first)
                for id, table in enumerate(TABLES[:-1]):
                    client.until(lambda id=id, table=table: _shown(client, id) == expected[table])  # type: ignore[misc]
                _expect_queries(client, board, first, expected)

            watching = threading.Thread(target=board.ask, args=(wiring(1, "asof"),))
            with server.client() as viewer, board.load(0, 40), board.load(1, 40):
                viewer.subscribe(1, "final_ui", size=MOST)
                viewer.subscribe(2, "final_ui", size=50, sort=[["balance", "desc"]], search="OF")
                watching.start()
                _watch_the_swap(viewer)
                watching.join()
            second = board.wait_until_live(wiring(1, "asof"))
            _expect_the_whole_table(server, board, wiring(1, "asof"), second)
        board.pipeline.stop()


def _expected(board: Swapping, of: Wiring, generation: str) -> dict[str, Table]:
    with closing(board.bench(of, generation)) as bench:
        return bench.expected()


def _shown(client: Client, id: int) -> Table:
    return {key: tuple(row) for key, row in client.rows[id]}


def _expect_queries(client: Client, board: Swapping, generation: str, expected: dict[str, Table]) -> None:
    """Windows of random sorts, filters and searches over what Spark has made."""
    random, columns = Random(5), board.status().generations[generation].tables
    for id in range(100, 160):
        table = random.choice(["users_ui", "final_ui", "user_account"])
        natural = [(key, tuple(row)) for key, row in client.rows[TABLES.index(table)]]
        asked = _random_query(random, columns[table])
        window = {"offset": random.choice([0, 7, 400]), "size": random.choice([1, 50, 300])}
        client.subscribe(id, table, **asked, **window)
        whole = queries.queried(natural, columns[table], **asked)
        shown = [(key, tuple(row)) for key, row in client.rows[id]]
        assert shown == whole[window["offset"] : window["offset"] + window["size"]], (asked, window)
        assert client.totals[id] == len(whole)
        client.send(op="unsubscribe", id=id)


def _random_query(random: Random, columns: tuple[Column, ...]) -> dict[str, Any]:
    names = [column.name for column in columns]
    filters: list[list[Any]] = [
        ["age", ">=", random.randrange(99)],
        ["balance", "between", [0.2, random.random()]],
        ["userId", "starts with", f"U{random.randrange(20)}"],
        ["accountType", "is null"],
        ["email", "in", ["1", "5", "nothing"]],
        ["name", "!=", "of 9"],
    ]
    return {
        "sort": [[name, random.choice(["asc", "desc"])] for name in random.sample(names, random.randrange(3))],
        "filter": random.sample([term for term in filters if term[0] in names], random.randrange(3)),
        "search": random.choice(["", "u1", "OF 0", "7"]),
    }


def _watch_the_swap(viewer: Client) -> None:
    """Frame by frame: never an error, never nothing, never rows of two wirings, never back."""
    seen: dict[int, list[set[str]]] = {1: [], 2: []}
    while not all(texts and texts[-1] == {"of 1"} for texts in seen.values()):
        frame = viewer.receive()
        assert frame["ev"] != "error", frame
        if frame["ev"] in ("snapshot", "delta"):
            rows = [row for _, row in viewer.rows[frame["id"]]]
            seen[frame["id"]].append({text for row in rows for text in (row[1], row[4]) if text is not None})
    for texts in seen.values():
        assert [text for at, text in enumerate(texts) if not at or texts[at - 1] != text] == [{"of 0"}, {"of 1"}]


def _expect_the_whole_table(server: Running, board: Swapping, of: Wiring, generation: str) -> None:
    with server.client() as client:
        client.subscribe(1, "final_ui", size=MOST)
        assert client.generations[1] == generation
        expected = _expected(board, of, generation)["final_ui"]
        assert 0 < len(expected) <= MOST
        client.until(lambda: _shown(client, 1) == expected)
        client.subscribe(2, "orchestrator_status")
        topics = ["users1", "accounts1", "asof"]
        assert client.rows[2][0][1][:3] == topics
