"""The columns of a source as a table: `city = { type = "string", path = "customer.address.city" }`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from liveboard.config.values import InnerErrors, Spec, choice, describe, parse_toml
from liveboard.contract.errors import LiveboardError, nearest
from liveboard.contract.paths import WHOLE, Path, parse_path, path_text
from liveboard.contract.schema import Column, SchemaError, check_name, read_type

KEYS = ("type", "path", "unit", "from")
UNITS = ("s", "ms", "us")
HEADER = "headers."
# What else of a Kafka record can be a column, and the type that it has; None where any can be asked for.
ORIGINS = {"key": None, "partition": "int", "offset": "bigint", "timestamp": "timestamp"}
_NAMED_BY = f"{', '.join(ORIGINS)} or {HEADER}NAME"


def read_columns(table: object) -> tuple[Column, ...]:
    """The columns that a table of the configuration means; InnerErrors names everything that is wrong with it."""
    if not isinstance(table, dict):
        raise ValueError("not a table")
    if not table:
        raise LiveboardError('expected at least one column such as userId = "string", found none')
    columns: list[Column] = []
    problems: list[tuple[tuple[str, ...], str]] = []
    for name, written in table.items():
        try:
            check_name(name, columns)
            columns.append(_column(name, written))
        except InnerErrors as error:
            problems += [((name, *at), text) for at, text in error.problems]
        except LiveboardError as error:
            problems.append(((name,), str(error)))
    if not problems:
        problems = [((name,), text) for name, text in _problems(columns)]
    if problems:
        raise InnerErrors(problems)
    return tuple(columns)


Columns = Annotated[
    tuple[Column, ...],
    Spec(
        'a table of columns such as userId = "string"',
        read_columns,
        from_text=lambda text: parse_toml(text, "LIVEBOARD_BOARD_SOURCES_…_COLUMNS"),
    ),
]


def _column(name: str, written: object) -> Column:
    if isinstance(written, str):
        return Column(name, read_type(name, written))
    if not isinstance(written, dict):
        raise LiveboardError(f'expected a type such as "string", or a table with one, found {describe(written)}')
    for word in written:
        if word not in KEYS:
            raise InnerErrors([((word,), f"unknown key, the nearest known one is {nearest(word, KEYS)}")])
    origin = _at("from", _origin, written, "")
    path = _at("path", _path, written, None)
    if origin and path is not None:
        raise LiveboardError("expected either a path or from, found both")
    type_ = _at("type", lambda text: read_type(name, _text(text)), written, "")
    fixed = ORIGINS.get(origin) if origin else ""
    if fixed and type_ not in ("", fixed):
        raise InnerErrors([(("type",), f'expected "{fixed}" for the {origin}, or nothing, found "{written["type"]}"')])
    type_ = fixed or type_ or ("string" if origin else "")
    if not type_:
        raise InnerErrors([(("type",), 'expected a type such as "string", found nothing')])
    unit = _at("unit", choice(*UNITS).read, written, "")
    if unit and (type_ != "timestamp" or fixed):
        raise InnerErrors([(("unit",), f'expected no unit, since only timestamps of numbers have one, found "{unit}"')])
    if path == () and type_ != "json":
        raise InnerErrors([(("type",), f'expected "json" for the path {WHOLE}, found "{written["type"]}"')])
    return Column(name, type_, path if path != (name,) else None, unit, origin)


def _at(word: str, read: Callable[[object], Any], written: Mapping[str, object], otherwise: Any) -> Any:
    try:
        return read(written[word]) if word in written else otherwise
    except LiveboardError as error:
        raise InnerErrors([((word,), str(error))]) from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise SchemaError(f'expected a text such as "string", found {describe(value)}')
    return value


def _path(value: object) -> Path | None:
    return parse_path(_text(value))


def _origin(value: object) -> str:
    word = _text(value)
    if word in ORIGINS or (word.startswith(HEADER) and word != HEADER):
        return word
    known = nearest(word, [*ORIGINS, f"{HEADER}NAME"])
    raise LiveboardError(f'expected {_NAMED_BY}, found "{word}", did you mean {known}?')


def _problems(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """The problems that columns have with each other, each with the column's name."""
    in_values = [column for column in columns if not column.origin]
    if not in_values:
        return [
            (columns[0].name, "expected at least one column that is in the value, found only those of Kafka itself")
        ]
    written: dict[Path, Path] = {}
    problems = []
    for column in in_values:
        for length in range(1, len(column.steps) + 1):
            path = column.steps[:length]
            folded = tuple(step.lower() if isinstance(step, str) else step for step in path)
            other = written.setdefault(folded, path)
            if other != path:
                # Spark would take the two for one.
                found = f'"{path_text(path)}" and "{path_text(other)}"'
                problems.append(
                    (column.name, f"expected paths that differ in more than upper and lower case, found {found}")
                )
                break
    return problems
