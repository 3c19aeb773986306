"""The settings: the defaults, one TOML file over them, the environment over both; checked, then frozen.

The file is the one given, or the one LIVEBOARD_CONFIG names, or liveboard.toml in the working directory. Each
key is also an environment variable: kafka.sasl.username is LIVEBOARD_KAFKA_SASL_USERNAME. Beyond that:

- A secret may be in a file of its own, which LIVEBOARD_SERVER_PSK_FILE (and so on) names.
- A board is whole: sources or joins in the file replace the default board, they do not add to it. Variables
  such as LIVEBOARD_BOARD_SOURCES_USERS_TOPIC change single keys of the sources and joins that exist.
- Two variables hold a table, in TOML. LIVEBOARD_BOARD replaces the file's board. LIVEBOARD_SPARK_CONF goes
  over the file's [spark.conf] key by key, because Spark's names cannot be told from capitals and underscores:
  LIVEBOARD_SPARK_CONF='spark.executor.memory = "2g"'.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from liveboard import config_values as values
from liveboard.config_document import Document, Key, Section, build, dotted, keys_of, nearest, patterns
from liveboard.config_env import CONFIG_VARIABLE, overlay, refuse_unknown
from liveboard.config_values import ConfigError, Duration, Secret
from liveboard.contract.frames import DEFAULT_SIZE, MAX_CLIENT_FRAME_BYTES, MAX_SIZE
from liveboard.contract.names import is_reserved_table
from liveboard.contract.schema import Column, parse_schema

__all__ = [
    "Board",
    "ConfigError",
    "ControlSettings",
    "Duration",
    "Join",
    "KafkaSettings",
    "KeySettings",
    "LimitSettings",
    "SaslSettings",
    "Secret",
    "ServerSettings",
    "Settings",
    "Source",
    "SparkSettings",
    "SslSettings",
    "StorageSettings",
    "default_board",
    "documented_keys",
    "load",
]

DEFAULT_FILE = "liveboard.toml"
_DEFAULT = "the default board"
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
"""

SASL_NEEDS = {
    "PLAIN": ("username", "password"),
    "SCRAM-SHA-256": ("username", "password"),
    "SCRAM-SHA-512": ("username", "password"),
    "OAUTHBEARER": ("token_endpoint_url", "client_id", "client_secret"),
}
NOT_A_KEY = {
    "double": "rounding makes equal doubles differ",
    "timestamp": "two events hardly ever share a microsecond",
}


@dataclass(frozen=True, kw_only=True)
class SaslSettings:
    """How to log in to Kafka; SASL_NEEDS says what each mechanism cannot do without.

    `ca_file` is for the token endpoint; without it the system's authorities are trusted.
    """

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    username: values.Text = ""
    password: values.SecretText = values.NO_SECRET
    token_endpoint_url: values.Url = ""
    client_id: values.Text = ""
    client_secret: values.SecretText = values.NO_SECRET
    scope: values.Text = ""
    # not that of [kafka.ssl]: a cluster with an authority of its own often trusts a public identity provider
    ca_file: values.Text = ""


@dataclass(frozen=True, kw_only=True)
class SslSettings:
    """PEM files for SSL; without ca_file the system's authorities are trusted."""

    ca_file: values.Text = ""
    cert_file: values.Text = ""
    key_file: values.Text = ""
    key_password: values.SecretText = values.NO_SECRET


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """Where Kafka is and how to talk to it; `port` is the embedded broker's."""

    bootstrap_servers: values.Servers = "embedded"
    port: values.Port = 9092
    start_from: Literal["earliest", "latest"] = "earliest"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl: SaslSettings | None = None
    ssl: SslSettings = field(default_factory=SslSettings)

    @property
    def embedded(self) -> bool:
        """Whether liveboard brings the broker itself."""
        return self.bootstrap_servers == "embedded"


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """Where Spark runs; `conf` has any spark.* setting as Spark wants it, a string."""

    master: values.FilledText = "local"
    checkpoint_interval: values.Interval = field(default=Duration(300))
    # not in the repr, because it may hold passwords
    conf: values.SparkConf = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class KeySettings:
    """A key of the server: what it may do, and the tables that it shows (none named: all)."""

    name: str
    role: Literal["viewer", "admin"]
    key: values.SecretText = values.NO_SECRET
    hash: values.KeyHash = values.NO_SECRET
    tables: values.Tables = ()


_Count = Annotated[int, values.integer(1, 1_000_000)]


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """What a server and one viewer may have; whoever asks for more is told so."""

    viewers: _Count = 10_000
    viewers_per_address: _Count = 2_000
    subscriptions: _Count = 100
    windows: _Count = 10_000
    queries: _Count = 500
    exports: _Count = 16
    window_rows: Annotated[int, values.integer(DEFAULT_SIZE, MAX_SIZE)] = MAX_SIZE
    conditions: _Count = 100
    condition_values: _Count = 1_000
    text_length: _Count = 4_000
    frame_bytes: Annotated[int, values.integer(1_024, 16_777_216)] = MAX_CLIENT_FRAME_BYTES
    failed_logins: _Count = 10


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Where viewers connect, the keys they need (psk: one for everything), and how much of a table is kept (0: all)."""

    host: values.FilledText = "127.0.0.1"
    port: values.Port = 8080
    psk: values.SecretText = values.NO_SECRET
    keys: Mapping[str, KeySettings] = field(default_factory=dict)
    tls_cert_file: values.Text = ""
    tls_key_file: values.Text = ""
    ca_file: values.Text = ""
    origins: values.Origins = ()
    trusted_proxies: values.Proxies = ()
    max_rows: values.MaxRows = field(default_factory=values.RowCaps)
    limits: LimitSettings = field(default_factory=LimitSettings)


@dataclass(frozen=True, kw_only=True)
class StorageSettings:
    """Where the broker's data and the checkpoints are kept."""

    dir: values.DirPath = Path(".liveboard")


@dataclass(frozen=True, kw_only=True)
class ControlSettings:
    """Where swaps are asked for, and how long a replaced generation lives on; None is for ever."""

    topic: values.Topic = "liveboard-control"
    retire_after: values.DurationOrKeep = field(default=Duration(900))


@dataclass(frozen=True, kw_only=True)
class Source:
    """A topic, what its values look like, and the table that shows its rows."""

    name: str
    topic: values.Topic
    schema: values.SchemaText
    table: values.TableName
    on_error: Literal["reject", "null"] = "reject"
    max_value_bytes: Annotated[int, values.integer(1, 8_388_608)] = 1_048_576

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the schema, without ts."""
        return parse_schema(self.schema)


@dataclass(frozen=True, kw_only=True)
class Join:
    """A table, named like the join, of two sources joined on a column of both."""

    name: str
    left: values.Text
    right: values.Text
    on: values.Text
    how: Annotated[Literal["left", "inner", "asof"], values.choice("left", "inner", "asof", loose=True)]
    salt: Annotated[int, values.integer(1, 1024)] = 1


@dataclass(frozen=True, kw_only=True)
class Board:
    """The sources and the joins, by name."""

    sources: Mapping[str, Source] = field(default_factory=dict)
    joins: Mapping[str, Join] = field(default_factory=dict)


def default_board() -> Board:
    """The board of a configuration that has none."""
    board: Board = build(Document(_default_tables(), _DEFAULT), Board)
    return board


def _default_tables() -> dict[str, Any]:
    return values.parse_toml(DEFAULT_BOARD, _DEFAULT)


def _check_kafka(document: Document, kafka: KafkaSettings) -> None:
    protocol = ("kafka", "security_protocol")
    mechanism = ("kafka", "sasl", "mechanism")
    why = f'because kafka.security_protocol is "{kafka.security_protocol}"'
    if kafka.embedded and kafka.security_protocol != "PLAINTEXT":
        expected = 'expected "PLAINTEXT" for the embedded broker'
        document.problem(protocol, f'{expected}, found "{kafka.security_protocol}"')
    needs_sasl = kafka.security_protocol.startswith("SASL_")
    if needs_sasl and not kafka.sasl:
        document.problem(("kafka", "sasl"), f"expected a section {why}, found nothing", because=protocol)
    if kafka.sasl and not needs_sasl:
        document.problem(("kafka", "sasl"), f"expected no such section {why}, found one")
    if kafka.sasl:
        expected = f'expected a value because kafka.sasl.mechanism is "{kafka.sasl.mechanism}", found nothing'
        for name in SASL_NEEDS[kafka.sasl.mechanism]:
            if not getattr(kafka.sasl, name):
                document.problem(("kafka", "sasl", name), expected, because=mechanism)
    if kafka.ssl != SslSettings() and not kafka.security_protocol.endswith("SSL"):
        document.problem(("kafka", "ssl"), f"expected no such section {why}, found one")
    for name, other in (("cert_file", "key_file"), ("key_file", "cert_file")):
        if getattr(kafka.ssl, other) and not getattr(kafka.ssl, name):
            expected = f"expected a file because kafka.ssl.{other} has one, found nothing"
            document.problem(("kafka", "ssl", name), expected, because=("kafka", "ssl", other))


def _check_server(document: Document, server: ServerSettings) -> None:
    for name, other in (("tls_cert_file", "tls_key_file"), ("tls_key_file", "tls_cert_file")):
        if getattr(server, other) and not getattr(server, name):
            expected = f"expected a file because server.{other} has one, found nothing"
            document.problem(("server", name), expected, because=("server", other))
    keys: dict[Key, KeySettings] = {("server", "keys", name): key for name, key in server.keys.items()}
    _check_distinct(document, "key name", {at: key.name for at, key in keys.items()}, str.lower)
    taken = {server.psk} - {values.NO_SECRET}
    for at, key in keys.items():
        if bool(key.key) == bool(key.hash):
            found = "both" if key.key else "neither"
            document.problem(at, f"expected either a key or a hash, as `liveboard key` makes them, found {found}")
        if key.key in taken:
            document.problem((*at, "key"), "expected a key of its own, found one that is used twice")
        taken |= {key.key} - {values.NO_SECRET}


def _check_board(document: Document, board: Board) -> None:
    # what is declared, because a source with a problem of its own is not in the board
    declared = list(document.get(("board", "sources")) or ())
    if not declared:
        document.problem(("board", "sources"), "expected at least one source, found none")
    sources: dict[Key, Source] = {("board", "sources", name): source for name, source in board.sources.items()}
    tables: dict[Key, str] = {(*at, "table"): source.table for at, source in sources.items()}
    tables |= {("board", "joins", name): name for name in board.joins}
    _check_distinct(document, "source name", {at: source.name for at, source in sources.items()}, str.lower)
    _check_distinct(document, "topic", {(*at, "topic"): source.topic for at, source in sources.items()}, str)
    _check_distinct(document, "table name", tables, str.lower)
    for at, table in tables.items():
        if is_reserved_table(table):
            document.problem(at, f'expected a name that liveboard does not use itself, found "{table}"')
    for join in board.joins.values():
        _check_join(document, board, join, declared)


def _check_distinct(document: Document, what: str, names: Mapping[Key, str], fold: Callable[[str], str]) -> None:
    first: dict[str, Key] = {}
    for at, name in names.items():
        other = first.setdefault(fold(name), at)
        if other != at:
            document.problem(at, f'expected a {what} of its own, found "{name}" as in {dotted(other)}')


def _check_join(document: Document, board: Board, join: Join, declared: list[str]) -> None:
    at = ("board", "joins", join.name)
    for side, name in (("left", join.left), ("right", join.right)):
        if declared and name not in declared:
            document.problem((*at, side), _expected_one_of("a source", declared, name))
    if join.left == join.right:
        document.problem((*at, "right"), f'expected a source other than the left one, found "{join.right}"')
        return
    types: dict[str, str] = {}
    for source in (board.sources[name] for name in (join.left, join.right) if name in board.sources):
        columns = {column.name: column.type for column in source.columns}
        if join.on in columns:
            types[source.name] = columns[join.on]
        else:
            document.problem((*at, "on"), _expected_one_of(f"a column of {source.name}", columns, join.on))
    for name, type_ in types.items():
        if type_ in NOT_A_KEY:
            expected = "expected a column of type string, boolean, int, bigint or date"
            document.problem((*at, "on"), f"{expected}, found {type_} in {name}: {NOT_A_KEY[type_]}")
    if len(set(types.values())) > 1:
        found = " and ".join(f"{type_} in {name}" for name, type_ in types.items())
        document.problem((*at, "on"), f"expected a column of the same type in both sources, found {found}")


def _expected_one_of(what: str, known: Iterable[str], word: str) -> str:
    return f'expected {what} ({", ".join(known)}), found "{word}", did you mean {nearest(word, known)}?'


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be configured."""

    kafka: Annotated[KafkaSettings, Section(KafkaSettings, check=_check_kafka)] = field(default_factory=KafkaSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    server: Annotated[ServerSettings, Section(ServerSettings, check=_check_server)] = field(
        default_factory=ServerSettings
    )
    storage: StorageSettings = field(default_factory=StorageSettings)
    control: ControlSettings = field(default_factory=ControlSettings)
    board: Annotated[Board, Section(Board, values.BOARD, _check_board)] = field(default_factory=default_board)


def load(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file and an environment; a ConfigError lists everything that is wrong with them."""
    file = path or _find_file(environ)
    document = Document(_read(file), str(file)) if file else Document({}, "the defaults")
    overlay(document, {("board",): values.BOARD}, environ)
    if all(document.get(("board", part)) in (None, {}) for part in ("sources", "joins")):
        for part, tables in _default_tables().items():
            document.put(("board", part), tables, _DEFAULT)
    keys = keys_of(document, Settings)
    overlay(document, {at: spec for at, spec in keys.items() if spec is not values.BOARD}, environ)
    refuse_unknown(document, keys, environ)
    settings: Settings = build(document, Settings)
    if not document.problems:
        _check_settings(document, settings)
    if document.problems:
        raise ConfigError("\n".join(document.problems))
    return settings


def documented_keys() -> list[str]:
    """Every key in dotted form, with <name> for the names of sources and joins."""
    return [dotted(at) for at, _ in patterns(Settings)]


def _check_settings(document: Document, settings: Settings) -> None:
    for name, source in settings.board.sources.items():
        if source.topic == settings.control.topic:
            at = ("board", "sources", name, "topic")
            document.problem(at, f'expected a topic other than control.topic, found "{source.topic}"')


def _find_file(environ: Mapping[str, str]) -> Path | None:
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).exists() else None


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file}: expected a configuration file that can be read, found: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        column = error.start - error.object.rfind(b"\n", 0, error.start)
        raise ConfigError(f"{file}, line {line}, column {column}: expected UTF-8, found another byte") from None
    return values.parse_toml(text, str(file))
