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
    ours = names.Names()
    topic = ours.changelog(names.generation_id(number), table)
    assert topic == f"liveboard.g{number}.{table}"
    assert ours.generation_of(topic) == f"g{number}"
    assert names.Names("other").generation_of(topic) is None
    assert names.generation_number(f"g{number}") == number


@pytest.mark.parametrize(
    "topic",
    [
        names.Names().status,
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
    assert names.Names().generation_of(topic) is None


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


BOARDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,29}", fullmatch=True)


@given(st.sets(BOARDS, min_size=1, max_size=4), st.sets(st.from_regex(r"[a-z.-]{1,12}", fullmatch=True)))
def test_b35_boards_share_no_topic_and_hide_no_other(boards: set[str], others: set[str]) -> None:
    topics: dict[str, str] = {}
    for board in boards:
        ours = names.Names(board)
        own = [ours.status, ours.verdicts, ours.owner, ours.saved]
        own += [ours.changelog("g1", "users_ui"), ours.repairs("g1")]
        assert all(map(ours.owns, own))
        assert not topics.keys() & {*own, ours.control}
        assert all(names.is_topic_name(topic) for topic in own)
        topics |= dict.fromkeys([*own, ours.control], board)
    for topic, board in topics.items():
        assert not any(names.Names(other).owns(topic) for other in boards - {board})
    free = others - topics.keys()
    assert set(names.without_boards([*topics, *free], names.Names(min(boards)))) == free


def test_topics_that_only_look_like_those_of_a_board_are_not_hidden() -> None:
    topics = [
        "order-status",
        "order.g1.lines",
        "liveboard-news",
        "liveboard.g1.users_ui",
        "orders",
        "__consumer_offsets",
    ]
    assert names.without_boards(topics, names.Names("other")) == topics[:-1]
    assert names.without_boards(topics, names.Names()) == ["order-status", "order.g1.lines", "liveboard-news", "orders"]


@pytest.mark.parametrize("name", ["", "a.b", "a b", "-a", "a" * 31, "é", "a\n"])
def test_not_board_names(name: str) -> None:
    assert not names.is_board_name(name)
