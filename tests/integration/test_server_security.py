"""Who gets in, what they see, and what the server does about everyone else; over real connections."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import logging
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from certificates import Authority
from cryptography import x509
from live import KEY, USERS, Board, Client, Running, at, serving, users, wait
from websockets.exceptions import ConnectionClosed, InvalidStatus

import liveboard
from liveboard.client.address import Unreachable
from liveboard.commands import cli
from liveboard.config import KeySettings, Secret
from liveboard.contract import frames
from liveboard.contract.schema import TS, Column
from liveboard.kafka.admin import Admin
from liveboard.serving import hashes, throttle, tls
from liveboard.serving.limits import Limits
from liveboard.serving.login import make_token
from liveboard.serving.mirror import Database

pytestmark = pytest.mark.integration

WALL, DESK = "the key of the wall", "the key of the desk"
KEYS = {
    "wall": KeySettings(name="wall", role="viewer", key=Secret(WALL)),
    "desk": KeySettings(
        name="desk", role="viewer", hash=Secret(hashes.hashed(Secret(DESK))), tables=("users_ui", "nothing_yet")
    ),
}
SECRET = (Column("salary", "string"), TS)


@pytest.fixture(scope="module")
def board(kafka: str) -> Board:
    """A board with a live generation of two tables."""
    board = Board(kafka)
    Admin({"bootstrap.servers": kafka}).create(["liveboard-control"])
    generation = board.build({"users_ui": USERS, "salaries": SECRET})
    board.write(generation, users(*range(10)))
    board.write(generation, {"0-0": ["a lot", at(0)]}, "salaries")
    board.switch(generation)
    return board


@contextlib.contextmanager
def shown(board: Board, **options: Any) -> Iterator[Running]:
    """A server that shows the board."""
    with serving(board.bootstrap, **options) as running:
        running.bound(str(board.live))
        yield running


@pytest.fixture(scope="module")
def running(board: Board) -> Iterator[Running]:
    """A server with several keys."""
    with shown(board, keys=KEYS) as running:
        yield running


class Asked:
    """An answer over HTTP."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.text = answer.read().decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """What it says."""
        return json.loads(self.text)

    @property
    def code(self) -> tuple[int, str]:
        """Which error it is."""
        return self.status, self.json["error"]["code"]


def ask(
    running: Running,
    path: str,
    key: str | None = KEY,
    body: bytes | None = None,
    method: str = "",
    source: str = "127.0.0.1",
    headers: Mapping[str, str] | None = None,
) -> Asked:
    """What the server answers over HTTP."""
    authorization = {"Authorization": f"Bearer {key}"} if key is not None else {}
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60, source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request(method or ("POST" if body else "GET"), path, body, {**authorization, **(headers or {})})
        return Asked(connection.getresponse())


def refusal(client: Client) -> tuple[str, int]:
    """With which error and code the server closes."""
    error = client.receive()
    with pytest.raises(ConnectionClosed) as caught:
        client.receive()
    assert caught.value.rcvd is not None
    return error["code"], caught.value.rcvd.code


# Roles.


@pytest.mark.parametrize(("key", "role"), [(KEY, "admin"), (WALL, "viewer"), (DESK, "viewer")])
def test_b30_only_an_admin_changes_the_board(running: Running, key: str, role: str) -> None:
    with Client(running.port, key) as client:
        assert client.receive()["role"] == role
        assert client.subscribe(1)["total"] == 10
    assert ask(running, "/api/tables/users_ui", key).json["total"] == 10
    message = b'{"usersTopic": "a"}'
    if role == "admin":
        assert ask(running, "/api/control", key, message).status == 202
        assert ask(running, "/api/topics", key).status == 200
    else:
        assert ask(running, "/api/control", key, message).code == (403, "forbidden")
        assert ask(running, "/api/topics", key).code == (403, "forbidden")
        told = ask(running, "/api/control", key, b"{").json["error"]["message"]
        assert told == "expected a key with the role admin, found one with the role viewer"


def test_a_key_shows_its_tables_and_gives_no_sign_of_others(board: Board, running: Running) -> None:
    generation = str(board.live)
    with Client(running.port, DESK) as client:
        assert [table["name"] for table in client.receive()["tables"]] == ["users_ui"]
        # The same words as for a table that there is not.
        for name in ("salaries", "control_raw", "orchestrator_status", "no_such"):
            error = client.subscribe(1, name)
            assert (error["code"], error["message"]) == (
                "unknown_table",
                f'expected a table (users_ui), found "{name}"',
            )
            error = client.subscribe(1, name, generation=generation)
            assert error["code"] == "unknown_table"
            assert error["message"].endswith(f'({generation}), found "{name}" of "{generation}"')
        assert client.subscribe(2, generation=generation)["total"] == 10
    assert [table["name"] for table in ask(running, "/api/tables", DESK).json["tables"]] == ["users_ui"]
    for path in ("", "/export", "/chart?column=salary", f"?generation={generation}"):
        for name in ("salaries", "no_such"):
            answer = ask(running, f"/api/tables/{name}{path}", DESK)
            assert answer.code == (404, "unknown_table")
            assert "salar" not in answer.text.replace(f'found \\"{name}', "")
        assert ask(running, f"/api/tables/salaries{path}", WALL).status == 200
    assert ask(running, "/api/tables/users_ui/export", DESK).status == 200


def test_no_key_is_in_the_log(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for key in (DESK, WALL, KEY):
        assert ask(running, "/api/tables", key).status == 200
    assert ask(running, "/api/tables", "some wrong key", source="127.0.0.9").status == 401
    assert "wrong key" in caplog.text
    assert [key for key in (DESK, WALL, KEY, "some wrong key", KEYS["desk"].hash.reveal()) if key in caplog.text] == []


# Tries.


def metric(running: Running, name: str) -> float:
    """The value of a counter."""
    lines = ask(running, "/metrics", None).text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


@pytest.fixture
def unforgiving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are remembered for as long as the test takes."""
    monkeypatch.setattr(throttle, "FORGIVEN_EVERY_S", 3_600.0)


@pytest.mark.usefixtures("unforgiving")
def test_who_tries_keys_has_to_wait_and_nobody_else(board: Board) -> None:
    with shown(board, limits=Limits(failed_logins=4), keys=KEYS) as running:
        for number in range(2):
            assert ask(running, "/api/tables", f"guess {number}", source="127.0.0.2").code == (401, "unauthorized")
            with Client(running.port, f"guess {number}", source_address=("127.0.0.2", 0)) as client:
                assert refusal(client) == ("unauthorized", frames.UNAUTHORIZED)
        # Not even the right key is looked at now, otherwise its answer would tell that it is right.
        answer = ask(running, "/api/tables", KEY, source="127.0.0.2")
        assert answer.code == (429, "too_many")
        assert 3_500 <= int(answer.headers["Retry-After"]) <= 3_600
        with Client(running.port, KEY, source_address=("127.0.0.2", 0)) as client:
            assert refusal(client) == ("overloaded", frames.OVERLOADED)
        token = json.dumps({"token": make_token(Secret(KEY))}).encode()
        assert ask(running, "/api/login", None, token, source="127.0.0.2").status == 429
        assert ask(running, "/api/login", None, token).status == 200
        assert ask(running, "/api/tables", KEY).status == 200
        with Client(running.port) as client:
            assert client.receive()["ev"] == "ready"
        # Who has no key at all does not guess.
        for _ in range(10):
            assert ask(running, "/api/tables", None).code == (401, "unauthorized")
        assert ask(running, "/api/tables", KEY).status == 200
        assert metric(running, "liveboard_refused_viewers_total") == 14
        assert metric(running, "liveboard_slowed_logins_total") == 3


@pytest.mark.usefixtures("unforgiving")
def test_wrong_login_links_count_as_tries_and_a_used_one_stays_used_after_a_restart(
    board: Board, tmp_path: Path
) -> None:
    body = json.dumps({"token": make_token(Secret(KEY))}).encode()
    with shown(board, limits=Limits(failed_logins=2), storage=tmp_path / "new") as running:
        assert ask(running, "/api/login", None, body).json == {"key": KEY}
        assert ask(running, "/api/login", None, body).code == (401, "unauthorized")
    with shown(board, limits=Limits(failed_logins=2), storage=tmp_path / "new") as running:
        assert ask(running, "/api/login", None, body).code == (401, "unauthorized")
        assert ask(running, "/api/login", None, b'{"token":"\\u0000.ff"}').code == (401, "unauthorized")
        assert ask(running, "/api/login", None, body).code == (429, "too_many")


# Origins.


def test_pages_of_other_origins_are_refused(board: Board) -> None:
    with shown(board, origins=("https://page.example.com",)) as running:
        own = [f"http://127.0.0.1:{running.port}", "https://page.example.com"]
        for origin in own:
            with Client(running.port, origin=origin) as client:
                assert client.receive()["ev"] == "ready"
            assert ask(running, "/api/control", body=b"{", headers={"Origin": origin}).code == (400, "bad_message")
        others = ["http://evil.example.com", "null", "http://127.0.0.1:1", f"http://localhost:{running.port}", "x:y:z"]
        for origin in [*others, f"file://127.0.0.1:{running.port}", "http://[", ""]:
            with pytest.raises(InvalidStatus) as caught:
                Client(running.port, additional_headers={"Origin": origin})
            assert caught.value.response.status_code == 403
            assert ask(running, "/api/control", body=b"{", headers={"Origin": origin}).code == (403, "forbidden")
            assert ask(running, "/api/login", None, body=b"{", headers={"Origin": origin}).code == (403, "forbidden")
        asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
        may = ask(running, "/api/tables", None, method="OPTIONS", headers={"Origin": own[1], **asked})
        assert (may.status, may.headers["Access-Control-Allow-Origin"]) == (200, "https://page.example.com")
        may_not = ask(running, "/api/tables", None, method="OPTIONS", headers={"Origin": others[0], **asked})
        assert may_not.headers["Access-Control-Allow-Origin"] is None
        assert ask(running, "/api/tables", headers={"Origin": own[1]}).headers["Access-Control-Allow-Origin"]


@pytest.mark.usefixtures("unforgiving")
def test_addresses_are_believed_only_from_trusted_proxies(board: Board) -> None:
    for proxies, status in (((), 429), (("127.0.0.0/8",), 200)):
        with shown(board, limits=Limits(failed_logins=1), trusted_proxies=proxies) as running:
            told = {"X-Forwarded-For": "192.0.2.1"}
            assert ask(running, "/api/tables", "wrong", headers=told).status == 401
            assert ask(running, "/api/tables", KEY, headers=told).status == 429
            assert ask(running, "/api/tables", KEY, headers={"X-Forwarded-For": "192.0.2.2"}).status == status


# Limits.

FEW = Limits(
    viewers=4,
    viewers_per_address=2,
    subscriptions=3,
    windows=3,
    queries=1,
    window_rows=300,
    conditions=2,
    condition_values=3,
    text_length=10,
    frame_bytes=4_096,
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 301}, "bad_window"),
    ({"filter": [["age", ">", 1]] * 3}, "bad_filter"),
    ({"filter": [["age", "in", [1, 2, 3, 4]]]}, "bad_filter"),
    ({"filter": [["userId", "=", "x" * 11]]}, "bad_filter"),
    ({"filter": [["userId", "in", ["x" * 11]]]}, "bad_filter"),
    ({"filter": [["userId", "contains", "x" * 11]]}, "bad_filter"),
    ({"search": "x" * 11}, "bad_filter"),
]


def test_every_limit_is_refused_with_its_error(board: Board) -> None:
    with shown(board, limits=FEW) as running, running.client() as client:
        for asked, code in REFUSED:
            assert client.subscribe(1, **asked)["code"] == code, asked
            parameters = {name: value if name == "search" else json.dumps(value) for name, value in asked.items()}
            answer = ask(running, f"/api/tables/users_ui?{urlencode(parameters)}")
            assert answer.code == (400, code)
        assert client.subscribe(1, sort=[["age", "asc"]])["ev"] == "snapshot"
        assert client.subscribe(2, sort=[["age", "desc"]])["code"] == "overloaded"
        assert ask(running, "/api/tables/users_ui?search=x").code == (503, "overloaded")
        assert client.subscribe(2, sort=[["age", "asc"]])["ev"] == "snapshot"
        assert client.subscribe(3, offset=3)["ev"] == "snapshot"
        assert client.subscribe(4)["code"] == "too_many"
        with running.client() as other:
            assert other.subscribe(1, offset=3)["ev"] == "snapshot"
            assert other.subscribe(2, offset=4)["ev"] == "snapshot"
            assert other.subscribe(3, offset=5)["code"] == "overloaded"
            with Client(running.port, None) as third:
                assert refusal(third) == ("overloaded", frames.OVERLOADED)
            with contextlib.ExitStack() as more:
                for number in (2, 3):
                    one = more.enter_context(Client(running.port, None, source_address=(f"127.0.0.{number}", 0)))
                    one.send(op="auth", psk=KEY)
                    assert one.receive()["ev"] == "ready"
                fifth = more.enter_context(Client(running.port, None, source_address=("127.0.0.4", 0)))
                assert refusal(fifth) == ("overloaded", frames.OVERLOADED)
        client.socket.send("x" * 4_097)
        with pytest.raises(ConnectionClosed) as caught:
            client.until(lambda: False)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009


# What browsers are told.


@pytest.mark.parametrize(
    "path", ["/", "/api/tables", "/api/nothing", "/healthz", "/metrics", "/none.js", "/api/tables/users_ui/export"]
)
def test_every_answer_has_its_headers(running: Running, path: str) -> None:
    headers = ask(running, path).headers
    policy = headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    scripts = [part for part in policy.split("; ") if part.startswith(("default-src", "script-src"))]
    assert scripts in (["default-src 'self'"], ["default-src 'none'"])
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Strict-Transport-Security"] is None
    assert headers["Server"] is None
    if path.startswith("/api"):
        assert headers["Cache-Control"] == "no-store"


# TLS.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs what the server shows."""
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


class Safe:
    """A server with TLS, and the files of its certificate."""

    def __init__(self, board: Board, authority: Authority) -> None:
        self._authority = authority
        self.ca_file = str(authority.ca)
        self.cert_file, self.key_file, _ = authority.issue("server")
        files = {"tls_cert_file": str(self.cert_file), "tls_key_file": str(self.key_file)}
        self._serving = shown(board, keys=KEYS, **files)

    def __enter__(self) -> Safe:
        self.running = self._serving.__enter__()
        self.url = self.running.server.address
        return self

    def __exit__(self, *exception: Any) -> None:
        self._serving.__exit__(*exception)

    def renew(self) -> int:
        """Writes a new certificate and key into the same files; gives its serial number."""
        self._authority.issue("server")
        return x509.load_pem_x509_certificate(self.cert_file.read_bytes()).serial_number

    def shown_serial(self) -> int:
        """The serial number of the certificate that a new connection gets."""
        context = ssl.create_default_context(cafile=self.ca_file)
        connection = http.client.HTTPSConnection("127.0.0.1", self.running.port, context=context, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            self.headers = connection.getresponse().headers
            found = connection.sock.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


@pytest.fixture
def safe(board: Board, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[Safe]:
    """Such a server, which looks at its files often."""
    monkeypatch.setattr(tls.Certificate.follow, "__defaults__", (0.02,))
    with Safe(board, authority) as safe:
        yield safe


def test_clients_come_in_with_tls_and_only_if_they_trust(
    safe: Safe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert safe.url.startswith("https://127.0.0.1:")
    for url in (safe.url, safe.url.replace("https", "wss")):
        with liveboard.connect(url, WALL, ca_file=safe.ca_file) as client:
            assert len(next(iter(client.updates("users_ui"))).rows) == 10
            assert len(client.table("users_ui").rows()) == 10
    other = Authority(tmp_path, "another authority")
    for ca_file in (None, str(other.ca)):
        with pytest.raises(Unreachable, match=r"expected a certificate of a trusted authority \(ca_file, or SSL_CERT"):
            liveboard.connect(safe.url, KEY, ca_file=ca_file)
    arguments = ["tables", "--url", safe.url, "--key", KEY]
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    assert (
        "expected a certificate of a trusted authority (ca_file, or SSL_CERT_FILE), found: " in capsys.readouterr().err
    )
    assert cli.main([*arguments, "--ca-file", safe.ca_file]) == 0
    monkeypatch.setenv("LIVEBOARD_SERVER_CA_FILE", safe.ca_file)
    assert cli.main(arguments) == 0
    monkeypatch.delenv("LIVEBOARD_SERVER_CA_FILE")
    monkeypatch.setenv("SSL_CERT_FILE", safe.ca_file)
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.count("users_ui") == 3
    with liveboard.connect(safe.url, KEY) as client:
        assert client.tables()
    with pytest.raises(Unreachable):
        liveboard.connect(safe.url.replace("https", "http"), KEY)


def test_a_new_certificate_is_taken_and_viewers_stay(
    safe: Safe, board: Board, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first = safe.shown_serial()
    assert safe.headers["Strict-Transport-Security"] == "max-age=31536000"
    with liveboard.connect(safe.url, KEY, ca_file=safe.ca_file) as client:
        updates = iter(client.updates("users_ui"))
        assert next(updates).rows[0][1] == 0
        renewed = safe.renew()
        assert renewed != first
        wait(lambda: safe.shown_serial() == renewed)
        # A key that does not fit, then no key, then nonsense: each is one line, and the certificate stays.
        spoilt = (("other.key", "found another in"), (None, "No such file"), ("text", "without one"))
        authority.issue("other")
        safe.key_file.with_name("text").write_text("hello")
        for name, reason in spoilt:
            caplog.clear()
            safe.key_file.unlink(missing_ok=True)
            if name:
                safe.key_file.with_name(name).rename(safe.key_file)
            wait(lambda reason=reason: reason in str([getattr(r, "reason", "") for r in caplog.records]))  # type: ignore[misc]
            assert safe.shown_serial() == renewed
        again = safe.renew()
        wait(lambda: safe.shown_serial() == again)
        said = [record for record in caplog.records if record.name == tls.__name__]
        assert [record.levelname for record in said] == ["ERROR", "INFO"]
        board.write(str(board.live), users(0, age=77))
        assert next(updates).rows[0][1] == 77
    board.write(str(board.live), users(0, age=0) | {"0-0": ["u0", 0, at(0)]})


# SQL.

BREAKS = [
    "'\"`\\;--/*$1?%_*",
    "c0",
    "pos",
    "') OR 1=1 --",
    "x'; DROP TABLE mirrors.t1; --",
    "age, (SELECT content FROM read_text('/etc/passwd'))",
    "COPY (SELECT 1) TO '/tmp/broken-out'",
    "../../etc/passwd",
    "users_ui\x00",
    "\x1f\U0010ffff",
]


def fields(text: str) -> list[tuple[dict[str, Any], set[str | int]]]:
    """The text in every field, and the codes or the number of rows that may come of it."""
    return [
        ({"table": text}, {"bad_name", "unknown_table"}),
        ({"generation": text}, {"unknown_table"}),
        ({"sort": [[text, "asc"]]}, {"bad_filter"}),
        ({"sort": [["age", text]]}, {"bad_frame"}),
        ({"filter": [[text, "=", 1]]}, {"bad_filter"}),
        ({"filter": [["age", text, 1]]}, {"bad_filter"}),
        ({"filter": [["age", "=", text]]}, {"bad_filter"}),
        ({"filter": [["ts", ">", text]]}, {"bad_filter"}),
        ({"filter": [["userId", "=", text]]}, {0}),
        ({"filter": [["userId", "in", [text, "u1"]]]}, {1}),
        ({"filter": [["userId", "between", [text, text]]]}, {0}),
        ({"filter": [["userId", "contains", text]]}, {0}),
        ({"filter": [["userId", "starts with", text]]}, {0}),
        ({"search": text}, {0}),
    ]


def test_no_field_becomes_sql_or_a_path_over_the_socket(running: Running) -> None:
    asked = dict(enumerate(ask for text in BREAKS for ask in fields(text)))
    with running.client() as client:
        for id, (ask_, _) in asked.items():
            client.send(op="subscribe", id=id, **{"table": "users_ui", **ask_})
            client.until(lambda id=id: any(frame.get("id") == id for frame in client.frames))  # type: ignore[misc]
            client.send(op="unsubscribe", id=id)
        for frame in client.frames:
            if frame.get("id") is not None:
                assert frame.get("code", frame.get("total")) in asked[frame["id"]][1], (asked[frame["id"]], frame)


def test_no_field_becomes_sql_or_a_path_over_http(running: Running) -> None:
    paths = itertools.cycle(("", "/export?format=parquet&", "/chart?column=age&"))
    for text in BREAKS:
        for asked, expected in fields(text):
            fails = not any(isinstance(each, int) for each in expected)
            table = quote(asked.pop("table", "users_ui"), safe="")
            texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in asked.items()}
            path = next(paths) or "?"
            answer = ask(running, f"/api/tables/{table}{path}{urlencode(texts)}")
            # A path of several parts is none of the server's; a chart has no use for a sort.
            assert answer.status in ((400, 404) if fails else (200,)) or "sort" in asked, (text, asked, path)
        for path in ("chart?column=", "export?format="):
            assert ask(running, f"/api/tables/users_ui/{path}{quote(text)}").status == 400
    answer = ask(running, "/api/tables/users_ui?" + urlencode({"sort": '[["age","asc"]]'}))
    assert (answer.status, answer.json["total"]) == (200, 10)


def test_the_sql_engine_reaches_nothing_and_cannot_be_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database()
    cursor = database.cursor()
    (tmp_path / ".tmp").mkdir()
    for name in ("secret.csv", ".tmp/secret.csv"):
        (tmp_path / name).write_text("a\n1\n")
    for sql in (
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        f"SELECT * FROM read_text('{tmp_path}/secret.csv')",
        f"SELECT * FROM read_text('{tmp_path}/.tmp/secret.csv')",
        "SELECT * FROM read_text('.tmp/secret.csv')",
        "SELECT * FROM tmp_path",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "COPY (SELECT 1) TO ':memory:'",
        f"ATTACH '{tmp_path}/out.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET memory_limit = '1TB'",
        "RESET lock_configuration",
    ):
        with pytest.raises(Exception, match=r"(?i)disabled|locked|permission|extension|does not exist"):
            cursor.execute(sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp", "secret.csv"]
    database.close()


# A board of its own.


def test_a_table_that_goes_away_tells_a_key_only_of_its_own(kafka: str) -> None:
    # The last test here, since the other board's status takes the place of this one's.
    board = Board(kafka)
    generation = board.build({"users_ui": USERS, "salaries": SECRET})
    board.write(generation, users(1))
    board.switch(generation)
    with shown(board, keys=KEYS) as running, Client(running.port, DESK) as client:
        client.subscribe(1)
        after = board.build({"salaries": SECRET})
        board.switch(after)
        error = client.receive_ev("error")
        assert (error["id"], error["code"]) == (1, "unknown_table")
        assert error["message"] == 'expected a table (none is loaded yet), found "users_ui"'
