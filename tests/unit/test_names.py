import pytest
from hypothesis import given
from hypothesis import strategies as st

from liveboard.contract import names

TABLES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,30}", fullmatch=True)


@pytest.mark.parametrize("name", ["users_ui", "_", "A1", "x" * 300])
def test_table_names(name: str) -> None:
    assert names.is_table_name(name)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "a b", "users_ui\n", "é", "a\x00"])
def test_not_table_names(name: str) -> None:
    assert not names.is_table_name(name)


@given(st.integers(1, 10**9), TABLES)
def test_changelog_topics_come_back(number: int, table: str) -> None:
    topic = names.changelog_topic(names.generation_id(number), table)
    assert topic == f"liveboard.g{number}.{table}"
    assert names.parse_changelog_topic(topic) == (f"g{number}", table)
    assert names.generation_number(f"g{number}") == number


@pytest.mark.parametrize(
    "topic",
    [
        names.STATUS_TOPIC,
        "users",
        "liveboard.g0.t",
        "liveboard.g01.t",
        "liveboard.g1.",
        "liveboard.g1.a.b",
        "liveboard.g1.t\n",
        "x.liveboard.g1.t",
    ],
)
def test_other_topics_are_no_changelogs(topic: str) -> None:
    assert names.parse_changelog_topic(topic) is None


@pytest.mark.parametrize("text", ["", "g", "g0", "g-1", "1", "G1", "g1\n"])
def test_bad_generation_ids(text: str) -> None:
    with pytest.raises(ValueError, match="expected a generation id"):
        names.generation_number(text)


def test_generations_count_from_one() -> None:
    assert names.generation_id(1) == "g1"
    with pytest.raises(ValueError, match="found 0"):
        names.generation_id(0)


def test_reserved_tables_in_any_case() -> None:
    assert all(map(names.is_reserved_table, ("rejects_ui", "Control_Raw", "ORCHESTRATOR_STATUS")))
    assert not names.is_reserved_table("users_ui")
