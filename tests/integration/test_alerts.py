"""Alerts over a real broker: each crossing is told once, whatever is killed, and receivers get all of it."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from alerting import BOARD, Told, evaluating, forget
from live import NAMES, Board, get, serving, wait

from liveboard.alerts.memory import create_topics
from liveboard.alerts.receivers import signature
from liveboard.contract.status import AlertFigures
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import ChangelogReader

ROWS = 10_000
LIMIT = 18


def _rows(ages: dict[str, int]) -> dict[str, list[Any]]:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {key: [f"u{key}", age, now] for key, age in ages.items()}


class Oracle:
    """What must be told of each row, by the ages that were written."""

    def __init__(self) -> None:
        self.states: dict[str, list[str]] = {}
        self._minor: set[str] = set()

    def take(self, ages: dict[str, int]) -> None:
        for key, age in ages.items():
            if (age < LIMIT) != (key in self._minor):
                self.states.setdefault(key, []).append("raised" if age < LIMIT else "cleared")
                self._minor ^= {key}

    @property
    def minor(self) -> set[str]:
        return set(self._minor)

    @property
    def count(self) -> int:
        return sum(map(len, self.states.values()))


def _table(bootstrap: str) -> dict[str, list[Any]]:
    """The table alerts_ui, by row."""
    end = Admin({"bootstrap.servers": bootstrap}).offsets({NAMES.raised: 1}, "latest")[NAMES.raised]["0"]
    rows: dict[str, list[Any]] = {}
    with ChangelogReader({"bootstrap.servers": bootstrap}, [NAMES.raised]) as reader:
        at = 0
        while at < end:
            for change in reader.read():
                at = change.offset + 1
                if change.value is None:
                    rows.pop(change.key.decode(), None)
                else:
                    rows[change.key.decode()] = json.loads(change.value)
    return rows


def test_b42_each_crossing_is_told_once_whatever_is_killed(kafka: str, tmp_path: Path) -> None:
    forget(kafka)
    board, oracle, chance = Board(kafka), Oracle(), random.Random(42)
    generation = board.build()
    board.switch(generation)
    told = Told(kafka)
    with evaluating(kafka, tmp_path) as process:
        for wave in range(5):
            ages = {f"0-{n}": chance.choice((10, 17, 18, 40)) for n in range(ROWS)}
            keys, before = list(ages), oracle.count
            oracle.take(ages)
            for at in range(0, ROWS, ROWS // 4):
                board.write(generation, _rows({key: ages[key] for key in keys[at : at + ROWS // 4]}))
                if wave:
                    # While it writes: some of this wave is told already, some is not.
                    told.until_more_than(before + at // 8)
                    process.kill()
                    process.start()
            told.until(lambda records: len(records) >= oracle.count)
            assert told.states() == oracle.states
        # To and fro and away, without a break: once it has told something new, it lets nothing pass.
        oracle.take({"0-new": 10})
        board.write(generation, _rows({"0-new": 10}))
        told.until(lambda records: len(records) >= oracle.count)
        for age in (40, 10, 40, 10):
            ages = {f"0-{n}": age for n in range(1_000)}
            oracle.take(ages)
            board.write(generation, _rows(ages))
        board.write(generation, dict.fromkeys(f"0-{n}" for n in range(100)))
        oracle.take({f"0-{n}": 99 for n in range(100)})
        told.until(lambda records: len(records) >= oracle.count)
        assert told.states() == oracle.states
        removed = [record for record in told.records if record["row"] is None]
        assert {record["key"] for record in removed} == {f"0-{n}" for n in range(100)}
        wait(lambda: {row[2] for row in _table(kafka).values()} == oracle.minor)
    told.close()


def test_b42_a_swap_tells_the_differences_only(kafka: str, tmp_path: Path) -> None:
    forget(kafka)
    board, told = Board(kafka), Told(kafka)
    first = board.build()
    board.write(first, _rows({"0-1": 10, "0-2": 10, "0-3": 40}))
    board.switch(first)
    with evaluating(kafka, tmp_path):
        told.until(lambda records: len(records) == 2)
        second = board.build()
        board.write(second, _rows({"0-1": 11, "0-2": 40, "0-3": 12, "0-4": 50}))
        board.switch(second)
        told.until(lambda records: len(records) == 4)
        # A row of the old generation means nothing any more.
        board.write(first, _rows({"0-4": 10}))
        row = _rows({"0-5": 10})
        board.write(second, row)
        told.until(lambda records: len(records) == 5)
        assert told.states() == {
            "0-1": ["raised"],
            "0-2": ["raised", "cleared"],
            "0-3": ["raised"],
            "0-5": ["raised"],
        }
        assert told.records[-1] | {"ts": ""} == {
            "alert": "minor",
            "table": "users_ui",
            "key": "0-5",
            "state": "raised",
            "ts": "",
            "row": dict(zip(("userId", "age", "ts"), row["0-5"], strict=True)),
        }
    told.close()


class Hook:
    """An address that refuses a few times before it takes what is sent."""

    def __init__(self, refusals: int) -> None:
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.refused = 0
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if hook.refused < refusals:
                    hook.refused += 1
                    self.send_error(503)
                    return
                hook.taken.append((dict(self.headers), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?token=secret"


@contextmanager
def _hook(refusals: int) -> Iterator[Hook]:
    hook = Hook(refusals)
    thread = threading.Thread(target=hook.server.serve_forever, daemon=True)
    thread.start()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


def test_b42_receivers_get_everything_in_order_and_signed(kafka: str, tmp_path: Path) -> None:
    forget(kafka)
    board, told, other = Board(kafka), Told(kafka), Told(kafka, "pager")
    Admin({"bootstrap.servers": kafka}).create(["pager"])
    generation = board.build()
    board.switch(generation)
    with _hook(refusals=2) as hook:
        to = json.dumps(["topic:pager", f"topic:{NAMES.alerts}", hook.url])
        toml = f'{BOARD}notify = {to}\nsecret = "of the hook"\n'
        with evaluating(kafka, tmp_path, toml) as process:
            for count, age in ((2, 10), (4, 40), (6, 11)):
                board.write(generation, _rows({"0-1": age, "0-2": age}))
                told.until_more_than(count - 1)
            wait(lambda: len(hook.taken) == 6)
            other.until(lambda records: len(records) == 6)
            process.kill()
            process.start()
            board.write(generation, _rows({"0-2": 41}))
            told.until(lambda records: len(records) == 7)
            other.until(lambda records: records and records[-1] == told.records[-1])
            wait(lambda: json.loads(hook.taken[-1][1]) == told.records[-1])
        # What was taken just before the kill may come twice; nothing is missing, and nothing out of order.
        assert hook.refused == 2
        assert list(dict.fromkeys(body for _, body in hook.taken)) == [
            json.dumps(record, separators=(",", ":")).encode() for record in told.records
        ]
        assert len({headers["Liveboard-Delivery"] for headers, _ in hook.taken}) == 7
        for headers, body in hook.taken:
            assert headers["Liveboard-Signature"] == signature(b"of the hook", body)
    told.close()
    other.close()


def test_b42_the_servers_show_what_is_raised(kafka: str, tmp_path: Path) -> None:
    forget(kafka)
    board = Board(kafka)
    generation = board.build()
    board.write(generation, _rows({"0-1": 10, "0-2": 40}))
    board.switch(generation)
    create_topics(Admin({"bootstrap.servers": kafka}), NAMES)
    board.announce(alerts={"minor": AlertFigures(raised=1, raises=3, clears=2, failures=4, problem="no answer")})
    with evaluating(kafka, tmp_path), serving(kafka) as running, running.client() as client:
        wait(lambda: "alerts_ui" in {table["name"] for table in get(running, "/api/tables")[1]["tables"]})
        client.subscribe(1, "alerts_ui")
        client.until(lambda: len(client.rows[1]) == 1)
        key, row = client.rows[1][0]
        assert key == '="minor","0-1"'
        assert row[:4] == ["minor", "users_ui", "0-1", "raised"]
        board.write(generation, _rows({"0-1": 40}))
        client.until(lambda: client.rows[1] == [])
        figures = get(running, "/metrics", None)[1]
        for line in (
            'liveboard_alerts{alert="minor"} 1.0',
            'liveboard_alerts_raised_total{alert="minor"} 3.0',
            'liveboard_alerts_cleared_total{alert="minor"} 2.0',
            'liveboard_alert_delivery_failures_total{alert="minor"} 4.0',
        ):
            assert line in figures
        assert get(running, "/api/tables/orchestrator_status")[1]["rows"][0][5] == "no answer"
        board.announce(alerts={})
        wait(lambda: "alerts_ui" not in {table["name"] for table in get(running, "/api/tables")[1]["tables"]})
