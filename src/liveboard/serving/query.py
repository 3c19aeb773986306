"""What a viewer wants to see of a table, checked against its columns, and its SQL for the mirror.

The contract's module `frames` says what filters, sorts and searches mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from liveboard.config import LimitSettings
from liveboard.contract.filters import Condition, check_length, column_place, read_filter
from liveboard.contract.frames import Order, SortKey
from liveboard.contract.schema import Column

SEPARATOR = "\x1f"
"""What is between the texts of a row where they are kept as one."""

_TEXT_FUNCTIONS = {"contains": "contains", "starts with": "starts_with"}
_SHOWN_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]*)?")
_LIMITS = LimitSettings()


@dataclass(frozen=True)
class Query:
    """A sort, a filter and a search in SQL, equal if they mean the same; with none of them it is the natural order."""

    where: str = ""
    order: str = ""
    parameters: tuple[Any, ...] = ()
    newest: bool = False
    """Whether the table's own order is meant from its end."""

    @property
    def is_natural(self) -> bool:
        """Whether all rows are wanted in the table's own order, from either end."""
        return not self.where and not self.order

    @property
    def order_by(self) -> str:
        """The whole order."""
        return f"{self.order}pos{' DESC' if self.newest else ''}"

    @property
    def sorted_by(self) -> list[str]:
        """The columns that the order is made of."""
        return [term.split()[0] for term in self.order.split(", ")[:-1]]


NATURAL = Query()


def compile_query(
    columns: Sequence[Column],
    sort: Sequence[SortKey] | None,
    filter: Sequence[Sequence[Any]] | None,
    search: str | None,
    limits: LimitSettings = _LIMITS,
    order: Order = "arrival",
) -> Query:
    """The query; otherwise a FrameError `bad_filter` that says what was expected and what was found."""
    places = {column.name: number for number, column in enumerate(columns)}
    conditions: list[str] = []
    parameters: list[Any] = []
    check_length("search", search, limits.text_length)
    for condition in read_filter(columns, filter or (), limits.conditions, limits.condition_values, limits.text_length):
        sql, values = _condition_sql(condition)
        conditions.append(sql)
        parameters += values
    if search:
        sought = _sought(search)
        where = ["folded"] if SEPARATOR not in search else [f"lower({text})" for text in searched(columns)]
        finds = [f"contains({text}, lower(?))" for text in where for _ in sought]
        conditions.append(f"({' OR '.join(finds)})")
        parameters += sought * len(where)
    directions: dict[int, str] = {}
    for name, direction in sort or ():
        # A column that is named again cannot change the order any more.
        directions.setdefault(column_place(places, name), direction)
    return Query(
        " AND ".join(conditions),
        "".join(f"c{number} {direction} NULLS LAST, " for number, direction in directions.items()),
        tuple(parameters),
        order == "newest",
    )


def searched(columns: Sequence[Column]) -> list[str]:
    """The texts that a search looks into, as SQL."""
    return [_SEARCHED[column.kind.name].format(f"c{number}") for number, column in enumerate(columns)]


def _sought(search: str) -> list[str]:
    """What is looked for: the text, and if it is a number as people write it, the same as it is kept."""
    if not _SHOWN_NUMBER.fullmatch(search):
        return [search]
    digits = search.replace(",", "")
    return list(dict.fromkeys([search, digits.rstrip("0") if "." in digits else digits]))


def _condition_sql(condition: Condition) -> tuple[str, tuple[Any, ...]]:
    sql, operator, values = f"c{condition.place}", condition.operator, condition.values
    match operator:
        case "is null" | "is not null":
            return f"{sql} {operator.upper()}", ()
        case "contains" | "starts with":
            return f"{_TEXT_FUNCTIONS[operator]}(lower({sql}), lower(?))", values
        case "between":
            return f"{sql} BETWEEN ? AND ?", values
        case "in":
            return (f"{sql} IN ({', '.join('?' * len(values))})" if values else "FALSE"), values
        case _:
            return f"{sql} {operator} ?", values


# What a search looks into, by the type of the column.
_SEARCHED = {
    "string": "{}",
    "boolean": "CAST({} AS VARCHAR)",
    "int": "CAST({} AS VARCHAR)",
    "bigint": "CAST({} AS VARCHAR)",
    "double": "CAST({} AS VARCHAR)",
    "decimal": "CAST({} AS VARCHAR)",
    "json": "{}",
    "binary": "{}",
    "date": "{}",
    "timestamp": "replace(replace({}, 'T', ' '), 'Z', '')",
}
