import pytest
from hypothesis import given
from hypothesis import strategies as st

from liveboard.contract import schema
from liveboard.contract.schema import Column, SchemaError, join_columns, parse_schema
from liveboard.contract.types import TYPES

PLAIN = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
NAMES = st.one_of(PLAIN, st.text(min_size=1, max_size=8)).filter(lambda name: name.lower() != "ts")
COLUMNS = st.lists(
    st.builds(Column, NAMES, st.sampled_from([*sorted(TYPES.keys() - {"decimal"}), "decimal(10,2)", "decimal(38,0)"])),
    min_size=1,
    max_size=6,
    unique_by=lambda column: column.name.lower(),
)


def parse_error(text: str) -> str:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    return str(caught.value)


def test_an_ordinary_schema() -> None:
    assert parse_schema("userId string,  name STRING ,age BigInt") == (
        Column("userId", "string"),
        Column("name", "string"),
        Column("age", "bigint"),
    )


def test_backquotes_hold_anything() -> None:
    assert parse_schema("`a, b``c` int") == (Column("a, b`c", "int"),)


@given(COLUMNS, st.data())
def test_any_schema_written_comes_back(columns: list[Column], data: st.DataObject) -> None:
    blank = st.sampled_from([" ", "  ", "\t", "\n "])
    words = []
    for column in columns:
        quoted = "`" + column.name.replace("`", "``") + "`"
        plain = schema._NAME.fullmatch(column.name) and data.draw(st.booleans())
        type_ = data.draw(st.sampled_from([column.type, column.type.upper(), column.type.title()]))
        words.append((column.name if plain else quoted) + data.draw(blank) + type_)
    text = (data.draw(st.sampled_from(["", " "])) + ",").join(words)
    assert parse_schema(text) == tuple(columns)


@given(st.text(alphabet="ab1 ,`\n.:string()", max_size=40))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        outcome = " ".join(f"`{c.name}` {c.type}" for c in parse_schema(text))
    except SchemaError as error:
        outcome = str(error)
    assert outcome.startswith(("expected ", "`"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["at least one column", "found nothing"]),
        ("   ", ["at least one column", "found nothing"]),
        ("a", ['expected a type for "a"', "found nothing"]),
        ("a int,", ['expected a column after "a int"', "found nothing"]),
        (",a int", ["expected a column at the start", "found nothing"]),
        ("a int b int", ['a comma or the end after "a int"', 'found "b"']),
        ("a: int", ["expected a column name", 'found "a:"']),
        ("1a int", ["expected a column name", 'found "1a"']),
        (
            "a bigit",
            [
                "string, boolean, int, bigint, double, decimal(p,s), date, timestamp, json or binary",
                'found "bigit"',
                "mean bigint?",
            ],
        ),
        ("a long", ['found "long", did you mean bigint?']),
        ("a Float64", ['found "Float64", did you mean double?']),
        ("a integer", ["did you mean int?"]),
        ("`a int", ["two backquotes"]),
        ("`` int", ["two backquotes"]),
        ("Ts timestamp", ["Kafka timestamp"]),
        ("`tS` int", ["Kafka timestamp"]),
        ("a int, A string", ['found "A" twice']),
    ],
)
def test_errors_say_what_was_expected_and_found(text: str, parts: list[str]) -> None:
    message = parse_error(text)
    assert [part for part in parts if part not in message] == []


def test_no_hint_for_a_type_like_no_other() -> None:
    assert "did you mean" not in parse_error("a xyzzy")


def test_source_tables_end_with_ts() -> None:
    assert schema.source_columns(parse_schema("a int")) == (Column("a", "int"), Column("ts", "timestamp"))


def test_joined_columns_of_the_default_board() -> None:
    users = parse_schema("name string, userId string, age bigint")
    accounts = parse_schema("accountType string, userId string, balance double")
    names = [column.name for column in join_columns(users, accounts, "userId", "accounts")]
    assert names == ["userId", "name", "age", "accountType", "balance", "ts"]


def test_a_taken_name_gets_prefixes_until_it_is_free() -> None:
    left = parse_schema("k int, name string, r_NAME string")
    right = parse_schema("k int, Name double, r_r_name date, K2 int")
    assert join_columns(left, right, "k", "r")[3:] == (
        Column("r_r_Name", "double"),
        Column("r_r_r_name", "date"),
        Column("K2", "int"),
        Column("ts", "timestamp"),
    )


@given(COLUMNS, COLUMNS, PLAIN)
def test_joined_columns_are_distinct_and_complete(left: list[Column], right: list[Column], name: str) -> None:
    key = Column("the key", "int")
    left = [*(c for c in left if c.name != key.name), key]
    right = [key, *(c for c in right if c.name != key.name)]
    joined = join_columns(left, right, key.name, name)
    assert len({column.name.lower() for column in joined}) == len(joined)
    assert joined[: len(left)] == (key, *left[:-1])
    assert [column.type for column in joined[len(left) :]] == [*(c.type for c in right[1:]), "timestamp"]
    assert all(got.name.endswith(c.name) for got, c in zip(joined[len(left) :], right[1:], strict=False))
    assert joined[-1] == Column("ts", "timestamp")
