"""B12, B13: what control messages ask for, and what is said about those that ask for nothing that can be done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boards
import pytest
from hypothesis import given
from hypothesis import strategies as st

from liveboard.contract import control
from liveboard.contract.board import Wiring
from liveboard.contract.control import FIRST_JOIN, control_message, judge
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names

BOARD = boards.default_board(how="inner")
NAMES = Names()
# The page's tests read them too: it builds its messages itself.
EXAMPLES: dict[str, Any] = json.loads(Path(control.__file__).with_name("control.json").read_text())


def asked(document: Any, board: Any = BOARD) -> Wiring:
    return judge(json.dumps(document).encode(), board, board.wiring, NAMES)


def wiring(users: str = "u", accounts: str = "a", final: str = "left", asof: str = "asof") -> Wiring:
    return Wiring({"users": users, "accounts": accounts}, {"final_ui": final, "user_account": asof})


SHORT = {"usersTopic": "u", "accountsTopic": "a"}


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("left", "left"),
        (" Left\t", "left"),
        ("INNER", "inner"),
        ("inner join", "inner"),
        ("innermost", "inner"),
        (" AsOf ", "asof"),
        ("", "left"),
        (None, "left"),
    ],
)
def test_b12_join_types_are_read_generously(word: str | None, kind: str) -> None:
    assert asked({**SHORT, "joinType": word}) == wiring(final=kind)


def test_b12_without_a_join_type_the_first_join_is_a_left_one_and_the_others_are_as_configured() -> None:
    assert asked(SHORT) == wiring()


def test_b12_blanks_around_topics_and_unknown_fields_do_not_matter() -> None:
    assert asked({"usersTopic": " u ", "accountsTopic": "a\n", "by": {"whom": 1}}) == wiring()


def test_the_general_form_can_name_every_join_and_leaves_the_others_as_configured() -> None:
    topics = {"users": "u", "accounts": "a"}
    assert asked({"topics": topics}) == wiring(final="inner")
    assert asked({"topics": topics, "joins": {"final_ui": "asof", "user_account": "LEFT"}}) == wiring(
        "u", "a", "asof", "left"
    )


NOW = wiring("u9", "a9", "inner", "left")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"topics": {"users": "u"}}, wiring("u", "a9", "inner", "left")),
        ({"joins": {"user_account": "asof"}}, wiring("u9", "a9", "inner", "asof")),
        ({"topics": {"accounts": "a"}, "joinType": "asof"}, wiring("u9", "a", "asof", "left")),
        ({"topics": {}, "joinType": " ", "joins": {"final_ui": "asof"}}, wiring("u9", "a9", "asof", "left")),
        # The short form's join type is left where it names none, B12.
        ({"usersTopic": "u"}, wiring("u", "a9", "left", "left")),
        ({"joinType": "asof"}, wiring("u9", "a9", "asof", "left")),
    ],
)
def test_b36_what_a_message_does_not_name_stays_as_it_is(document: Any, expected: Wiring) -> None:
    assert judge(json.dumps(document).encode(), BOARD, NOW, NAMES) == expected


@given(
    topics=st.dictionaries(st.sampled_from(["users", "accounts"]), st.sampled_from(["t1", "t2", "t3"])),
    joins=st.dictionaries(
        st.sampled_from(["", "final_ui", "user_account"]), st.sampled_from(["left", "inner", "asof"])
    ),
)
def test_b36_the_one_builder_changes_what_it_was_told_and_nothing_else(topics: Any, joins: Any) -> None:
    value = json.dumps(control_message(topics, joins)).encode()
    if (not topics and not joins) or len(set(topics.values())) < len(topics):
        with pytest.raises(LiveboardError):
            judge(value, BOARD, NOW, NAMES)
        return
    found = judge(value, BOARD, NOW, NAMES)
    assert found.topics == {**NOW.topics, **topics}
    first = {"final_ui": joins[""]} if "" in joins else {}
    assert found.joins == {**NOW.joins, **first, **{name: kind for name, kind in joins.items() if name}}


@pytest.mark.parametrize("case", EXAMPLES["cases"], ids=lambda case: json.dumps(case["changed"]))
def test_b36_the_message_of_a_change_asks_for_the_wiring_that_was_chosen(case: Any) -> None:
    live, changed = EXAMPLES["live"], case["changed"]
    now, chosen = (
        wiring(at["usersTopic"], at["accountsTopic"], at["joinType"], "left") for at in (live, {**live, **changed})
    )
    assert judge(json.dumps(case["message"]).encode(), BOARD, now, NAMES) == chosen


@pytest.mark.parametrize("case", EXAMPLES["cases"], ids=lambda case: json.dumps(case["changed"]))
def test_b36_the_one_builder_makes_the_message_of_a_change(case: Any) -> None:
    named = case["changed"] or EXAMPLES["live"]
    topics = {source: named[f"{source}Topic"] for source in BOARD.sources if f"{source}Topic" in named}
    joins = {FIRST_JOIN: named["joinType"]} if "joinType" in named else {}
    assert control_message(topics, joins) == case["message"]


def test_boards_of_any_sources_have_both_forms() -> None:
    topics = {"orders": "o", "items": "i", "trucks": "t"}
    joins = {"order_items": "inner", "order_trucks": "asof", "order_pairs": "inner"}
    short = {**{f"{source}Topic": topic for source, topic in topics.items()}, "joinType": "inner"}
    assert (
        asked(short, boards.SHIPPING)
        == asked({"topics": topics, "joins": joins}, boards.SHIPPING)
        == Wiring(topics, joins)
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "expected a JSON object, found a message without a value"),
        (b"", "expected a JSON object, found "),
        (b"{", "expected a JSON object, found {"),
        (b"[]", "expected a JSON object, found []"),
        (b"null", "expected a JSON object, found null"),
        (b"\xff\xfe", "expected a JSON object, found "),
        (b"{}", "expected at least one of usersTopic, accountsTopic, joinType, topics, joins, found none of them"),
        (b'{"users":"u"}', "expected at least one of usersTopic, accountsTopic, joinType, topics, joins, found none"),
        (b'{"joins":{}}', "expected at least one of usersTopic, accountsTopic, joinType, topics, joins, found none"),
        (b'{"usersTopic":"u","accountsTopic":null}', "accountsTopic: expected a topic name (1 to 249 letters, "),
        (b'{"usersTopic":"u","accountsTopic":" "}', "accountsTopic: expected a topic name "),
        (b'{"usersTopic":"u","accountsTopic":7}', "accountsTopic: expected a topic name "),
        (b'{"usersTopic":"u","accountsTopic":"a b"}', "accountsTopic: expected a topic name "),
        (
            b'{"usersTopic":"u","accountsTopic":"liveboard.g1.users_ui"}',
            "accountsTopic: expected a topic that the board ",
        ),
        (
            b'{"usersTopic":"u","accountsTopic":"u"}',
            'accountsTopic: expected a topic of its own, found "u" as in usersT',
        ),
        (
            b'{"usersTopic":"u","accountsTopic":"liveboard-control"}',
            'accountsTopic: expected a topic of its own, found "liveboard-control" as in control.topic',
        ),
        (
            b'{"usersTopic":"u","accountsTopic":"a","joinType":"outer"}',
            'joinType: expected left, inner or asof, found "o',
        ),
        (b'{"usersTopic":"u","accountsTopic":"a","joinType":1}', "joinType: expected left, inner or asof, found 1"),
        (b'{"topics":"u"}', 'topics: expected an object, found "u"'),
        (b'{"topics":{"users":null}}', "topics.users: expected a topic name (1 to 249 letters, digits, "),
        (
            b'{"topics":{"users":"accounts"}}',
            'the topic of accounts: expected a topic of its own, found "accounts" as in',
        ),
        (
            b'{"topics":{"users":"u","acounts":"a"}}',
            'topics: expected one of users, accounts, found "acounts", did you mean accounts?',
        ),
        (
            b'{"topics":{"users":"u","accounts":"a"},"joins":{"final":"left"}}',
            'joins: expected one of final_ui, user_account, found "final", did you mean final_ui?',
        ),
        (
            b'{"topics":{"users":"u","accounts":"a"},"joins":{"final_ui":"x"}}',
            'joins.final_ui: expected left, inner or asof, found "x"',
        ),
    ],
)
def test_b13_a_message_that_cannot_be_followed_says_why(value: bytes | None, reason: str) -> None:
    with pytest.raises(LiveboardError) as error:
        judge(value, BOARD, BOARD.wiring, NAMES)
    assert str(error.value).startswith(reason)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=5)
    | st.sampled_from(["u", "a", "inner"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["users", "accounts", "final_ui", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_FIELDS = st.sampled_from(["usersTopic", "accountsTopic", "joinType", "topics", "joins", "x"])


@given(value=st.binary(max_size=30) | st.dictionaries(_FIELDS, _JSON).map(lambda d: json.dumps(d).encode()))
def test_b13_any_bytes_are_a_wiring_of_the_board_or_one_line_about_why_not(value: bytes) -> None:
    found, why = None, ""
    try:
        found = judge(value, BOARD, BOARD.wiring, NAMES)
    except LiveboardError as error:
        why = str(error)
    if found is None:
        assert why.isprintable()
        assert 0 < len(why) < 500
    else:
        assert list(found.topics) == ["users", "accounts"]
        assert len({*found.topics.values(), "liveboard-control"}) == 3
        assert set(found.joins.values()) <= {"left", "inner", "asof"}
