"""The board of a configuration: its default, what each key may be, and whether the parts fit together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from liveboard.config import values
from liveboard.config.aggregates import check_aggregate
from liveboard.config.columns import Columns
from liveboard.config.document import Document, Key, build, check_distinct
from liveboard.config.wording import expected_one_of, key_types
from liveboard.contract.board import (
    LARGEST_VALUE_BYTES,
    Aggregate,
    Alert,
    Board,
    Join,
    Source,
    SourceMode,
    View,
)
from liveboard.contract.errors import LiveboardError
from liveboard.contract.filters import read_filter
from liveboard.contract.formats import FormatName
from liveboard.contract.joins import JOIN_KINDS, JoinKind
from liveboard.contract.names import DEFAULT_BOARD_NAME, Names, is_reserved_table
from liveboard.contract.tables import table_columns
from liveboard.contract.types import column_type

DEFAULT_ORIGIN = "the default board"
DEFAULT_BOARD = """
[sources.users]
topic = "users"
schema = "userId string, name string, email string, age bigint"
table = "users_ui"

[sources.accounts]
topic = "accounts"
schema = "userId string, accountType string, balance double"
table = "accounts_ui"

[joins.final_ui]
left = "users"
right = "accounts"
on = "userId"
how = "left"

[joins.user_account]
left = "accounts"
right = "users"
on = "userId"
how = "asof"

[aggregates.by_type]
source = "accounts"
by = ["accountType"]

[aggregates.by_type.measures]
accounts = "count(*)"
total = "sum(balance)"
largest = "max(balance)"
newest = "max(ts)"

[alerts.overdrawn]
table = "final_ui"
when = [["balance", "<", 0]]

[views.exposure]
sql = '''
SELECT accountType, count(*) AS users, round(sum(balance), 2) AS total, round(avg(age), 1) AS meanAge
FROM final_ui WHERE accountType IS NOT NULL GROUP BY accountType ORDER BY total DESC
'''
"""


@dataclass(frozen=True, kw_only=True)
class SourceSettings(Source):
    """[board.sources.<name>]"""

    topic: values.Topic
    table: values.TableName
    schema: values.SchemaText = ""
    columns: Columns = ()
    format: FormatName = "json"
    avro_schema_file: values.Text = ""
    on_error: Literal["reject", "null"] = "reject"
    max_value_bytes: Annotated[int, values.integer(1, LARGEST_VALUE_BYTES)] = 1_048_576
    mode: SourceMode = "append"
    key: values.KeyColumns = ()


@dataclass(frozen=True, kw_only=True)
class JoinSettings(Join):
    """[board.joins.<name>]"""

    left: values.Text
    right: values.Text
    on: values.Text
    how: Annotated[JoinKind, values.choice(*JOIN_KINDS, loose=True)]
    history: values.HistoryDepth = None


@dataclass(frozen=True, kw_only=True)
class AggregateSettings(Aggregate):
    """[board.aggregates.<name>]"""

    source: values.Text
    measures: values.Measures
    by: values.KeyColumns = ()
    where: values.Text = ""
    window: values.Milliseconds = 0
    slide: values.Milliseconds = 0
    keep: values.Milliseconds = 0


@dataclass(frozen=True, kw_only=True)
class AlertSettings(Alert):
    """[board.alerts.<name>]; `secret` signs what is sent to addresses."""

    table: values.TableName
    when: values.Conditions
    for_: values.OptionalInterval = None
    """For how long without a break the conditions must hold before it is told."""
    notify: values.Receivers = ()
    secret: values.SecretText = values.NO_SECRET


@dataclass(frozen=True, kw_only=True)
class ViewSettings(View):
    """[board.views.<name>]"""

    sql: values.FilledText
    key: values.KeyColumns = ()


@dataclass(frozen=True, kw_only=True)
class BoardSettings(Board):
    """[board]"""

    name: values.BoardName = DEFAULT_BOARD_NAME
    sources: Mapping[str, SourceSettings] = field(default_factory=dict)
    joins: Mapping[str, JoinSettings] = field(default_factory=dict)
    aggregates: Mapping[str, AggregateSettings] = field(default_factory=dict)
    alerts: Mapping[str, AlertSettings] = field(default_factory=dict)
    views: Mapping[str, ViewSettings] = field(default_factory=dict)


def default_board() -> BoardSettings:
    """The board of a configuration that has none."""
    board: BoardSettings = build(Document(default_tables(), DEFAULT_ORIGIN), BoardSettings)
    return board


def default_tables() -> dict[str, Any]:
    """What the file of the default board would hold."""
    return values.parse_toml(DEFAULT_BOARD, DEFAULT_ORIGIN)


def check_board(document: Document, board: Board) -> None:
    """Names every problem that the parts of a board have with each other."""
    before = len(document.problems)
    # what is declared, because a source with a problem of its own is not in the board
    declared = list(document.get(("board", "sources")) or ())
    if not declared:
        document.problem(("board", "sources"), "expected at least one source, found none")
    sources: dict[Key, Source] = {("board", "sources", name): source for name, source in board.sources.items()}
    tables: dict[Key, str] = {(*at, "table"): source.table for at, source in sources.items()}
    derived = ("joins", "aggregates", "views")
    tables |= {("board", part, name): name for part in derived for name in getattr(board, part)}
    check_distinct(document, "source name", {at: source.name for at, source in sources.items()}, str.lower)
    check_distinct(document, "topic", {(*at, "topic"): source.topic for at, source in sources.items()}, str)
    check_distinct(document, "table name", tables, str.lower)
    for at, table in tables.items():
        if is_reserved_table(table):
            document.problem(at, f'expected a name that liveboard does not use itself, found "{table}"')
    for at, source in sources.items():
        if Names(board.name).owns(source.topic):
            expected = f'expected a topic that the board "{board.name}" does not write itself'
            document.problem((*at, "topic"), f'{expected}, found "{source.topic}"')
        _check_key(document, at, source)
    for name in declared:
        _check_columns(document, ("board", "sources", name))
    for join in board.joins.values():
        _check_join(document, board, join, declared)
    for aggregate in board.aggregates.values():
        check_aggregate(document, board, aggregate, declared)
    check_distinct(document, "alert name", {("board", "alerts", name): name for name in board.alerts}, str.lower)
    joins = document.get(("board", "joins")) or ()
    is_whole = len(declared) == len(board.sources) and len(joins) == len(board.joins)
    # Otherwise it is not known which columns there are.
    if is_whole and len(document.problems) == before:
        for alert in board.alerts.values():
            _check_alert(document, board, alert)
    # If a table is wrong itself, statements over it would be blamed as well.
    if not document.problems:
        _check_views(document, board)


def _check_alert(document: Document, board: Board, alert: Alert) -> None:
    at, tables, names = ("board", "alerts", alert.name), table_columns(board), Names(board.name)
    if alert.table not in tables:
        document.problem((*at, "table"), expected_one_of("a table of the pipeline", tables, alert.table))
        return
    try:
        read_filter(tables[alert.table], alert.when)
    except LiveboardError as error:
        document.problem((*at, "when"), str(error))
    taken = {source.topic for source in board.sources.values()} | {names.control}
    for topic in (to.removeprefix("topic:") for to in alert.notify if to.startswith("topic:")):
        if topic in taken or (names.owns(topic) and topic != names.alerts):
            expected = "expected a topic that nobody else on the board reads or writes"
            document.problem((*at, "notify"), f'{expected}, found "{topic}"')


def _check_views(document: Document, board: Board) -> None:
    given = [view for view in board.views.values() if document.origin(("board", "views", view.name)) != DEFAULT_ORIGIN]
    if not given:
        return
    # Imported here, since DuckDB takes its time, and most commands have no view to check.
    from liveboard.sql.check import view_problems

    for name, problem in view_problems(board):
        document.problem(("board", "views", name, "sql"), problem)


def _check_key(document: Document, at: Key, source: Source) -> None:
    if not source.by_key:
        if source.key:
            expected = 'expected no key where mode is "append": every record is a row of its own'
            document.problem((*at, "key"), f'{expected}; found {_listed(source.key)}, set mode = "upsert" to use it')
        return
    if not source.key:
        document.problem((*at, "key"), "expected the column, or columns, that tell the rows apart, found nothing")
    types = {column.name: column.type for column in source.columns}
    for name in source.key:
        if name not in types:
            document.problem((*at, "key"), expected_one_of(f"a column of {source.name}", types, name))
        elif why := column_type(types[name]).not_a_key:
            found = f"{types[name]} in {name}"
            document.problem((*at, "key"), f"expected a column of type {key_types()}, found {found}: {why}")


def _check_columns(document: Document, at: Key) -> None:
    if not isinstance(document.get(at), dict):
        return
    given = [word for word in ("schema", "columns") if document.get((*at, word)) is not None]
    if not given:
        expected = 'expected a schema such as "userId string, age bigint", or a table of columns'
        document.problem((*at, "schema"), f"{expected}, found nothing")
    if len(given) > 1:
        document.problem((*at, "columns"), "expected either a schema or columns, found both")


def _check_join(document: Document, board: Board, join: Join, declared: list[str]) -> None:
    at = ("board", "joins", join.name)
    for side, name in (("left", join.left), ("right", join.right)):
        if declared and name not in declared:
            document.problem((*at, side), expected_one_of("a source", declared, name))
    if join.left == join.right:
        document.problem((*at, "right"), f'expected a source other than the left one, found "{join.right}"')
        return
    types: dict[str, str] = {}
    joined = [board.sources[name] for name in (join.left, join.right) if name in board.sources]
    for source in joined:
        columns = {column.name: column.type for column in source.columns}
        if join.on in columns:
            types[source.name] = columns[join.on]
        else:
            document.problem((*at, "on"), expected_one_of(f"a column of {source.name}", columns, join.on))
    for name, type_ in types.items():
        if why := column_type(type_).not_a_key:
            expected = f"expected a column of type {key_types()}"
            document.problem((*at, "on"), f"{expected}, found {type_} in {name}: {why}")
    if len(set(types.values())) > 1:
        found = " and ".join(f"{type_} in {name}" for name, type_ in types.items())
        document.problem((*at, "on"), f"expected a column of the same type in both sources, found {found}")
    for source in joined:
        if source.by_key and source.key and source.name in types and source.key != (join.on,):
            expected = (
                f"expected the key of {source.name} ({_listed(source.key)}), since a table by key is joined on it"
            )
            document.problem((*at, "on"), f'{expected}, found "{join.on}"')


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
