"""The process that answers statements: it holds the columns they need, and a server tells it what changes in them.

It is a process of its own so that nothing a statement does can hold up the server: neither its lock, nor its memory. A
statement that goes on after its time, because it does not listen, is ended with the process.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.sql import messages
from liveboard.sql.columns import ColumnTable
from liveboard.sql.messages import (
    Asked,
    Begun,
    ColumnPair,
    Forget,
    Load,
    Prepare,
    Prepared,
    Put,
    Refused,
    Run,
    SqlAnswer,
    StatementLimits,
    Told,
)
from liveboard.sql.result import Row, changed, encoded
from liveboard.sql.sandbox import Sandbox, over
from liveboard.sql.statement import StatementReader, bad

_MEGABYTE = 10**6
_LARGEST_ANSWER = 64 * _MEGABYTE
# Less than the server's share of a busy machine.
_NICENESS = 10


class Worker:
    """Everything that the process has."""

    def __init__(self, limits: StatementLimits) -> None:
        self._limits = limits
        self._reader = StatementReader()
        self._sandbox = Sandbox(limits.memory_mb, limits.rows, limits.seconds)
        self._tables: dict[int, ColumnTable] = {}
        self._last: dict[int, tuple[list[ColumnPair], list[Row]]] = {}
        # The processor's time that changed rows took since the last answer; tables that begin are not counted.
        self._beginning: set[int] = set()
        self._taken_s = 0.0

    def take(self, asked: Load | Put | Forget) -> None:
        """What needs no answer."""
        match asked:
            case Load():
                self._tables[asked.table] = ColumnTable([Column(*pair) for pair in asked.columns], asked.needed)
                self._beginning.add(asked.table)
            case Put():
                began = time.process_time()
                self._tables[asked.table].put(asked.rows)
                if asked.table not in self._beginning:
                    self._taken_s += time.process_time() - began
            case Forget():
                self._tables.pop(asked.table, None)
                self._last.pop(asked.live, None)

    def answer(self, asked: Prepare | Run) -> Told:
        """The answer, or why there is none."""
        try:
            with _bounded(self._limits.memory_mb):
                return self._prepared(asked) if isinstance(asked, Prepare) else self._answered(asked)
        except FrameError as error:
            return Refused(error.code, str(error))
        except MemoryError:
            most = f"{self._limits.memory_mb:,} MB of memory"
            return Refused(Code.OVER_LIMIT, f"expected a statement that needs up to {most}, found one that needs more")

    def close(self) -> None:
        """Frees everything."""
        self._reader.close()
        self._sandbox.close()

    def _prepared(self, asked: Prepare) -> Prepared:
        tables = {name: [Column(*pair) for pair in columns] for name, columns in asked.tables.items()}
        statement = self._reader.read(asked.sql, tables, lasting=asked.lasting)
        columns = self._sandbox.columns(statement.sql, {name: tables[name] for name in statement.columns})
        return Prepared(
            [(column.name, column.type) for column in columns],
            {name: list(needed) for name, needed in statement.columns.items()},
            key_places(asked.key, columns) if asked.key else _listed(statement.grouped_by),
        )

    def _answered(self, asked: Run) -> SqlAnswer:
        # Of the processor: on a busy machine a statement waits as well as it works.
        began = time.process_time() - self._taken_s
        self._taken_s = 0.0
        self._beginning.clear()
        tables = {name: self._tables[table].arrow() for name, table in asked.tables.items()}
        columns, found = self._sandbox.answer(asked.sql.strip().strip(";"), tables)
        rows = encoded(found, columns, asked.key)
        if sum(len(row) for _, row in rows) > _LARGEST_ANSWER:
            raise over(f"expected an answer of up to {_LARGEST_ANSWER // _MEGABYTE} MB, found a larger one")
        pairs = [(column.name, column.type) for column in columns]
        # Where the columns are others, the rows are a new table's.
        last = self._last.get(asked.live) if asked.known else None
        before = last[1] if last is not None and last[0] == pairs else []
        if asked.live:
            self._last[asked.live] = pairs, rows
        return SqlAnswer(pairs, len(rows), changed(before, rows), time.process_time() - began)


def key_places(key: list[str], columns: list[Column]) -> list[int]:
    """Where in an answer the columns are that tell its rows apart; a FrameError if one is missing."""
    names = [column.name for column in columns]
    for name in key:
        if name not in names:
            raise bad(f'expected a column of the answer ({", ".join(names)}) as key, found "{name}"')
    return [names.index(name) for name in key]


def serve(worker: Worker, asking: BinaryIO, telling: BinaryIO) -> None:
    """Answers until nobody asks any more."""
    while (body := messages.read(asking)) is not None:
        asked: Asked = messages.asked_decoder.decode(body)
        if isinstance(asked, Prepare | Run):
            messages.write(telling, Begun())
            telling.flush()
            messages.write(telling, worker.answer(asked))
            telling.flush()
        else:
            worker.take(asked)


@contextlib.contextmanager
def _bounded(memory_mb: int) -> Iterator[None]:
    """Lets the process grow by so much; not all that DuckDB allocates is counted by its own limit."""
    try:
        with open("/proc/self/statm") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        yield
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + 2 * memory_mb * _MEGABYTE + 256 * _MEGABYTE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _listed(places: tuple[int, ...] | None) -> list[int] | None:
    return None if places is None else list(places)


def main() -> None:
    """Answers on standard input and output; the limits are its argument."""
    limits = msgspec.json.decode(sys.argv[1], type=StatementLimits)
    asking, telling = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What is printed by mistake must not come between the answers.
    os.dup2(2, 1)
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(BrokenPipeError):
        serve(Worker(limits), asking, telling)


if __name__ == "__main__":
    main()
