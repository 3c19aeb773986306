"""A whole board on a secured cluster: what it waits for, refuses and survives, and that it keeps its secrets."""

from __future__ import annotations

import base64
import contextlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AclOperation
from harness import PATIENCE_S, QUICK_SPARK, until
from ports import closed_port
from process import spark_conf
from secured import CLIENT_SECRET, PASSWORD, USER, SecuredBroker, variables
from swapping import CONTROL_TOPIC, Swapping, wiring

from liveboard.config import KafkaSettings, SslSettings
from liveboard.contract.names import Names
from liveboard.contract.status import Phase, State

NAMES = Names()

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

VIEWER_KEY = "viewer-key-93ab55aa"
SPARK_SECRET = "spark-secret-71c2d4"
# How long a token is good for: shorter than anybody would make it.
_TOKEN_S = 15
READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE


def test_b4_b13_a_board_on_a_secured_cluster(broker: SecuredBroker, tmp_path: Path) -> None:
    ui, port = closed_port(), closed_port()
    environment = variables(broker.settings("SASL_SSL", "OAUTHBEARER"))
    secret = tmp_path / "secret"
    secret.write_text(environment.pop("LIVEBOARD_KAFKA_SASL_CLIENT_SECRET"))
    environment |= {
        "LIVEBOARD_KAFKA_SASL_CLIENT_SECRET_FILE": str(secret),
        "LIVEBOARD_CONTROL_RETIRE_AFTER": "0 s",
        "LIVEBOARD_SERVER_PSK": VIEWER_KEY,
        "LIVEBOARD_SERVER_PORT": str(port),
        "LIVEBOARD_SPARK_CONF": spark_conf(
            QUICK_SPARK
            | {
                "spark.ui.enabled": "true",
                "spark.ui.port": str(ui),
                "spark.hadoop.fs.s3a.secret.key": SPARK_SECRET,
            }
        ),
    }
    run = tmp_path / "run"
    run.mkdir()
    with contextlib.closing(Swapping(broker.bootstrap_servers, run, **environment)) as board:
        for number in range(3):
            board.fill(number)
        _waits_for_the_token_endpoint_and_for_permission(broker, board)
        with _serving(board, run) as server:
            _refuses_what_may_not_be_read(broker, board)
            _survives_permissions_that_are_taken_away(broker, board)
            _survives_a_token_endpoint_that_is_away(broker, board)
            until(lambda: b"could not be built" in _get(port, "/api/tables/control_raw"), "the server")
            seen = {path: _get(port, path) for path in ("/metrics", "/api/tables/orchestrator_status")}
            seen |= {path: _get(port, path) for path in ("/api/tables", "/api/tables/control_raw", "/readyz")}
            seen |= _command_lines([*board.pipeline.processes(), server, *server.children(recursive=True)])
            seen |= _pages(ui)
        board.pipeline.stop()
        seen |= {
            f"{topic} {message.partition()}-{message.offset()}": message.value() or b""
            for topic in (NAMES.status, NAMES.verdicts, NAMES.owner, CONTROL_TOPIC)
            for message in board.topics.messages(topic)
        }
    seen |= {str(file): file.read_bytes() for file in run.rglob("*") if file.is_file() and file.suffix != ".jar"}
    _expect_no_secret(broker, seen)


def test_b4_a_board_goes_on_when_its_authority_and_its_password_are_mended(
    broker: SecuredBroker, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(broker.stranger.ca.read_bytes())
    login = broker.settings("SASL_SSL", "SCRAM-SHA-512")
    wrong_ca = "kafka.ssl.ca_file: expected the authority that signed the certificate of the broker "
    wrong_password = "kafka.sasl.username, kafka.sasl.password: expected a SCRAM-SHA-512 login that "
    with _waiting(broker, replace(login, ssl=SslSettings(ca_file=str(ca))), tmp_path) as (board, port):
        with _other_password(broker):
            _expect_waiting(board, port, wrong_ca)
            ca.write_bytes(broker.authority.ca.read_bytes())
            _expect_waiting(board, port, wrong_password)
        generation = _expect_live(board, port)

        # The same while it runs: those who are in stay in, until the broker starts again.
        with _other_password(broker):
            with broker.down():
                pass
            board.pipeline.wait_for(f"stopped, since Kafka does not let us in any more: {wrong_password}")
            until(lambda: wrong_password.encode() in _status(port), "the sentence at the server")
        board.fill(0)
        assert _expect_live(board, port) == generation


def test_b4_a_board_goes_on_when_its_certificate_is_renewed(broker: SecuredBroker, tmp_path: Path) -> None:
    login, expired = broker.settings("SSL"), broker.with_certificate("expired")
    cert_file, key_file = tmp_path / "client.cert", tmp_path / "client.key"

    def install(of: SslSettings) -> None:
        cert_file.write_bytes(Path(of.cert_file).read_bytes())
        key_file.write_bytes(Path(of.key_file).read_bytes())

    install(expired.ssl)
    own = replace(login, ssl=replace(login.ssl, cert_file=str(cert_file), key_file=str(key_file)))
    with _waiting(broker, own, tmp_path) as (board, port):
        why = f"kafka.ssl.cert_file: expected a valid client certificate, found {cert_file}, which expired"
        _expect_waiting(board, port, why)
        install(login.ssl)
        _expect_live(board, port)


@contextlib.contextmanager
def _waiting(broker: SecuredBroker, login: KafkaSettings, directory: Path) -> Iterator[tuple[Swapping, int]]:
    """A pipeline and a server that cannot log in yet, and the server's port."""
    port = closed_port()
    environment = {"LIVEBOARD_SERVER_PSK": VIEWER_KEY, "LIVEBOARD_SERVER_PORT": str(port), **variables(login)}
    with contextlib.closing(Swapping(broker.bootstrap_servers, directory, **environment)) as board:
        # What an earlier board left on this broker is not this one's.
        leftovers = [topic for topic in board.admin.partitions() if topic.startswith(NAMES.board)]
        board.admin.delete(leftovers)
        board.fill(0)
        board.start()
        with _serving(board, directory):
            yield board, port


@contextlib.contextmanager
def _other_password(broker: SecuredBroker) -> Iterator[None]:
    broker.set_scram_password("another")
    try:
        yield
    finally:
        broker.set_scram_password(PASSWORD)


def _expect_waiting(board: Swapping, port: int, why: str) -> None:
    board.pipeline.wait_for(f"waiting for Kafka: {why}")
    until(lambda: why.encode() in _get(port, "/readyz"), f"{why} at the server")


def _expect_live(board: Swapping, port: int) -> str:
    generation = board.wait_until_live(wiring(0))
    board.expect_oracle(generation)
    until(lambda: f'"{generation}","live",""'.encode() in _status(port), "the server")
    return generation


def _status(port: int) -> bytes:
    return _get(port, "/api/tables/orchestrator_status")


def _waits_for_the_token_endpoint_and_for_permission(broker: SecuredBroker, board: Swapping) -> None:
    broker.secure_tokens.close()
    broker.secure_tokens.life_s = _TOKEN_S
    broker.revoke(READ, "accounts")
    board.start()
    board.pipeline.wait_for("waiting for Kafka: kafka.sasl.token_endpoint_url: expected a token from ")
    broker.secure_tokens.open()
    status = board.wait_for(lambda status: status.phase is Phase.WAITING)
    assert status.message == _sentence("read", "accounts")
    broker.grant(READ, "accounts")
    board.expect_oracle(board.wait_until_live(wiring(0)))


def _refuses_what_may_not_be_read(broker: SecuredBroker, board: Swapping) -> None:
    before = board.status()
    place = board.ask(wiring(1))
    board.wait_for(lambda status: status.control.get("0", 0) > int(place.split("-")[1]))
    assert board.verdicts()[place] == ("rejected", _sentence("read", "accounts1", "users1"))
    assert board.status().generations == before.generations
    assert board.status().last_applied == before.last_applied
    for topic in ("users1", "accounts1", "users2", "accounts2"):
        broker.grant(READ, topic)
    board.ask(wiring(1))
    board.expect_oracle(board.wait_until_live(wiring(1)))


def _survives_permissions_that_are_taken_away(broker: SecuredBroker, board: Swapping) -> None:
    live = board.status().live

    # While it builds.
    board.fill(2, 20_000)
    newest = board.status().newest
    place = board.ask(wiring(2))
    board.wait_for(lambda status: any(r.state is State.BUILDING for r in status.generations.values()))
    with broker.denied(READ, "accounts2"):
        status = board.wait_for(lambda status: "could not be built" in status.message)
    assert status.live == live
    assert status.message == f"g{newest + 1} could not be built: {_sentence('read', 'accounts2')}"
    assert board.verdicts()[place] == ("failed", status.message)

    # Before it can begin.
    with broker.denied(CREATE, "liveboard.", prefix=True):
        board.ask(wiring(1, "inner"))
        status = board.wait_for(lambda status: f"g{newest + 2} could not be built" in status.message)
    assert status.live == live
    assert _sentence("create", f"liveboard.g{newest + 2}.accounts_ui") in status.message
    board.ask(wiring(1, "inner"))
    following = board.wait_until_live(wiring(1, "inner"))

    # While it follows.
    changelog = NAMES.changelog(following, "final_ui")
    for operation, word, topic in ((READ, "read", "users1"), (WRITE, "write", changelog)):
        with broker.denied(operation, topic):
            board.fill(1)
            status = board.wait_for(lambda status: status.phase is Phase.RESTARTING)
            assert re.fullmatch(
                rf"{following} starts again in \d+ s: {re.escape(_sentence(word, topic))}", status.message
            )
        board.wait_for(lambda status: status.phase is Phase.LIVE)
        board.fill(1)
        board.expect_oracle(following)

    # Of the control topic.
    with broker.denied(READ, CONTROL_TOPIC):
        status = board.wait_for(lambda status: status.message == _sentence("read", CONTROL_TOPIC))
        assert status.phase is Phase.LIVE
        board.ask(wiring(1))
    board.wait_until_live(wiring(1))
    board.wait_for(lambda status: not status.message)


def _survives_a_token_endpoint_that_is_away(broker: SecuredBroker, board: Swapping) -> None:
    live = board.status().live
    broker.secure_tokens.close()
    # Nobody's token is good any more, and everybody has to show one.
    time.sleep(_TOKEN_S)
    with broker.down():
        pass
    why = "stopped, since Kafka does not let us in any more: kafka.sasl.token_endpoint_url: expected a token from "
    board.pipeline.wait_for(why)
    board.fill(1)
    broker.secure_tokens.open()
    assert board.wait_until_live(wiring(1)) == live
    board.expect_oracle(live)


def _sentence(operation: str, *topics: str) -> str:
    rule = f"an ACL that allows {operation.upper()} to liveboard's user"
    return f"expected permission to {operation} the Kafka topics {list(topics)}, found none; add {rule}"


@contextlib.contextmanager
def _serving(board: Swapping, run: Path) -> Iterator[psutil.Popen]:
    with (run / "serve.out").open("wb") as output:
        server = psutil.Popen(
            [sys.executable, "-m", "liveboard", "serve"],
            env=board.pipeline.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield server
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def _get(port: int, path: str) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {VIEWER_KEY}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.read()
    except OSError:
        return b""


def _pages(port: int) -> dict[str, bytes]:
    """The pages of the Spark UI and of its API that tell settings, plans and errors."""
    pages = {path: _get(port, path) for path in _PAGES}
    text = b"".join(pages.values()).decode(errors="replace")
    links = re.findall(r'href="(/(?:SQL/execution|StreamingQuery/statistics)/?[^"#]*)"', text)[:_MOST_LINKS]
    application = re.findall(r'"id" : "(local-\d+)"', text)[0]
    links += [f"/api/v1/applications/{application}/{part}" for part in _API_PAGES]
    return pages | {path: _get(port, path) for path in links}


_PAGES = ("/jobs/", "/stages/", "/environment/", "/executors/", "/SQL/", "/StreamingQuery/", "/api/v1/applications")
_API_PAGES = ("environment", "sql?details=true&planDescription=true&length=100", "jobs", "stages")
_MOST_LINKS = 20


def _command_lines(processes: list[psutil.Process]) -> dict[str, bytes]:
    lines: dict[str, bytes] = {}
    for process in processes:
        with contextlib.suppress(psutil.ZombieProcess):
            lines[f"ps {process.pid}"] = " ".join(process.cmdline()).encode()
    assert any(b"SparkSubmit" in line for line in lines.values())
    return lines


def _expect_no_secret(broker: SecuredBroker, seen: dict[str, bytes]) -> None:
    login = base64.b64encode(f"{USER}:{CLIENT_SECRET}".encode())
    secrets = [CLIENT_SECRET.encode(), login, VIEWER_KEY.encode(), SPARK_SECRET.encode()]
    secrets += [token.rpartition(".")[2].encode() for token in broker.secure_tokens.given]
    assert len(secrets) > 4
    assert [(where, secret) for where, content in seen.items() for secret in secrets if secret in content] == []
    # All of it was looked at: Spark's settings, plans and log, the server, the board.
    everything = b"".join(seen.values())
    for known in (b"fs.s3a.secret.key", b"(redacted)", b"Physical Plan", b"TopicAuthorizationException", b"liveboard_"):
        assert known in everything, known
