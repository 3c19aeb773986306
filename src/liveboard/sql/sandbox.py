"""A DuckDB that has nothing but the tables it is given: no file, no network, no extension, no setting to change."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa

from liveboard.arrow import arrow_type
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.sql.lateness import is_late
from liveboard.sql.result import columns_of
from liveboard.sql.statement import bad, error_text

_BATCH = 10_000
_MEGABYTE = 10**6


class Sandbox:
    """Runs statements that `read_statement` let through, one at a time, in one thread."""

    def __init__(self, memory_mb: int, rows: int, seconds: float) -> None:
        self._memory_mb, self._rows, self._seconds = memory_mb, rows, seconds
        self._root = duckdb.connect(
            ":memory:",
            config={
                "threads": "1",
                "memory_limit": f"{memory_mb}MB",
                # What does not fit is an error, and not a file.
                "temp_directory": "",
                "allow_community_extensions": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        self._root.execute("SET enable_external_access = false")
        self._root.execute("SET lock_configuration = true")
        # The first answer reserves a gigabyte of addresses, which must not count as what a statement takes.
        self.answer("SELECT sum(x) FROM numbers", {"numbers": pa.table({"x": pa.array([1], pa.int64())})})

    def columns(self, sql: str, tables: Mapping[str, Sequence[Column]]) -> list[Column]:
        """The columns of the answer; a FrameError where the statement does not fit the tables."""
        empty = {
            name: pa.schema([(column.name, arrow_type(column.kind)) for column in columns]).empty_table()
            for name, columns in tables.items()
        }
        with self._prepared(sql, empty) as relation:
            return columns_of(relation.columns, [str(type_) for type_ in relation.types])[0]

    def answer(self, sql: str, tables: Mapping[str, pa.Table]) -> tuple[list[Column], pa.Table]:
        """The columns and the rows; a FrameError where there is none within the limits."""
        with self._prepared(sql, tables) as relation:
            columns, casts = columns_of(relation.columns, [str(type_) for type_ in relation.types])
            limited = relation.project(", ".join(casts)).limit(self._rows + 1)
            found = limited.to_arrow_reader(_BATCH).read_all()
        if len(found) > self._rows:
            raise over(f"expected an answer of up to {self._rows:,} rows (server.limits.sql_rows), found more")
        return columns, found

    def close(self) -> None:
        """Frees everything."""
        self._root.close()

    @contextlib.contextmanager
    def _prepared(self, sql: str, tables: Mapping[str, pa.Table]) -> Iterator[duckdb.DuckDBPyRelation]:
        cursor = self._root.cursor()
        done, interrupted = threading.Event(), threading.Event()

        def interrupt() -> None:
            if is_late(done, self._seconds, time.process_time):
                interrupted.set()
                cursor.interrupt()

        try:
            _start(threading.Thread(target=interrupt, daemon=True))
            for name, table in tables.items():
                cursor.register(name, table)
            yield cursor.sql(sql)
        except (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError):
            raise over(
                f"expected a statement that needs up to {self._memory_mb:,} MB of memory "
                "(server.limits.sql_memory_mb), found one that needs more"
            ) from None
        except duckdb.InterruptException:
            raise late(self._seconds) from None
        except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
            if interrupted.is_set():
                raise late(self._seconds) from None
            raise bad(f"expected a statement that can be answered, found: {error_text(error)}") from None
        finally:
            done.set()
            cursor.close()


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError:
        raise MemoryError from None


def late(seconds: float) -> FrameError:
    """A statement took too long."""
    return over(
        f"expected a statement that is answered within {seconds:g} s (server.limits.sql_seconds), "
        "found one that takes longer"
    )


def over(message: str) -> FrameError:
    """A statement wants more than it may have."""
    return FrameError(Code.OVER_LIMIT, message)
