"""`liveboard inspect` and `liveboard init` as a user runs them, over topics of every kind."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from harness import emptied
from whole import LIVEBOARD

from liveboard import config
from liveboard.inspect.excerpt import excerpt
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration

NESTED, KEYED, CHANGES, AVRO, TEXT = "shop.orders", "shop.products", "db.public.people", "avro.events", "logs"
BOARDS_OWN = ["mine-status", "mine-control_raw", "mine-control", "mine.g1.final_ui", "mine-owner"]


@pytest.fixture(scope="module")
def strange(kafka: str) -> Iterator[str]:
    """The address of a broker with five strange topics, an empty one, and those of a board."""
    with emptied(kafka):
        admin = Admin({"bootstrap.servers": kafka})
        admin.create([NESTED], partitions=3)
        admin.create([KEYED, CHANGES, AVRO, TEXT, "empty", *BOARDS_OWN])
        producer = Producer({"bootstrap.servers": kafka, "log_level": 0})
        for number in range(200):
            order = {
                "orderId": number,
                "productId": f"p{number % 20}",
                "customer": {"name": "Ada", "address": {"city": "Oslo"}},
                "items": [{"sku": f"p{number % 20}", "quantity": 1}],
                "total": f"{number}.50",
                "placedAt": 1_790_000_000_000 + number,
            }
            producer.produce(NESTED, json.dumps(order), str(number), headers={"trace-id": b"1"})
            producer.produce(TEXT, f"line {number}")
            producer.produce(AVRO, b"\x00\x00\x00\x00\x05" + bytes([2, number % 100]))
        for number in range(40):
            id_ = f"p{number % 25}"
            producer.produce(KEYED, json.dumps({"productId": id_, "name": f"thing {number}", "stock": number}), id_)
            change = {"before": None, "after": {"id": number, "email": f"{number}@mail.example"}, "op": "c"}
            producer.produce(CHANGES, json.dumps(change), json.dumps({"id": number}))
        producer.produce(KEYED, None, "p1")
        assert producer.flush(60) == 0
        yield kafka


def _environment(bootstrap: str | None) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("LIVEBOARD_")}
    return ours | ({"LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap} if bootstrap else {})


def _run(directory: Path, bootstrap: str | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LIVEBOARD, *arguments],
        cwd=directory,
        env=_environment(bootstrap),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )


def _inspected(directory: Path, bootstrap: str, topic: str, *options: str) -> tuple[dict[str, Any], str]:
    ended = _run(directory, bootstrap, "inspect", topic, *options)
    assert (ended.returncode, ended.stderr) == (0, "")
    return tomllib.loads(ended.stdout), ended.stdout


def _in_a_terminal(directory: Path, answers: Sequence[tuple[str, str]], *arguments: str) -> tuple[int, str]:
    """Answers each question when it has been asked; the exit code and all that was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*LIVEBOARD, *arguments], cwd=directory, env=_environment(None), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown, left = "", list(answers)
    try:
        while True:
            try:
                shown += os.read(ours, 10_000).decode()
            except OSError:  # its end has closed the terminal
                break
            if left and re.search(left[0][0], shown.rpartition("<answered>")[2]):
                shown += "<answered>"
                os.write(ours, left.pop(0)[1].encode() + b"\n")
        code = process.wait(240)
    finally:
        process.kill()
        os.close(ours)
    assert left == [], shown
    return code, shown


def test_every_kind_of_topic_is_recognised(strange: str, tmp_path: Path) -> None:
    nested, text = _inspected(tmp_path, strange, NESTED)
    assert nested["board"]["sources"]["orders"] == {
        "topic": NESTED,
        "table": "orders_ui",
        "columns": {
            "orderId": "bigint",
            "productId": "string",
            "customer_name": {"type": "string", "path": "customer.name"},
            "city": {"type": "string", "path": "customer.address.city"},
            "items": "json",
            "total": "decimal(18,2)",
            "placedAt": {"type": "timestamp", "path": "placedAt", "unit": "ms"},
        },
    }
    assert "# The Kafka key is orderId." in text
    keyed, _ = _inspected(tmp_path, strange, KEYED)
    products = keyed["board"]["sources"]["products"]
    assert (products["mode"], products["key"]) == ("upsert", "productId")
    changes, _ = _inspected(tmp_path, strange, CHANGES)
    people = changes["board"]["sources"]["people"]
    assert (people["format"], people["key"]) == ("debezium", "id")
    assert people["columns"] == {"id": "bigint", "email": "string"}
    nothing, text = _inspected(tmp_path, strange, AVRO)
    assert nothing == {}
    assert "The schema ids are 5." in text
    nothing, text = _inspected(tmp_path, strange, TEXT)
    assert nothing == {}
    assert 'expected JSON objects, found "line ' in text


def test_a_topic_that_is_empty_or_missing_is_a_sentence(strange: str, tmp_path: Path) -> None:
    for topic, said in (
        ("empty", "empty: expected records to look at, found none; produce some and try again"),
        ("nowhere", f"expected the Kafka topics ['nowhere'] at {strange}, found no such topics"),
    ):
        ended = _run(tmp_path, strange, "inspect", topic)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr == f"liveboard: {said}\n"


def test_some_records_of_every_partition_are_read_from_both_ends(strange: str) -> None:
    records = excerpt({"bootstrap.servers": strange}, NESTED, 60)
    numbers = sorted(json.loads(record.value or b"")["orderId"] for record in records)
    assert len(numbers) == len(set(numbers)) == 60
    assert numbers[0] < 10
    assert numbers[-1] == 199
    assert len(excerpt({"bootstrap.servers": strange}, NESTED, 5_000)) == 200


def test_a_board_is_made_by_options_alone(strange: str, tmp_path: Path) -> None:
    topics = ",".join([NESTED, KEYED, CHANGES, AVRO, TEXT, "empty"])
    ended = _run(tmp_path, None, "init", "--bootstrap-servers", strange, "--topics", topics, "--yes")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "joined: orders with products (its newest record) on productId: 20 of 20 sampled values met" in ended.stdout
    for topic in (AVRO, TEXT, "empty"):
        assert f"left out: {topic}: " in ended.stdout
    assert ended.stdout.endswith(
        "liveboard.toml is written, with 3 sources and 1 join; `liveboard up` shows the board\n"
    )
    settings = config.load(tmp_path / "liveboard.toml", {})
    assert settings.kafka.bootstrap_servers == strange
    assert {source.topic for source in settings.board.sources.values()} == {NESTED, KEYED, CHANGES}
    join = settings.board.joins["orders_products"]
    assert (join.left, join.right, join.on, join.how) == ("orders", "products", "productId", "left")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--topics: expected the topics to show, since nobody can be asked here, found nothing"),
        (["--topics", "shop.order"], '--topics: expected a topic such as shop.orders, found "shop.order"'),
        (["--topics", "mine-status"], 'found "mine-status"; there are 6 to choose from'),
        (["--topics", TEXT], "expected a topic with JSON objects among logs, found none"),
        (
            ["--topics", f"{NESTED},{KEYED}"],
            "expected --yes, --no-joins or --join, found none of them; proposed: --join",
        ),
        (["--topics", NESTED, "--name", "a.b"], "--name: expected up to 30 letters"),
        (
            ["--topics", f"{NESTED},{KEYED}", "--join", "left=orders,right=products,on=orderId"],
            "board.joins.orders_products.on: expected a column of products",
        ),
        (["--topics", NESTED, "--output", "missing/board.toml"], "--output: expected to write missing/board.toml"),
        (["--topics", NESTED, "--output", "there.toml"], "--output: expected a file that is not there yet, or --force"),
        (["--bootstrap-servers", "nowhere"], "kafka.bootstrap_servers: expected"),
    ],
)
def test_a_mistake_is_a_sentence_and_nothing_is_written(
    options: list[str], said: str, strange: str, tmp_path: Path
) -> None:
    (tmp_path / "there.toml").write_text("")
    given = options if "--bootstrap-servers" in options else ["--bootstrap-servers", strange, *options]
    ended = _run(tmp_path, None, "init", *given)
    assert ended.returncode == 1
    assert ended.stderr.startswith("liveboard: ")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert {file.name for file in tmp_path.iterdir()} == {"there.toml"}


def test_questions_are_asked_in_a_terminal(strange: str, tmp_path: Path) -> None:
    answers = [
        ("Where is Kafka", strange),
        ("Which topics", "99"),
        (r"found \"99\".*\s*Which topics", "5, shop.products"),
        ("Join orders with products", ""),
        ("Write liveboard.toml", "y"),
    ]
    code, shown = _in_a_terminal(tmp_path, answers, "init", "--name", "mine2")
    assert code == 0, shown
    listed = re.findall(r"^ +\d+  (\S+)  \((\d) partition", shown, re.MULTILINE)
    offered = sorted([NESTED, KEYED, CHANGES, AVRO, TEXT, "empty"])
    assert listed == [(topic, "3" if topic == NESTED else "1") for topic in offered]
    settings = config.load(tmp_path / "liveboard.toml", {})
    assert list(settings.board.sources) == ["orders", "products"]
    assert settings.board.name == "mine2"

    code, shown = _in_a_terminal(tmp_path, [("Replace it", "")], "init")
    assert code == 0
    assert "nothing is written" in shown
    assert config.load(tmp_path / "liveboard.toml", {}) == settings


def test_the_shop_is_inspected_as_it_is_produced(strange: str, tmp_path: Path) -> None:
    Admin({"bootstrap.servers": strange}).create(["shop.customers"])
    ended = _run(tmp_path, strange, "sample", "--like", "shop", "--rate", "0", "--count", "500")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("500 events sent to shop.orders, shop.products and shop.customers\n")
    customers, _ = _inspected(tmp_path, strange, "shop.customers")
    assert customers["board"]["sources"]["customers"]["format"] == "debezium"
