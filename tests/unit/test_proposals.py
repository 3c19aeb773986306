"""Which joins are proposed for topics, and how a configuration of them is written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from typing import Any

import pytest

from liveboard.commands.dialogue import Dialogue
from liveboard.commands.init import chosen_topics
from liveboard.config import KafkaSettings, SaslSettings, Secret
from liveboard.contract.errors import LiveboardError
from liveboard.inspect.board import board_toml, secrets, source_names, table_names
from liveboard.inspect.formats import SampledRecord
from liveboard.inspect.joins import Proposal, proposals
from liveboard.inspect.topic import Topic, describe


def _topic(documents: Iterable[dict[str, Any]], key: str | None = None, *, compacted: bool = False) -> Topic:
    records = [SampledRecord(json.dumps(one).encode(), str(one[key]).encode() if key else None) for one in documents]
    return describe("t", records, compacted=compacted)


ORDERS = _topic({"orderId": n, "productId": f"p{n % 5}", "status": "paid"} for n in range(50))
PRODUCTS = _topic(({"productId": f"p{n}", "status": "new"} for n in range(10)), "productId", compacted=True)
PRICES = _topic({"productId": f"p{n % 4}", "price": n} for n in range(20))


def test_many_records_per_key_are_joined_to_a_table_by_key() -> None:
    expected = [Proposal("orders", "products", "productId", "left", met=5, of=5)]
    assert proposals({"orders": ORDERS, "products": PRODUCTS}) == expected
    assert proposals({"products": PRODUCTS, "orders": ORDERS}) == expected


def test_a_side_whose_values_all_differ_is_one_per_key() -> None:
    single = _topic({"productId": f"p{n}", "name": "x"} for n in range(3))
    assert proposals({"single": single, "orders": ORDERS}) == [Proposal("orders", "single", "productId", "left", 3, 5)]


def test_two_sides_with_many_records_per_key_are_joined_as_of_their_time() -> None:
    assert proposals({"prices": PRICES, "orders": ORDERS}) == [Proposal("orders", "prices", "productId", "asof", 4, 5)]


@pytest.mark.parametrize(
    "other",
    [
        [{"productId": f"q{n}"} for n in range(5)],
        [{"productId": n} for n in range(5)],
        [{"status": "paid"}, {"status": "paid"}],
        [{"other": "p1"}],
    ],
    ids=["no value meets", "another type", "a few values everywhere", "another name"],
)
def test_nothing_is_proposed_without_a_reason(other: list[dict[str, Any]]) -> None:
    assert proposals({"orders": ORDERS, "other": _topic(other)}) == []


def test_a_name_that_means_little_is_no_reason() -> None:
    ids = _topic({"id": n} for n in range(5))
    assert proposals({"one": ids, "two": ids}) == []


def test_a_table_by_key_is_joined_on_its_key_only() -> None:
    stock = _topic(({"stockId": n, "productId": f"p{n}"} for n in range(5)), "stockId", compacted=True)
    assert proposals({"orders": ORDERS, "stock": stock}) == []


def test_sources_are_named_by_the_ends_of_their_topics() -> None:
    topics = ["shop.orders", "old.orders", "2026-events", "a b".replace(" ", "-"), "Orders"]
    assert source_names(topics) == {
        "shop.orders": "orders",
        "old.orders": "old_orders",
        "2026-events": "t2026_events",
        "a-b": "a_b",
        "Orders": "Orders_2",
    }


def test_no_two_tables_have_one_name() -> None:
    joins = [Proposal("a", "b", "x", "left"), Proposal("a", "b", "y", "left"), Proposal("rejects", "ui", "x", "left")]
    tables, joined = table_names(["a", "b", "rejects"], joins)
    assert tables == {"a": "a_ui", "b": "b_ui", "rejects": "rejects_ui_2"}
    assert joined == ["a_b", "a_b_2", "rejects_ui_3"]


def test_secrets_and_examples_are_not_written() -> None:
    sasl = SaslSettings(mechanism="PLAIN", username="ada", password=Secret("hidden"))
    kafka = KafkaSettings(bootstrap_servers="kafka:9092", security_protocol="SASL_SSL", sasl=sasl)
    text = board_toml(kafka, "mine", {"orders": ORDERS}, [])
    assert tomllib.loads(text)["kafka"] == {
        "bootstrap_servers": "kafka:9092",
        "security_protocol": "SASL_SSL",
        "sasl": {"mechanism": "PLAIN", "username": "ada"},
    }
    assert "hidden" not in text
    assert "LIVEBOARD_KAFKA_SASL_PASSWORD" in text
    assert "paid" not in text
    assert secrets(kafka) == {"LIVEBOARD_KAFKA_SASL_PASSWORD": "hidden"}


def test_topics_are_chosen_by_number_or_name() -> None:
    topics = ["a", "b", "10"]
    assert chosen_topics(["2", "a", "b"], topics) == ["b", "a"]
    assert chosen_topics(["10"], topics) == ["10"]
    assert chosen_topics(["all"], topics) == topics
    for words, found in ((["4"], 'found "4"'), (["bb"], 'such as b, found "bb"'), ([], "found none")):
        with pytest.raises(LiveboardError, match=found):
            chosen_topics(words, topics)


def test_a_question_is_asked_until_the_answer_can_be_used() -> None:
    answers = iter(["nonsense", "", "what", "y"])
    said: list[str] = []

    def understood(answer: str) -> int:
        if not answer.isdecimal():
            raise LiveboardError(f"expected a number, found {answer}")
        return int(answer)

    dialogue = Dialogue(said.append, lambda _: next(answers))
    assert dialogue.ask("How many?", understood, "7") == 7
    assert dialogue.confirm("Sure?", default=False)
    assert said == ["expected a number, found nonsense", 'expected y or n, found "what"']


def test_the_end_of_the_input_is_a_sentence() -> None:
    def ended(_: str) -> str:
        raise EOFError

    with pytest.raises(LiveboardError, match="expected an answer, found the end of the input"):
        Dialogue(lambda _: None, ended).confirm("Sure?", default=True)
