"""Which statements may be asked: one SELECT, over tables that the asker sees, and nothing else.

DuckDB parses it, and its syntax tree is walked: what is not known to be harmless is refused. So a statement that
writes, sets, attaches, loads or reads a file is refused before anything runs it; and what runs it, the `sandbox`, could
not do it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column

MOST_CHARACTERS = 20_000

_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EXPRESSION_LIST", "EMPTY", "PIVOT", "TABLE_FUNCTION"}
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
# They tell of the server, wait, or keep something.
_REFUSED = {
    "add_parquet_key",
    "current_connection_id",
    "current_query",
    "current_query_id",
    "current_setting",
    "current_transaction_id",
    "currval",
    "get_block_size",
    "getenv",
    "getvariable",
    "json_deserialize_sql",
    "json_execute_serialized_sql",
    "json_serialize_plan",
    "json_serialize_sql",
    "nextval",
    "setseed",
    "setval",
    "sleep_ms",
    "stats",
    "txid_current",
    "user_agent",
    "vector_type",
    "write_log",
}
_REFUSED_BEGINNINGS = (
    "pg_",
    "has_",
    "inet_",
    "duckdb_",
    "pragma_",
    "read_",
    "parquet_",
    "in_search_path",
    "current_schema",
)
# What they give is another thing each time.
_PASSING = {
    "ago",
    "current_date",
    "current_localtime",
    "current_localtimestamp",
    "current_time",
    "current_timestamp",
    "gen_random_uuid",
    "get_current_time",
    "get_current_timestamp",
    "localtime",
    "localtimestamp",
    "now",
    "random",
    "today",
    "transaction_timestamp",
    "uuid",
    "uuidv4",
    "uuidv7",
}
# Where things stand in the text, and what they are called in the result.
_BESIDE = {"alias", "query_location", "query_location_length", "qualified_name"}


@dataclass(frozen=True)
class Statement:
    """A SELECT that may be asked."""

    sql: str
    columns: Mapping[str, tuple[str, ...]]
    """The tables that it names, and of each the columns that it needs."""
    grouped_by: tuple[int, ...] | None
    """Which columns of the result tell its rows apart; None where the statement does not say."""


class StatementReader:
    """DuckDB's parser, and what may be in the trees that it makes; for one thread."""

    def __init__(self) -> None:
        self._parser = duckdb.connect(":memory:", config={"threads": "1", "enable_external_access": "false"})
        names = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
        self._aggregates = frozenset(name for (name,) in self._parser.sql(names).fetchall())

    def read(self, sql: str, tables: Mapping[str, Sequence[Column]], *, lasting: bool = False) -> Statement:
        """The statement; otherwise a FrameError that says what was expected and what was found.

        `lasting` is for one whose answer is kept up to date: what it says must depend on the tables alone.
        """
        if len(sql) > MOST_CHARACTERS:
            raise bad(f"expected a statement of up to {MOST_CHARACTERS:,} characters, found {len(sql):,}")
        text = sql.strip().strip(";").strip()
        try:
            node = self._parsed(text)
            needed = _needed(node, tables, lasting)
            return Statement(text, needed, _grouping(node, self._aggregates))
        except RecursionError:
            raise bad("expected a statement that is less deeply nested, found this one") from None

    def close(self) -> None:
        """Lets the parser go."""
        self._parser.close()

    def _parsed(self, text: str) -> dict[str, Any]:
        if "\0" in text:
            raise bad("expected a text, found a zero byte in it")
        try:
            [(answer,)] = self._parser.sql("SELECT json_serialize_sql($text)", params={"text": text}).fetchall()
        except (duckdb.Error, UnicodeError) as error:
            raise bad(f"expected one SELECT statement, found: {error_text(error)}") from None
        found = json.loads(answer)
        if found["error"]:
            what = found["error_message"]
            if found["error_type"] == "not implemented":
                what = "another kind of statement"
            raise bad(f"expected one SELECT statement, found: {what}")
        if len(found["statements"]) != 1:
            raise bad(f"expected one SELECT statement, found {len(found['statements'])}")
        if found["statements"][0]["named_param_map"]:
            raise bad("expected a statement without parameters, found one with them")
        node: dict[str, Any] = found["statements"][0]["node"]
        return node


def bad(message: str) -> FrameError:
    """What is wrong with a statement."""
    return FrameError(Code.BAD_SQL, message)


def _needed(node: dict[str, Any], tables: Mapping[str, Sequence[Column]], lasting: bool) -> dict[str, tuple[str, ...]]:
    """The columns that a tree needs of each table that it names; a FrameError if it has what is not allowed."""
    known = {name.lower(): name for name in tables}
    named: dict[str, None] = {}
    words: set[str] = set()
    own = set(_own_names(node))
    whole = False
    for part in _parts(node):
        if "class" in part:
            _check_expression(part, lasting)
            whole = whole or part["class"] in ("STAR", "POSITIONAL_REFERENCE")
        elif "alias" in part and "sample" in part:
            _check_source(part)
            whole = whole or part["type"] == "PIVOT" or part.get("ref_type") == "NATURAL"
            if part["type"] == "BASE_TABLE":
                name = part["table_name"].lower()
                if name in known:
                    named[known[name]] = None
                elif name not in own:
                    raise _unknown(tables, part["table_name"])
        elif "modifiers" in part and part["type"] not in _NODES:
            raise bad(f"expected a SELECT, found {part['type']}")
        if lasting and part.get("sample"):
            raise bad("expected a statement whose answer depends on the tables alone, found a SAMPLE in it")
        words.update(_words(part))
    # A table's own name as a value is its whole row.
    aliases = {part["alias"].lower() for part in _parts(node) if part.get("alias") and "sample" in part}
    rows = {name.lower() for name in named} | aliases
    whole = whole or any(
        part["column_names"][-1].lower() in rows for part in _parts(node) if part.get("class") == "COLUMN_REF"
    )
    columns = {}
    for name in named:
        every = [column.name for column in tables[name]]
        needed = every if whole else [column for column in every if column.lower() in words]
        # Rows are counted by a column.
        columns[name] = tuple(needed or every[-1:])
    return columns


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of the syntax tree."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _parts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _parts(value)


def _words(part: dict[str, Any]) -> Iterator[str]:
    """All that could be the name of a column."""
    for value in part.values():
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str):
                yield word.lower()


def _own_names(node: Any) -> Iterator[str]:
    """What the statement itself names in WITH."""
    for part in _parts(node):
        for entry in part.get("cte_map", {}).get("map", ()):
            yield entry["key"].lower()
        if part.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
            yield str(part.get("cte_name", part.get("ctename", ""))).lower()


def _check_source(part: dict[str, Any]) -> None:
    kind = part["type"]
    if kind == "SHOW_REF":
        raise bad("expected a SELECT, found SHOW, DESCRIBE or SUMMARIZE")
    if kind not in _SOURCES:
        raise bad(f"expected tables and subqueries to select from, found {kind}")
    if kind == "BASE_TABLE" and (part["schema_name"] or part["catalog_name"]):
        place = part["catalog_name"] or part["schema_name"]
        raise bad(f'expected the name of a table alone, found "{place}" in front of "{part["table_name"]}"')
    if kind == "TABLE_FUNCTION":
        name = str(part["function"].get("function_name", "")).lower()
        if name not in _TABLE_FUNCTIONS:
            allowed = ", ".join(sorted(_TABLE_FUNCTIONS))
            raise bad(f'expected tables to select from, or one of {allowed}, found the function "{name[:100]}"')
    if kind == "PIVOT" and any(pivot.get("pivot_enum") or pivot.get("subquery") for pivot in part["pivots"]):
        raise bad("expected a PIVOT with the values it makes columns of, found one without")


def _check_expression(part: dict[str, Any], lasting: bool) -> None:
    if part["class"] == "FUNCTION" or "function_name" in part:
        name = str(part.get("function_name", "")).lower()
        if part.get("schema") or part.get("catalog"):
            raise bad(f'expected the name of a function alone, found a schema in front of "{name[:100]}"')
        if name in _REFUSED or name.startswith(_REFUSED_BEGINNINGS):
            raise bad(f'expected functions of values, found "{name[:100]}", which is about the server')
    elif part["class"] == "COLUMN_REF" and len(part["column_names"]) == 1:
        name = part["column_names"][0].lower()
    else:
        return
    if lasting and name in _PASSING:
        hint = "; for the newest time use max(ts)" if "random" not in name and "uuid" not in name else ""
        raise bad(f'expected a statement whose answer depends on the tables alone, found "{name}"{hint}')


def _grouping(node: dict[str, Any], aggregates: frozenset[str]) -> tuple[int, ...] | None:
    """Which columns of the result are what it is grouped by, if all of that is in it."""
    if node["type"] != "SELECT_NODE" or any(part.get("class") == "STAR" for part in node["select_list"]):
        return None
    selected = node["select_list"]
    if any(each["type"] == "DISTINCT_MODIFIER" and not each["distinct_on_targets"] for each in node["modifiers"]):
        return tuple(range(len(selected)))
    if node["aggregate_handling"] == "FORCE_AGGREGATES":
        return tuple(place for place, part in enumerate(selected) if not _aggregated(part, aggregates)) or None
    places: dict[int, None] = {}
    for group in node["group_expressions"]:
        place = _place(group, selected)
        if place is None:
            return None
        places[place] = None
    return tuple(places) or None


def _place(group: dict[str, Any], selected: Sequence[dict[str, Any]]) -> int | None:
    if group["class"] == "CONSTANT":
        number = group.get("literal", {}).get("text", "")
        return int(number) - 1 if number.isdigit() and 0 < int(number) <= len(selected) else None
    meant = _bare(group)
    for place, part in enumerate(selected):
        is_named = group["class"] == "COLUMN_REF" and part["alias"].lower() == group["column_names"][-1].lower()
        if is_named or _bare(part) == meant:
            return place
    return None


def _bare(part: Any) -> Any:
    """The expression alone; a column by its last name."""
    if isinstance(part, list):
        return [_bare(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("class") == "COLUMN_REF":
        return part["column_names"][-1].lower()
    return {name: _bare(value) for name, value in part.items() if name not in _BESIDE}


def _aggregated(part: Any, aggregates: frozenset[str]) -> bool:
    return any(str(each.get("function_name", "")).lower() in aggregates for each in _parts(part))


def _unknown(tables: Mapping[str, object], name: str) -> FrameError:
    known = ", ".join(tables) or "none is loaded yet"
    return FrameError(Code.UNKNOWN_TABLE, f'expected a table ({known}), found "{name[:100]}"')


def error_text(error: Exception) -> str:
    """What DuckDB says of a statement, in one line, without the advice about settings that cannot be changed here."""
    text = str(error).partition("Possible solutions:")[0].partition("Database is launched")[0]
    return " ".join(text.split())[:500]
