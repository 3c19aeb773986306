"""What SQL may do: the statements that are refused, and what becomes of those that are answered."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import orjson
import pytest

from liveboard.contract.frames import Code
from liveboard.contract.schema import TS, Column
from liveboard.sql.messages import Load, Prepare, Prepared, Put, Refused, Run, SqlAnswer, StatementLimits
from liveboard.sql.result import changed
from liveboard.sql.worker import Worker

ACCOUNTS = (Column("userId", "string"), Column("kind", "string"), Column("balance", "double"), TS)
PAIRS = {"accounts_ui": [(column.name, column.type) for column in ACCOUNTS], "users_ui": [("userId", "string")]}
ROWS = 3_000
WHERE_TABLES_STAND = (
    "SELECT * FROM {}",
    "SELECT count(*) FROM accounts_ui, {}",
    "SELECT userId FROM accounts_ui WHERE userId IN (SELECT 'u1' FROM {})",
    "WITH x AS (SELECT * FROM {}) SELECT 1",
    "SELECT 1 UNION ALL SELECT 2 FROM {}",
    "SELECT (SELECT count(*) FROM {})",
    "SELECT a.userId FROM accounts_ui a LEFT JOIN LATERAL (FROM {}) b ON true",
)
NO_TABLES = (
    "secret_ui",
    "'/etc/passwd'",
    "'data.csv'",
    "'data.parquet'",
    "'https://example.com/x.csv'",
    '"../data.json"',
    "read_csv('/etc/passwd')",
    "read_text('/etc/passwd')",
    "read_blob('/etc/*')",
    "read_parquet('x.parquet')",
    "read_json('x.json')",
    "glob('/*')",
    "sniff_csv('/etc/passwd')",
    "arrow_scan(1, 2, 3)",
    "python_arrow_scan(1, 2, 3)",
    "pandas_scan(1)",
    "seq_scan('accounts_ui')",
    "query('SELECT 1')",
    "query_table('accounts_ui')",
    "json_execute_serialized_sql('{{}}')",
    "duckdb_settings()",
    "duckdb_functions()",
    "duckdb_tables()",
    "duckdb_secrets()",
    "duckdb_extensions()",
    "duckdb_memory()",
    "duckdb_logs()",
    "pragma_version()",
    "pragma_table_info('accounts_ui')",
    "pragma_database_size()",
    "checkpoint()",
    "force_checkpoint()",
    "test_all_types()",
    "repeat('x', 3)",
    "summary(accounts_ui)",
    "which_secret('x', 's3')",
    "main.accounts_ui",
    "temp.accounts_ui",
    "memory.main.accounts_ui",
    "information_schema.tables",
    "pg_catalog.pg_tables",
    "sqlite_master",
    "duckdb_tables",
    "pg_class",
    "(DESCRIBE accounts_ui)",
    "(SHOW TABLES)",
    "(SUMMARIZE accounts_ui)",
)
NO_VALUES = (
    "current_setting('memory_limit')",
    "current_query()",
    "current_schemas(true)",
    "getvariable('x')",
    "getenv('HOME')",
    "nextval('s')",
    "setseed(0.5)",
    "write_log('x')",
    "sleep_ms(100000)",
    "pg_sleep(100000)",
    "pg_get_viewdef(1)",
    "has_table_privilege('accounts_ui', 'select')",
    "json_serialize_sql('SELECT 1')",
    "json_deserialize_sql('{{}}')",
    "txid_current()",
    "main.sum(balance)",
    "system.main.lower(userId)",
    "nothing_like_this(balance)",
    "nothing",
    "?",
    "$1",
)
WHERE_VALUES_STAND = (
    "SELECT {} FROM accounts_ui",
    "SELECT userId FROM accounts_ui WHERE {} IS NOT NULL",
    "SELECT userId FROM accounts_ui ORDER BY {}",
    "SELECT kind FROM accounts_ui GROUP BY kind HAVING max({}) IS NULL",
)
NO_SELECTS = (
    "",
    ";",
    "-- nothing",
    "SELEC 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE accounts_ui",
    "SELECT 1 -- x\n; DELETE FROM accounts_ui",
    "SELECT 1) AS x, (SELECT 2",
    "INSERT INTO accounts_ui VALUES (1)",
    "UPDATE accounts_ui SET balance = 0",
    "DELETE FROM accounts_ui",
    "TRUNCATE accounts_ui",
    "MERGE INTO accounts_ui USING users_ui ON true WHEN MATCHED THEN DELETE",
    "CREATE TABLE x AS SELECT 1",
    "CREATE VIEW x AS SELECT 1",
    "CREATE MACRO x() AS 1",
    "CREATE SECRET x (TYPE s3)",
    "CREATE TYPE x AS ENUM ('a')",
    "CREATE SEQUENCE x",
    "ALTER TABLE accounts_ui ADD COLUMN x INT",
    "DROP TABLE accounts_ui",
    "COPY accounts_ui TO '/tmp/x.csv'",
    "COPY (SELECT 1) TO '/tmp/x.parquet'",
    "COPY accounts_ui FROM '/etc/passwd'",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "ATTACH '/tmp/x.db'",
    "ATTACH ':memory:' AS x",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/x.duckdb_extension'",
    "SET memory_limit = '100GB'",
    "SET enable_external_access = true",
    "SET VARIABLE x = 1",
    "RESET memory_limit",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "PRAGMA table_info('accounts_ui')",
    "CALL pragma_version()",
    "CALL duckdb_settings()",
    "CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "SHOW TABLES",
    "DESCRIBE accounts_ui",
    "SUMMARIZE accounts_ui",
    "COMMENT ON TABLE accounts_ui IS 'x'",
    "PIVOT accounts_ui ON kind USING sum(balance)",
    "SELECT * FROM accounts_ui AT (VERSION => 1)",
    "SELECT 'a' || chr(0) FROM \0",
    "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "SELECT " + "+".join(["1"] * 9_000),
    "SELECT " + "1," * 15_000 + "1",
)
REFUSED = [
    *NO_SELECTS,
    *(place.format(table) for place, table in itertools.product(WHERE_TABLES_STAND, NO_TABLES)),
    *(place.format(value) for place, value in itertools.product(WHERE_VALUES_STAND, NO_VALUES)),
]
# What takes for ever, or more memory than there is.
HEAVY = (
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT * FROM r",
    "SELECT count(*) FROM accounts_ui a, accounts_ui b, accounts_ui c, accounts_ui d",
    "SELECT a.userId, b.userId FROM accounts_ui a, accounts_ui b",
    "SELECT list(a.userId) FROM accounts_ui a, accounts_ui b, accounts_ui c",
    "SELECT string_agg(a.userId) FROM accounts_ui a, accounts_ui b, accounts_ui c",
    "SELECT count(DISTINCT a.userId || b.userId || c.userId) FROM accounts_ui a, accounts_ui b, accounts_ui c",
    "SELECT repeat('x', 4000000000)",
    "SELECT length(repeat('x', 900000000) || userId) FROM accounts_ui",
    "SELECT len(range(1000000000))",
    "SELECT unnest(range(1000000000))",
    "SELECT len(list_sort(range(200000000)))",
    "SELECT count(*) FROM range(10000000000000)",
    "SELECT * FROM generate_series(1, 10000000000)",
    "SELECT lpad('x', 2000000000, 'y')",
)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(StatementLimits(0.5, 100, 5_000))
    worker.take(Load(1, PAIRS["accounts_ui"], [column.name for column in ACCOUNTS]))
    worker.take(Put(1, [(position, _row(position)) for position in range(ROWS)]))
    yield worker
    worker.close()


def _row(number: int, kind: str = "") -> bytes:
    ts = f"2026-01-31T09:{number // 60 % 60:02d}:{number % 60:02d}.000000Z"
    return orjson.dumps([f"u{number}", kind or ("gold", "silver", None)[number % 3], number / 4, ts])


def _ask(worker: Worker, sql: str, *, lasting: bool = False, live: int = 0, known: bool = False) -> SqlAnswer | Refused:
    told = worker.answer(Prepare(sql, PAIRS, lasting, []))
    if isinstance(told, Prepared):
        told = worker.answer(Run(sql, dict.fromkeys(told.needed, 1), told.key, live, known))
    assert isinstance(told, SqlAnswer | Refused)
    return told


def _rows(answer: SqlAnswer | Refused) -> list[tuple[str, list[object]]]:
    assert isinstance(answer, SqlAnswer), answer
    return [(key.decode(), orjson.loads(row)) for _, key, row in answer.rows]


def test_b41_hundreds_of_statements_are_refused_with_a_reason(worker: Worker) -> None:
    assert len(REFUSED) > 400
    answered = [sql for sql in REFUSED if not isinstance(worker.answer(Prepare(sql, PAIRS, False, [])), Refused)]
    assert answered == []
    reasons = {sql: worker.answer(Prepare(sql, PAIRS, False, [])) for sql in REFUSED}
    unclear = [
        sql
        for sql, told in reasons.items()
        if not isinstance(told, Refused) or "expected" not in told.message or "found" not in told.message
    ]
    assert unclear == []


@pytest.mark.parametrize("sql", HEAVY)
def test_b41_what_needs_too_much_ends_in_an_error_and_disturbs_nothing(worker: Worker, sql: str) -> None:
    refused = _ask(worker, sql)
    assert isinstance(refused, Refused)
    assert refused.code is Code.OVER_LIMIT
    assert _rows(_ask(worker, "SELECT count(*) FROM accounts_ui")) == [("0", [ROWS])]


def test_b41_a_table_that_the_key_does_not_show_is_answered_like_none(worker: Worker) -> None:
    hidden, missing = (_ask(worker, f"SELECT * FROM {name}") for name in ("secret_ui", "nowhere_ui"))
    assert hidden == Refused(Code.UNKNOWN_TABLE, 'expected a table (accounts_ui, users_ui), found "secret_ui"')
    assert isinstance(missing, Refused)
    assert missing.code is Code.UNKNOWN_TABLE


@pytest.mark.parametrize(
    ("sql", "needed"),
    [
        ("SELECT count(*) FROM accounts_ui", ["ts"]),
        ("SELECT max(BALANCE) FROM Accounts_UI", ["balance"]),
        ("SELECT sum(a.balance) FROM accounts_ui a JOIN users_ui USING (userId)", ["userId", "balance"]),
        ("SELECT a.* EXCLUDE (ts) FROM accounts_ui a", [column.name for column in ACCOUNTS]),
        ("SELECT a FROM accounts_ui a", [column.name for column in ACCOUNTS]),
        ("WITH accounts_ui AS (SELECT kind FROM accounts_ui) SELECT count(*) FROM accounts_ui", ["kind"]),
    ],
)
def test_only_what_a_statement_names_is_needed(worker: Worker, sql: str, needed: list[str]) -> None:
    told = worker.answer(Prepare(sql, PAIRS, False, []))
    assert isinstance(told, Prepared), told
    assert told.needed["accounts_ui"] == needed


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT kind, count(*) FROM accounts_ui GROUP BY kind", [0]),
        ("SELECT count(*), kind AS k FROM accounts_ui a GROUP BY a.kind", [1]),
        (
            "SELECT kind, date_trunc('minute', ts), count(*) FROM accounts_ui GROUP BY 1, date_trunc('minute', ts)",
            [0, 1],
        ),
        ("SELECT kind, upper(userId) AS u, sum(balance) FROM accounts_ui GROUP BY ALL", [0, 1]),
        ("SELECT DISTINCT kind FROM accounts_ui", [0]),
        ("SELECT count(*) FROM accounts_ui GROUP BY kind", None),
        ("SELECT * FROM accounts_ui", None),
    ],
)
def test_b40_the_key_of_a_row_is_what_the_statement_groups_by(worker: Worker, sql: str, key: list[int] | None) -> None:
    told = worker.answer(Prepare(sql, PAIRS, False, []))
    assert isinstance(told, Prepared), told
    assert told.key == key


def test_values_are_those_of_the_wire(worker: Worker) -> None:
    sql = """SELECT 1::TINYINT AS a, 9223372036854775807 AS b, 2::HUGEINT AS c, 1.50::DECIMAL(5, 2) AS d,
        DATE '2026-01-31' AS e, TIMESTAMPTZ '2026-01-31 10:30:00+01' AS f, 'x'::BLOB AS g, [1, 2] AS h, true AS i,
        'nan'::DOUBLE AS j, INTERVAL 1 DAY AS k, NULL AS l, 1 AS a, {'x': 1} AS m"""
    answer = _ask(worker, sql)
    assert isinstance(answer, SqlAnswer)
    types = "int bigint decimal(38,0) decimal(5,2) date timestamp binary json boolean double string string int json"
    assert [type_ for _, type_ in answer.columns] == types.split()
    assert [name for name, _ in answer.columns][-2:] == ["a_2", "m"]
    values = [1, "9223372036854775807", "2", "1.50", "2026-01-31", "2026-01-31T09:30:00.000000Z", "eA==", "[1,2]"]
    assert _rows(answer) == [("0", [*values, True, None, "1 day", None, 1, '{"x":1}'])]


def test_values_of_every_type_come_back_as_they_were(worker: Worker) -> None:
    values = {
        "string": "ä\u0000\"", "boolean": True, "int": -7, "bigint": "9007199254740993", "double": 0.1,
        "decimal(38,2)": "123456789012345678901234567890123456.78", "date": "2026-01-31",
        "timestamp": "1969-12-31T23:59:59.000001Z", "binary": "AP8=", "json": '{"b":[1,null],"a":"x"}',
    }  # fmt: skip
    pairs = [(f"c{place}", type_) for place, type_ in enumerate(values)]
    rows = [list(values.values()), [None] * len(values)]
    worker.take(Load(7, pairs, [name for name, _ in pairs]))
    worker.take(Put(7, [(place, orjson.dumps(row)) for place, row in enumerate(rows)]))
    answer = worker.answer(Run("SELECT * FROM everything", {"everything": 7}, None))
    assert [row for _, row in _rows(answer)] == rows  # type: ignore[arg-type]
    assert isinstance(answer, SqlAnswer)
    # In SQL a json is a text.
    assert answer.columns == [(name, "string" if type_ == "json" else type_) for name, type_ in pairs]
    none = worker.answer(Run("SELECT * FROM everything WHERE c2 > 0", {"everything": 7}, None))
    assert isinstance(none, SqlAnswer)
    assert (none.columns, none.total, none.rows) == (answer.columns, 0, [])


def test_b40_a_live_answer_with_other_columns_is_whole(worker: Worker) -> None:
    answers = []
    for known, type_ in ((False, "int"), (True, "int"), (True, "bigint")):
        worker.take(Load(8, [("n", type_)], ["n"]))
        worker.take(Put(8, [(0, b"[1]")]))
        answers.append(worker.answer(Run("SELECT n FROM numbers", {"numbers": 8}, None, 9, known)))
    assert [len(_rows(answer)) for answer in answers] == [1, 0, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["now()", "current_timestamp", "current_date", "random()", "uuid()", "today()"])
def test_b40_what_lasts_depends_on_the_tables_alone(worker: Worker, word: str) -> None:
    assert isinstance(_ask(worker, f"SELECT {word}"), SqlAnswer)
    refused = _ask(worker, f"SELECT {word}", lasting=True)
    assert isinstance(refused, Refused)
    assert "depends on the tables alone" in refused.message


def test_b40_a_live_answer_has_what_changed_in_its_place(worker: Worker) -> None:
    worker.take(Load(2, PAIRS["accounts_ui"], ["kind", "balance"]))
    worker.take(Put(2, [(position, _row(position)) for position in range(9)]))
    sql = "SELECT kind, count(*) AS n FROM accounts_ui GROUP BY kind ORDER BY kind"
    run = Run(sql, {"accounts_ui": 2}, [0], live=1)
    assert _rows(worker.answer(run)) == [('="gold"', ["gold", 3]), ('="silver"', ["silver", 3]), ("=null", [None, 3])]  # type: ignore[arg-type]
    # A row changes, one goes, and one comes far behind.
    worker.take(Put(2, [(1, _row(1, kind="gold")), (2, None), (20_000, _row(5))]))
    answer = worker.answer(Run(sql, {"accounts_ui": 2}, [0], live=1, known=True))
    assert isinstance(answer, SqlAnswer)
    assert (answer.total, answer.rows) == (3, [(0, b'="gold"', b'["gold",4]'), (1, b'="silver"', b'["silver",2]')])
    # In the order of the table, whatever has changed.
    told = _ask(worker, "SELECT userId FROM accounts_ui LIMIT 2")
    assert _rows(told) == [("0", ["u0"]), ("1", ["u1"])]


def test_what_changed_leads_from_one_answer_to_the_next() -> None:
    before = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert changed(before, before) == []
    assert changed(before, [(b"b", b"2")]) == [(0, b"b", b"2")]
    assert changed(before, [*before, (b"d", b"4")]) == [(3, b"d", b"4")]
