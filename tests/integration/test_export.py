"""Whole tables as files, over a real broker and a real server, compared with plain Python over the rows."""

from __future__ import annotations

import base64
import csv
import http.client
import io
import json
import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rows as oracle
from live import KEY, Board, Running, at, serving, wait

from liveboard.commands import cli
from liveboard.contract.schema import TS, Column
from liveboard.serving import export

pytestmark = pytest.mark.integration

COLUMNS = (
    Column("name", "string"),
    Column("vip", "boolean"),
    Column("age", "int"),
    Column("points", "bigint"),
    Column("balance", "double"),
    Column("born", "date"),
    Column('with "quotes", and a comma', "string"),
    Column("price", "decimal(12,3)"),
    Column("document", "json"),
    Column("photo", "binary"),
    TS,
)
TYPES = [
    pa.string(),
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float64(),
    pa.date32(),
    pa.string(),
    pa.decimal128(12, 3),
    pa.string(),
    pa.binary(),
    pa.timestamp("us", tz="UTC"),
]
SHOWN_COLUMNS = (
    "name string, vip bool, age int32, points int64, balance float64, born date, "
    'with "quotes", and a comma string, price decimal, document json, photo binary, ts timestamp'
)
TEXTS = ("", "ada", "Grüße", 'a "word"', "a,b", "two\r\nlines", "=1+1", " ", "null", None)
QUERIES: list[dict[str, Any]] = [
    {},
    {"sort": [["balance", "desc"], ["name", "asc"]]},
    {"filter": [["points", ">", 5], ["vip", "=", True]]},
    {"search": "GRÜ", "sort": [["born", "asc"]]},
    {"filter": [["name", "=", "nobody"]]},
    {"filter": [["price", "<=", 10]], "sort": [["price", "desc"]], "search": '"ADA"'},
]
COUNTING = (Column("number", "bigint"), Column("text", "string"), TS)


def a_row(number: int, chance: random.Random) -> list[Any]:
    """A row as the changelog has it; long integers are texts there."""
    big = chance.choice([None, number, str(2**53 + 1 + number), str(-(2**63))])
    balance = chance.choice([None, number / 3, float(number), -0.0, 1e300])
    born = chance.choice([None, "1815-12-10", "2026-01-31"])
    texts = chance.choice(TEXTS), chance.choice(TEXTS)
    price = chance.choice([None, "0.000", "-9.500", "10.000", "100.125", "999999999.999"])
    document = chance.choice([None, '{"name":"ada"}', "[1]"])
    new = price, document, chance.choice([None, "", "AAEC"])
    return [texts[0], chance.choice([None, True, False]), number % 90, big, balance, born, texts[1], *new, at(number)]


def an_exact_row(row: list[Any]) -> tuple[Any, ...]:
    """With long integers as integers."""
    return tuple(int(v) if v is not None and c.type == "bigint" else v for v, c in zip(row, COLUMNS, strict=True))


_chance = random.Random(7)
WRITTEN = {f"0-{number}": a_row(number, _chance) for number in range(2_345)}
# Removed again, which leaves holes in the table.
REMOVED = list(WRITTEN)[::10]
PEOPLE = {key: row for key, row in WRITTEN.items() if key not in REMOVED}


@pytest.fixture(scope="module")
def board(kafka: str) -> Board:
    board = Board(kafka)
    generation = board.build({"people_ui": COLUMNS, "empty_ui": COLUMNS, "counting_ui": COUNTING})
    board.write(generation, WRITTEN, "people_ui")
    board.write(generation, dict.fromkeys(REMOVED), "people_ui")
    board.switch(generation)
    return board


@pytest.fixture(scope="module")
def running(board: Board) -> Iterator[Running]:
    with serving(board.bootstrap) as running:
        running.bound(str(board.live))
        yield running


def fetch(running: Running, path: str, key: str = KEY, **parameters: Any) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer and its whole body."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.request(
        "GET", f"/api/tables/{path}/export?{urlencode(texts)}", headers={"Authorization": f"Bearer {key}"}
    )
    answer = connection.getresponse()
    try:
        return answer, answer.read()
    finally:
        connection.close()


def expected(**query: Any) -> list[tuple[Any, ...]]:
    people = [(key, an_exact_row(row)) for key, row in PEOPLE.items()]
    return [row for _, row in oracle.queried(people, COLUMNS, **query)]


def typed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """With dates and times as Python has them."""
    read = {
        "date": date.fromisoformat,
        "timestamp": datetime.fromisoformat,
        "decimal(12,3)": Decimal,
        "binary": base64.b64decode,
    }
    convert: list[Any] = [read.get(column.type, lambda value: value) for column in COLUMNS]
    return tuple(None if value is None else turn(value) for turn, value in zip(convert, row, strict=True))


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_csv(running: Running, query: dict[str, Any]) -> None:
    answer, body = fetch(running, "people_ui", format="csv", **query)
    assert answer.getheader("Content-Disposition") == 'attachment; filename="people_ui.csv"'
    assert answer.getheader("Content-Type") == "text/csv; charset=utf-8"
    lines = list(csv.reader(io.StringIO(body.decode(), newline=""), strict=True))
    assert lines[0] == [column.name for column in COLUMNS]

    def text(value: Any) -> str:
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    assert lines[1:] == [list(map(text, row)) for row in expected(**query)]


def test_csv_tells_null_from_an_empty_text_and_ends_lines_as_rfc_4180_has_it(running: Running) -> None:
    _, body = fetch(running, "people_ui", format="csv")
    fields = [line.split(b",", 1)[0] for line in body.split(b"\r\n")[1:]]
    names = [row[0] for row in expected()]
    assert fields.count(b'""') == names.count("")
    assert body.endswith(b"Z\r\n")


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_json(running: Running, query: dict[str, Any]) -> None:
    answer, body = fetch(running, "people_ui", format="json", **query)
    assert answer.getheader("Content-Disposition") == 'attachment; filename="people_ui.json"'
    assert answer.getheader("Content-Type") == "application/json"
    names = [column.name for column in COLUMNS]
    found = [(list(record), an_exact_row(list(record.values()))) for record in json.loads(body)]
    assert found == [(names, row) for row in expected(**query)]


@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_arrow_and_parquet_have_the_right_types(running: Running, format: str, query: dict[str, Any]) -> None:
    answer, body = fetch(running, "people_ui", format=format, **query)
    assert answer.getheader("Content-Disposition") == f'attachment; filename="people_ui.{format}"'
    assert str(answer.getheader("Content-Type")).startswith("application/vnd.apache.")
    found = pa.ipc.open_file(body).read_all() if format == "arrow" else pq.read_table(io.BytesIO(body))
    assert found.schema.names == [column.name for column in COLUMNS]
    assert found.schema.types == TYPES
    rows = [tuple(record.values()) for record in found.to_pylist()]
    assert rows == list(map(typed, expected(**query)))


@pytest.mark.parametrize("format", ["csv", "json", "arrow", "parquet"])
def test_an_empty_table_is_a_whole_file(running: Running, format: str) -> None:
    _, body = fetch(running, "empty_ui", format=format)
    match format:
        case "csv":
            assert len(list(csv.reader(io.StringIO(body.decode(), newline="")))) == 1
        case "json":
            assert json.loads(body) == []
        case "arrow":
            assert pa.ipc.open_file(body).read_all().shape == (0, len(COLUMNS))
        case _:
            assert pq.read_table(io.BytesIO(body)).shape == (0, len(COLUMNS))


@pytest.mark.parametrize(
    ("table", "parameters", "status", "code"),
    [
        ("people_ui", {"format": "xls"}, 400, "bad_frame"),
        ("people_ui", {"filter": [["none", "=", 1]]}, 400, "bad_filter"),
        ("people_ui", {"sort": "none"}, 400, "bad_filter"),
        ("people_ui", {"size": 10}, 400, "bad_window"),
        ("people_ui", {"key": "another"}, 401, "unauthorized"),
        ("people_ui", {"generation": "g1"}, 404, "unknown_table"),
        ("none_ui", {}, 404, "unknown_table"),
    ],
)
def test_errors_have_the_one_shape(
    running: Running, table: str, parameters: dict[str, Any], status: int, code: str
) -> None:
    answer, body = fetch(running, table, **parameters)
    assert (answer.status, json.loads(body)["error"]["code"]) == (status, code)
    assert KEY not in body.decode()


def test_a_file_is_as_of_one_moment_while_rows_change_and_viewers_go_on(board: Board, running: Running) -> None:
    """Row j of many has the last number i with i % many = j: any mixture of two moments breaks the sequence."""
    many = 30_000
    numbers = count()

    def write(amount: int) -> None:
        some = [next(numbers) for _ in range(amount)]
        board.write(str(board.live), {f"0-{i % many}": [i, "x" * 200, at(i % many)] for i in some}, "counting_ui")

    write(many)
    with running.client() as viewer:
        viewer.subscribe(1, "counting_ui", offset=many - 1, size=1)
        viewer.until(lambda: viewer.rows[1])
        for format in ("csv", "json", "arrow", "parquet"):
            write(7_777)
            connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
            path = f"/api/tables/counting_ui/export?format={format}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
            answer = connection.getresponse()
            body = answer.read(1_000)
            # The reader pauses; viewers see the next changes all the same.
            before = viewer.rows[1][0][1][0]
            write(many)
            viewer.until(lambda before=before: viewer.rows[1][0][1][0] > before)  # type: ignore[misc]
            body += answer.read()
            connection.close()
            found = numbers_in(format, body)
            assert sorted(found) == list(range(max(found) - many + 1, max(found) + 1))
            assert [number % many for number in found] == list(range(many))


@pytest.mark.parametrize("leaves", [True, False])
def test_readers_that_leave_or_never_read_hold_nothing_for_ever(
    running: Running, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    monkeypatch.setattr(export, "STALLED_S", 60.0 if leaves else 3.0)
    held = []
    for _ in range(16):
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        path = "/api/tables/counting_ui/export?format=json"
        connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
        assert connection.getresponse().read(10)
        held.append(connection)
    assert running.server.exports.open == 16
    answer, body = fetch(running, "people_ui")
    assert (answer.status, json.loads(body)["error"]["code"]) == (503, "overloaded")
    if leaves:
        for connection in held:
            connection.close()
    wait(lambda: running.server.exports.open == 0)
    assert fetch(running, "people_ui")[0].status == 200
    for connection in held:
        connection.close()


def numbers_in(format: str, body: bytes) -> list[int]:
    match format:
        case "csv":
            return [int(line["number"]) for line in csv.DictReader(io.StringIO(body.decode(), newline=""))]
        case "json":
            return [record["number"] for record in json.loads(body)]
        case "arrow":
            return list(pa.ipc.open_file(body).read_all()["number"].to_pylist())
        case _:
            return list(pq.read_table(io.BytesIO(body))["number"].to_pylist())


def test_the_commands_export_and_tables(
    running: Running, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    server = ["--url", f"http://127.0.0.1:{running.port}", "--key", KEY]
    assert cli.main(["tables", *server]) == 0
    (line,) = [line for line in capsysbinary.readouterr().out.decode().splitlines() if line.startswith("people_ui")]
    assert line.split()[1:] == f"{len(PEOPLE):,} rows {SHOWN_COLUMNS}".split()
    file = tmp_path / "people.parquet"
    assert cli.main(["export", "people_ui", "--output", str(file), *server]) == 0
    assert pq.read_table(file).num_rows == len(PEOPLE)
    assert cli.main(["export", "people_ui", "--format", "json", *server]) == 0
    assert len(json.loads(capsysbinary.readouterr().out)) == len(PEOPLE)
    for arguments, text in (
        (["people_ui", *server[:3], "wrong"], b"unauthorized"),
        (["none_ui", *server], b"expected a table ("),
        (["no-name", *server], b"expected a table name"),
        (["people_ui", "--output", str(tmp_path / "none" / "f.csv"), *server], b"--output: expected to write"),
    ):
        assert cli.main(["export", *arguments]) == 1
        captured = capsysbinary.readouterr()
        assert captured.err.startswith(b"liveboard: " + text)
        assert KEY.encode() not in captured.err
    assert [found.name for found in tmp_path.iterdir()] == ["people.parquet"]
