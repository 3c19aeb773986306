"""Whether an aggregate fits its source."""

from collections.abc import Iterable

from liveboard.config.document import Document, Key
from liveboard.config.wording import expected_one_of, key_types
from liveboard.contract.aggregates import columns_of, group_columns, parse_measure
from liveboard.contract.board import Aggregate, Board, Source
from liveboard.contract.errors import LiveboardError
from liveboard.contract.expressions import parse_condition
from liveboard.contract.schema import Column, check_name
from liveboard.contract.types import column_type

# Every record is counted once in each window that it falls into.
_MOST_WINDOWS = 100


def check_aggregate(document: Document, board: Board, aggregate: Aggregate, declared: Iterable[str]) -> None:
    """Names every problem that an aggregate has, by itself and with its source."""
    at = ("board", "aggregates", aggregate.name)
    _check_windows(document, at, aggregate)
    source = board.sources.get(aggregate.source)
    if source is None:
        if declared and aggregate.source not in declared:
            document.problem((*at, "source"), expected_one_of("a source", declared, aggregate.source))
        return
    if source.by_key and aggregate.keep:
        expected = f"expected no keep over {source.name}, a table by key, whose rows go when they are removed"
        document.problem((*at, "keep"), f"{expected}, found one")
    if _check_by(document, at, aggregate, source):
        _check_measures(document, at, aggregate, source)
    if aggregate.where:
        try:
            parse_condition(aggregate.where, columns_of(source))
        except LiveboardError as error:
            document.problem((*at, "where"), str(error))


def _check_windows(document: Document, at: Key, aggregate: Aggregate) -> None:
    for word in ("slide", "keep"):
        if getattr(aggregate, word) and not aggregate.window:
            document.problem((*at, word), f"expected no {word} without a window, found one")
    if aggregate.window and aggregate.slide:
        windows, rest = divmod(aggregate.window, aggregate.slide)
        if rest or not 1 <= windows <= _MOST_WINDOWS:
            expected = f"expected a duration that goes into the window up to {_MOST_WINDOWS} times without a rest"
            document.problem((*at, "slide"), f"{expected}, found {aggregate.slide} ms of {aggregate.window} ms")


def _check_by(document: Document, at: Key, aggregate: Aggregate, source: Source) -> bool:
    types = {column.name: column.type for column in source.columns}
    is_right = True
    for name in aggregate.by:
        if name not in types:
            document.problem((*at, "by"), expected_one_of(f"a column of {source.name}", types, name))
        elif why := column_type(types[name]).not_a_key:
            found = f"{types[name]} in {name}"
            document.problem((*at, "by"), f"expected a column of type {key_types()}, found {found}: {why}")
        else:
            continue
        is_right = False
    return is_right


def _check_measures(document: Document, at: Key, aggregate: Aggregate, source: Source) -> None:
    columns: list[Column] = []
    for column in group_columns(aggregate, source):
        try:
            check_name(column.name, columns)
        except LiveboardError as error:
            document.problem((*at, "by"), str(error))
        columns.append(column)
    for name, text in aggregate.measures.items():
        try:
            check_name(name, columns)
            measure = parse_measure(name, text, columns_of(source))
            columns.append(Column(name, measure.type))
        except LiveboardError as error:
            document.problem((*at, "measures", name), str(error))
