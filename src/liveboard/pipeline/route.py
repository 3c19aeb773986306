"""Every record to the memories that it belongs to, with what its own row needs.

An entry is struct(memory, key, place, side, origin, cut, record):

- `memory`, `key`, `side`: where it is remembered. `key` is the JSON text of the join key, `side` is left or right.
- `place`: null, or the topic and partition of a record that is not remembered, because it has no key or no join. It
  stands in for the key there, so that such records neither match each other nor pile up.
- `origin`: whose row it is, an index into `own_tables`; null where another entry of the record tells it.
- `record`: struct(ts, partition, offset, body), as joins take it; `cut` is where the key belongs in its body, or null
  where the key is in it. A record that removes the row of its key has no body.

Where the board has aggregates, an entry can count in a group: its key is then the JSON text of the group, and `values`
follows, with what is counted. Where groups end, `until` follows too, with the time when this one does.
`pipeline/aggregates.py` says more of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from liveboard.contract.board import Board, Source
from liveboard.contract.formats import FORMATS
from liveboard.contract.names import REJECTS_TABLE
from liveboard.contract.schema import REJECT_COLUMNS, Column
from liveboard.pipeline.aggregates import (
    UNTIL,
    VALUES,
    Grouping,
    counted,
    until,
    values_type,
    window_starts,
    window_texts,
)
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.encode import base64_text, json_members, json_value
from liveboard.pipeline.joins import SIDES, SideName
from liveboard.pipeline.kept import kept
from liveboard.pipeline.memory import Memory, board_groupings, memories
from liveboard.pipeline.parse import NO_SCHEMAS, OF_SOURCE, REMOVED, parse, row_column
from liveboard.pipeline.rows import change, key_of_row, position

# Enough to see what a refused record was; the record itself stays in its topic.
REJECTED_VALUE_CHARACTERS = 65_536
_NO_MEMORY = -1
_NULL = "null"


@dataclass(frozen=True)
class OwnTable:
    """The table of a record's own row, and what the row's key is made of."""

    table: str
    by_key: bool = False
    """Whether that is the key of the table, or else the record's position."""
    is_reject: bool = False
    """Then the key names the topic too, since rejects are of all sources."""


def own_tables(board: Board) -> list[OwnTable]:
    """Each source's table, then the rejects of each source."""
    sources = board.sources.values()
    return [
        *[OwnTable(source.table, by_key=source.by_key) for source in sources],
        *[OwnTable(REJECTS_TABLE, is_reject=True) for _ in sources],
    ]


def entries(records: DataFrame, board: Board, schemas: Mapping[str, AvroSchemas] = NO_SCHEMAS) -> DataFrame:
    """Kafka records as entries; one that is in several memories has one for each."""
    parsed = parse(records, list(board.sources.values()), schemas)
    # In a projection of their own, so that each text is made once, however often it is used.
    texts = parsed.select(*_all_texts(board.shape))
    return texts.select(F.explode(_all_entries(board.shape)).alias("entry")).select("entry.*")


@kept
def _all_texts(board: Board) -> list[Expr]:
    """Of a parsed record, all that its entries are made of."""
    sources, grouped = list(board.sources.values()), board_groupings(board)
    plain = ["topic", OF_SOURCE, "partition", "offset", "ts"]
    plain += [REMOVED] if any(source.by_key for source in sources) else []
    plain += ["timestamp"] if any(grouping.aggregate.window for grouping in grouped) else []
    return [
        *map(F.col, plain),
        *[_texts(source).alias(source.name) for source in sources],
        _reject_body(sources).alias("reject"),
        *[counted(g, grouped, F.col(row_column(g.source))).alias(_counted(g)) for g in grouped],
    ]


@kept
def _all_entries(board: Board) -> Expr:
    """The entries of a record, as an array; null where it has none."""
    sources, grouped = list(board.sources.values()), board_groupings(board)
    found = [_entries_of(source, index, memories(board), grouped) for index, source in enumerate(sources)]
    rejected = [
        F.when(
            (F.col(OF_SOURCE) == source.name) & F.col("reject").isNotNull(),
            F.array(_alone(index, F.col("reject"), _absent(grouped))),
        )
        for index, source in enumerate(sources, len(sources))
    ]
    return F.coalesce(*found, *rejected)


def own_row(board: Board, key: Expr, record: Expr, cut: Expr, origin: Expr, place: Expr, counts: Expr) -> Expr:
    """The changelog record of an entry's own row; null where another entry tells it.

    `place` is the topic, partition and offset of a record that is not remembered. In a table by key only the record
    that `counts` has a row.
    """
    body = record["body"]
    members = F.concat(F.left(body, cut), F.coalesce(F.concat(F.lit(","), key), F.lit("")), F.substr(body, cut + 1))
    if any(not memory.joins for memory in memories(board)):
        members = F.when(cut.isNull(), body).otherwise(members)
    value = F.concat(F.lit("["), F.substr(members, F.lit(2)), F.lit(',"'), record["ts"], F.lit('"]'))
    rows = []
    for index, each in enumerate(own_tables(board)):
        row_key = key_of_row(key) if each.by_key else place if each.is_reject else position(record)
        mine = (origin == index) & counts if each.by_key else origin == index
        rows.append(F.when(mine, change(each.table, row_key, value)))
    return F.coalesce(*rows)


def _texts(source: Source) -> Expr:
    """The JSON text of every column of the source's row; null where there is no such row."""
    row = F.col(row_column(source))
    texts = [json_value(row[column.name], column).alias(column.name) for column in source.columns]
    return F.when(row.isNotNull(), F.struct(*texts))


def _reject_body(sources: Sequence[Source]) -> Expr:
    """What the rejects show of a refused record; null for others."""
    text = F.call_function("make_valid_utf8", F.col("value").cast("string"))
    shown = F.substring(text, 1, REJECTED_VALUE_CHARACTERS)
    if binary := [source.name for source in sources if not FORMATS[source.format].is_text]:
        # Whole groups of three bytes, so that what is shown can be decoded.
        bytes_ = base64_text(F.substring("value", 1, REJECTED_VALUE_CHARACTERS // 4 * 3))
        shown = F.when(F.col(OF_SOURCE).isin(binary), bytes_).otherwise(shown)
    row = F.struct("topic", "partition", "offset", "reason", shown.alias("value"))
    return F.when(F.col("reason").isNotNull(), json_members(row, REJECT_COLUMNS[:-1]))


def _entries_of(
    source: Source, origin: int, board_memories: Sequence[Memory], board_groupings: Sequence[Grouping]
) -> Expr:
    """All entries of a record of the source; null for other records."""
    used = [(m, side) for m in board_memories for side in SIDES if m.source(side) == source]
    extras = _absent(board_groupings)
    if used:
        own = [_remembered(*each, source, None if number else origin, extras) for number, each in enumerate(used)]
    else:
        own = [F.array(_alone(origin, _body(source, source.columns), extras))]
    groups = [_grouped(grouping, extras) for grouping in board_groupings if grouping.source == source]
    return F.when(F.col(source.name).isNotNull(), F.concat(*own, *groups))


def _grouped(grouping: Grouping, extras: Mapping[str, Expr]) -> Expr:
    """The record's entries in an aggregate, one for each window; none if it does not count."""
    aggregate, values = grouping.aggregate, F.col(_counted(grouping))
    texts = [F.col(grouping.source.name)[name] for name in aggregate.by]
    nothing = {part: F.lit(None).cast("string") for part in ("place", "side", "body")}
    numbers = {part: F.lit(None).cast("int") for part in ("origin", "cut")}

    def entry(start: Expr | None) -> Expr:
        windows = [] if start is None else window_texts(aggregate, start)
        key = _joined([*texts, *windows]) if texts or windows else F.lit("")
        counted = {VALUES: values, UNTIL: until(aggregate, start) if start is not None else extras.get(UNTIL)}
        given = {name: expr for name, expr in counted.items() if expr is not None and name in extras}
        return _entry(memory=F.lit(grouping.id), key=key, **nothing, **numbers, extras=given)

    starts = window_starts(aggregate) if aggregate.window else None
    is_sliding = aggregate.slide not in (0, aggregate.window)
    found = F.transform(starts, entry) if starts is not None and is_sliding else F.array(entry(starts))
    return F.when(values.isNotNull(), found).otherwise(F.slice(found, 1, 0))


def _counted(grouping: Grouping) -> str:
    return f"{grouping.aggregate.name}_counted"


def _absent(board_groupings: Sequence[Grouping]) -> dict[str, Expr]:
    """Nulls for the parts that only entries of aggregates use."""
    types = {VALUES: values_type(board_groupings)} if board_groupings else {}
    if any(grouping.ends for grouping in board_groupings):
        types[UNTIL] = "timestamp"
    return {name: F.lit(None).cast(type_) for name, type_ in types.items()}


def _remembered(memory: Memory, side: SideName, source: Source, origin: int | None, extras: Mapping[str, Expr]) -> Expr:
    """The record's entry in a memory, if there is a use for it."""
    names = [column.name for column in source.columns]
    key = _joined([F.col(source.name)[name] for name in memory.on])
    if memory.joins:
        place = names.index(memory.on[0])
        cut = F.length(_body(source, source.columns[:place])) if place else F.lit(0)
        body = _body(source, memory.other_columns(side))
    else:
        cut, body = F.lit(None).cast("int"), _body(source, source.columns)
    has_key = key != _NULL
    entry = _entry(
        memory=F.lit(memory.id),
        key=key,
        place=F.lit(None).cast("string") if source.by_key else F.when(~has_key, _place()),
        side=F.lit(side),
        origin=F.lit(origin).cast("int"),
        cut=cut,
        body=F.when(~F.col(REMOVED), body) if source.by_key else body,
        extras=extras,
    )
    if origin is not None or source.by_key or memory.keeps_null_keys(side):
        return F.array(entry)
    # An empty slice instead of a filter: Spark generates no code for a projection with a lambda in it.
    return F.when(has_key, F.array(entry)).otherwise(F.slice(F.array(entry), 1, 0))


def _alone(origin: int, body: Expr, extras: Mapping[str, Expr]) -> Expr:
    """The entry of a record that takes part in no join."""
    return _entry(
        memory=F.lit(_NO_MEMORY),
        key=F.lit(None).cast("string"),
        place=_place(),
        side=F.lit(None).cast("string"),
        origin=F.lit(origin),
        cut=F.lit(0),
        body=body,
        extras=extras,
    )


def _entry(
    *,
    memory: Expr,
    key: Expr,
    place: Expr,
    side: Expr,
    origin: Expr,
    cut: Expr,
    body: Expr,
    extras: Mapping[str, Expr],
) -> Expr:
    record = F.struct("ts", "partition", "offset", body.alias("body"))
    parts = {"memory": memory, "key": key, "place": place, "side": side, "origin": origin, "cut": cut, "record": record}
    return F.struct(*[part.alias(name) for name, part in {**parts, **extras}.items()])


def _place() -> Expr:
    return F.concat(F.col("topic"), F.lit("-"), F.col("partition").cast("string"))


def _body(source: Source, columns: Sequence[Column]) -> Expr:
    parts = [part for column in columns for part in (F.lit(","), F.col(source.name)[column.name])]
    return F.concat(*parts) if parts else F.lit("")


def _joined(texts: Sequence[Expr]) -> Expr:
    first, *more = texts
    return F.concat(first, *[part for text in more for part in (F.lit(","), text)]) if more else first
