"""The settings: the defaults, one TOML file over them, the environment over both; checked, then frozen.

The file is the one given, or the one LIVEBOARD_CONFIG names, or liveboard.toml in the working directory. Each
key is also an environment variable: kafka.sasl.username is LIVEBOARD_KAFKA_SASL_USERNAME. Beyond that:

- A secret may be in a file of its own, which LIVEBOARD_SERVER_PSK_FILE (and so on) names.
- A board is whole: sources or joins in the file replace the default board, they do not add to it. A file that
  has views and nothing else of a board gives them to the default board. Variables such as
  LIVEBOARD_BOARD_SOURCES_USERS_TOPIC change single keys of the sources and joins that exist.
- Two variables hold a table, in TOML. LIVEBOARD_BOARD replaces the file's board. LIVEBOARD_SPARK_CONF goes
  over the file's [spark.conf] key by key, because Spark's names cannot be told from capitals and underscores:
  LIVEBOARD_SPARK_CONF='spark.executor.memory = "2g"'.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from liveboard.config import values
from liveboard.config.board import DEFAULT_ORIGIN, BoardSettings, check_board, default_board, default_tables
from liveboard.config.document import Document, Key, Section, build, check_distinct, dotted, keys_of, patterns
from liveboard.config.environment import CONFIG_VARIABLE, overlay, refuse_unknown
from liveboard.config.values import ConfigError, Duration
from liveboard.contract.formats import FORMATS
from liveboard.contract.frames import DEFAULT_SIZE, MAX_CLIENT_FRAME_BYTES, MAX_SIZE
from liveboard.contract.names import Names

DEFAULT_FILE = "liveboard.toml"
SASL_NEEDS = {
    "PLAIN": ("username", "password"),
    "SCRAM-SHA-256": ("username", "password"),
    "SCRAM-SHA-512": ("username", "password"),
    "OAUTHBEARER": ("token_endpoint_url", "client_id", "client_secret"),
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
class RegistrySettings:
    """Where the cluster's schema registry is, and how to log in; without ca_file the system's are trusted."""

    url: values.Url = ""
    username: values.Text = ""
    password: values.SecretText = values.NO_SECRET
    token: values.SecretText = values.NO_SECRET
    ca_file: values.Text = ""


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
    tables: values.TableNames = ()


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
    saved: _Count = 200
    saved_bytes: Annotated[int, values.integer(1_024, 1_048_576)] = 32_768
    sql_seconds: Annotated[int, values.integer(1, 600)] = 5
    sql_memory_mb: Annotated[int, values.integer(64, 1_000_000)] = 512
    sql_rows: _Count = 100_000
    sql_live: _Count = 50
    sql_waiting: _Count = 20


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
    frame_ancestors: values.Origins = ()
    trusted_proxies: values.Proxies = ()
    max_rows: values.MaxRows = field(default_factory=values.RowCaps)
    limits: LimitSettings = field(default_factory=LimitSettings)


@dataclass(frozen=True, kw_only=True)
class PipelineSettings:
    """Where Prometheus finds the pipeline's metrics (port 0: nowhere)."""

    metrics_host: values.FilledText = "127.0.0.1"
    metrics_port: values.Port = 0


@dataclass(frozen=True, kw_only=True)
class S3Settings:
    """How to log in to S3: without keys, as the machine or the environment says; `endpoint`: if it is not Amazon's."""

    endpoint: values.Url = ""
    region: values.Text = ""
    access_key: values.SecretText = values.NO_SECRET
    secret_key: values.SecretText = values.NO_SECRET


@dataclass(frozen=True, kw_only=True)
class StorageSettings:
    """Where the broker's data and the checkpoints are kept; `checkpoints` is for those that all machines must find."""

    dir: values.DirPath = Path(".liveboard")
    checkpoints: values.Checkpoints = ""
    s3: S3Settings = field(default_factory=S3Settings)


@dataclass(frozen=True, kw_only=True)
class ControlSettings:
    """Where swaps are asked for (empty: NAME-control), and how long a replaced generation lives on (None: for ever)."""

    topic: values.TopicOrDefault = ""
    retire_after: values.DurationOrKeep = field(default=Duration(900))


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


def _check_registry(document: Document, registry: RegistrySettings) -> None:
    if not registry.url and registry != RegistrySettings():
        document.problem(
            ("registry", "url"), "expected an address, since other keys of [registry] are set, found nothing"
        )
    if "@" in registry.url:
        expected = "expected an address without a login, which belongs into registry.username and registry.password"
        document.problem(("registry", "url"), f"{expected}, found one with it")
    if registry.token and (registry.username or registry.password):
        document.problem(("registry", "token"), "expected either a token or a username and password, found both")
    if bool(registry.username) != bool(registry.password):
        name, other = ("password", "username") if registry.username else ("username", "password")
        expected = f"expected a value because registry.{other} has one, found nothing"
        document.problem(("registry", name), expected, because=("registry", other))


def _check_storage(document: Document, storage: StorageSettings) -> None:
    if storage.s3 != S3Settings() and not storage.checkpoints.startswith("s3a://"):
        expected = 'expected storage.checkpoints to begin with "s3a://", since [storage.s3] has keys'
        document.problem(("storage", "checkpoints"), f'{expected}, found "{storage.checkpoints}"')
    for name, other in (("access_key", "secret_key"), ("secret_key", "access_key")):
        if getattr(storage.s3, other) and not getattr(storage.s3, name):
            expected = f"expected a value because storage.s3.{other} has one, found nothing"
            document.problem(("storage", "s3", name), expected, because=("storage", "s3", other))


def _check_server(document: Document, server: ServerSettings) -> None:
    for name, other in (("tls_cert_file", "tls_key_file"), ("tls_key_file", "tls_cert_file")):
        if getattr(server, other) and not getattr(server, name):
            expected = f"expected a file because server.{other} has one, found nothing"
            document.problem(("server", name), expected, because=("server", other))
    keys: dict[Key, KeySettings] = {("server", "keys", name): key for name, key in server.keys.items()}
    check_distinct(document, "key name", {at: key.name for at, key in keys.items()}, str.lower)
    taken = {server.psk} - {values.NO_SECRET}
    for at, key in keys.items():
        if bool(key.key) == bool(key.hash):
            found = "both" if key.key else "neither"
            document.problem(at, f"expected either a key or a hash, as `liveboard key` makes them, found {found}")
        if key.key in taken:
            document.problem((*at, "key"), "expected a key of its own, found one that is used twice")
        taken |= {key.key} - {values.NO_SECRET}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be configured."""

    kafka: Annotated[KafkaSettings, Section(KafkaSettings, check=_check_kafka)] = field(default_factory=KafkaSettings)
    registry: Annotated[RegistrySettings, Section(RegistrySettings, check=_check_registry)] = field(
        default_factory=RegistrySettings
    )
    spark: SparkSettings = field(default_factory=SparkSettings)
    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    server: Annotated[ServerSettings, Section(ServerSettings, check=_check_server)] = field(
        default_factory=ServerSettings
    )
    storage: Annotated[StorageSettings, Section(StorageSettings, check=_check_storage)] = field(
        default_factory=StorageSettings
    )
    control: ControlSettings = field(default_factory=ControlSettings)
    board: Annotated[BoardSettings, Section(BoardSettings, values.BOARD, check_board)] = field(
        default_factory=default_board
    )

    @property
    def names(self) -> Names:
        """The board's topics."""
        return Names(self.board.name, self.control.topic)


def load(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file and an environment; a ConfigError lists everything that is wrong with them."""
    file = path or _find_file(environ)
    document = Document(_read(file), str(file)) if file else Document({}, "the defaults")
    overlay(document, {("board",): values.BOARD}, environ)
    if all(document.get(("board", part)) in (None, {}) for part in ("sources", "joins")):
        for part, tables in default_tables().items():
            if document.get(("board", part)) in (None, {}):
                document.put(("board", part), tables, DEFAULT_ORIGIN)
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
        needs_schemas = FORMATS[source.format].needs_schemas
        if source.avro_schema_file and not needs_schemas:
            at = ("board", "sources", name, "avro_schema_file")
            document.problem(at, f'expected no schema of Avro, since the format is "{source.format}", found one')
        if needs_schemas and not source.avro_schema_file and not settings.registry.url:
            at = ("board", "sources", name, "format")
            expected = f'expected a registry.url or an avro_schema_file for "{source.format}"'
            document.problem(at, f"{expected}, found neither")
        if source.topic == settings.names.control:
            at = ("board", "sources", name, "topic")
            document.problem(at, f'expected a topic other than that of control messages, found "{source.topic}"')
    if not settings.spark.master.startswith("local") and not settings.storage.checkpoints:
        expected = 'expected an address that all machines of the cluster reach, such as "s3a://bucket/boards"'
        document.problem(("storage", "checkpoints"), f"{expected}, found nothing", because=("spark", "master"))
    if settings.names.owns(settings.control.topic):
        expected = f'expected a topic that the board "{settings.board.name}" does not write itself'
        document.problem(("control", "topic"), f'{expected}, found "{settings.control.topic}"')


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
