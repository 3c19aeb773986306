"""What the value of a configuration key may be: each key has one Spec, and each Spec says what it expects."""

import ipaddress
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from liveboard.contract.board import History
from liveboard.contract.errors import LiveboardError, either
from liveboard.contract.names import is_board_name, is_table_name, is_topic_name
from liveboard.contract.schema import parse_schema

MAX_SHOWN = 100
_LONGEST_HISTORY = 100_000
MAX_TABLE_NAME = 200  # the changelog topic's name contains it, and Kafka allows 249


class ConfigError(LiveboardError):
    """A configuration that cannot be used; the message has one line for each problem."""


class InnerErrors(ConfigError):
    """Everything that is wrong inside of a value that is a table, each with its place there."""

    def __init__(self, problems: Sequence[tuple[tuple[str, ...], str]]) -> None:
        super().__init__("\n".join(text for _, text in problems))
        self.problems = problems


class Secret:
    """A text that no repr, str, format or error message shows; `reveal()` gives it. Empty means not given."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that needs it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(***)"


_UNITS = {
    0.001: ("ms", "millisecond", "milliseconds"),
    1: ("s", "sec", "second", "seconds"),
    60: ("m", "min", "minute", "minutes"),
    3600: ("h", "hour", "hours"),
    86400: ("d", "day", "days"),
}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)")


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time, to the millisecond; its str is a text that `parse` reads back."""

    seconds: float

    @property
    def milliseconds(self) -> int:
        """The same in whole milliseconds."""
        return round(self.seconds * 1000)

    def __str__(self) -> str:
        seconds, rest = divmod(self.milliseconds, 1000)
        return f"{self.milliseconds} ms" if rest else f"{seconds} s"

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """The duration that a text such as "5 minutes" or "500 ms" means; ValueError if it means none."""
        found = _DURATION.fullmatch(text.strip().lower())
        for unit, names in _UNITS.items():
            if found and found[2] in names:
                return cls(round(float(found[1]) * unit * 1000) / 1000)
        raise ValueError(f"not a duration: {text}")


@dataclass(frozen=True)
class RowCaps:
    """How many rows are kept of a table; 0 keeps all."""

    default: int = 0
    tables: Mapping[str, int] = field(default_factory=dict)

    def of(self, table: str) -> int:
        """The cap of one table."""
        return self.tables.get(table, self.default)


@dataclass(frozen=True)
class Spec:
    """What a key expects.

    `parse` gives the setting or raises: a ValueError means "not what was expected", a LiveboardError is the
    whole explanation. `from_text` turns a variable's text into what the file would hold, and `merge` puts it
    over the file's value where it does not simply replace it.
    """

    expected: str
    parse: Callable[[Any], Any]
    from_text: Callable[[str], Any] = str
    merge: Callable[[Any, Any], Any] | None = None
    secret: bool = False

    def read(self, value: object) -> Any:
        """The setting that a raw value means; a LiveboardError that says what was expected and found."""
        try:
            return self.parse(value)
        except ValueError:
            found = describe(value, secret=self.secret)
        raise ConfigError(f"expected {self.expected}, found {found}")


def describe(value: object, *, secret: bool = False) -> str:
    """How an error message shows what was found; of a secret only the kind."""
    kinds = {dict: "a table", list: "an array", type(None): "nothing"}
    if type(value) in kinds:
        return kinds[type(value)]
    if not isinstance(value, str | int | float):
        return "a date or time"
    if secret:
        return "a text" if isinstance(value, str) else "a number or boolean"
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """The tables of a TOML text; otherwise a ConfigError with origin, line and column."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        message, _, place = str(error).partition(" (at ")
    if place.startswith("end of document"):
        place = f"line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))})"
    where = f"{origin}, {place[:-1]}" if place else origin
    raise ConfigError(f"{where}: expected valid TOML, found: {message}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _text_where(accept: Callable[[str], object]) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if not accept(_text(value)):
            raise ValueError("not accepted")
        return _text(value)

    return parse


def choice(*options: str, loose: bool = False) -> Spec:
    """One of a few words; with `loose` in any case and with blanks around it."""

    def parse(value: object) -> str:
        word = _text(value).strip().lower() if loose else _text(value)
        return options[options.index(word)]

    quoted = [f'"{option}"' for option in options]
    return Spec(either(quoted), parse)


def integer(low: int, high: int) -> Spec:
    """An integer in a range."""

    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError("not an integer in the range")
        return value

    return Spec(f"an integer from {low} to {high}", parse, _number_or_text)


def _number_or_text(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _history(value: object) -> History:
    if value == "all":
        return "all"
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LONGEST_HISTORY:
        raise ValueError("not a number of records")
    return value


def texts(expected: str, accept: Callable[[str], object]) -> Spec:
    """A list of texts; in a variable separated by commas."""

    def parse(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) and accept(item) for item in value):
            raise ValueError("not a list of such texts")
        return tuple(value)

    return Spec(expected, parse, lambda text: [item for part in text.split(",") if (item := part.strip())])


def _key_columns(value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("not names of columns")
    if len(set(names)) < len(names):
        raise ConfigError(f"expected every column once, found {', '.join(names)}")
    return tuple(names)


def _conditions(value: object) -> tuple[tuple[Any, ...], ...]:
    if not isinstance(value, list) or not value or not all(isinstance(term, list) for term in value):
        raise ValueError("not a list of conditions")
    return tuple(tuple(term) for term in value)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_receiver(text: str) -> bool:
    kind, _, name = text.partition(":")
    return is_topic_name(name) if kind == "topic" else _URL.fullmatch(text) is not None


def _interval(value: object) -> Duration:
    length = Duration.parse(_text(value))
    if not length.milliseconds:
        raise ValueError("no time at all")
    return length


def _measures(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("not a table of texts")
    if not value:
        raise ConfigError('expected at least one measure such as accounts = "count(*)", found none')
    return dict(value)


def _duration_or_keep(value: object) -> Duration | None:
    return None if _text(value).strip().lower() == "keep" else Duration.parse(_text(value))


def _schema(value: object) -> str:
    parse_schema(_text(value))
    return _text(value)


def _checkpoints(value: object) -> str:
    text = _text(value)
    if re.search(r"://[^/]*:[^/]*@", text):
        expected = "expected an address without a login, which belongs into storage.s3.access_key and secret_key"
        raise ConfigError(f"{expected}, found one with it")
    if text and not _CHECKPOINTS.fullmatch(text):
        raise ValueError("no address")
    return text


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    # TOML reads an unquoted spark.x.y as tables in tables
    flat: dict[str, object] = {}
    for word, value in table.items():
        flat |= _flat(value, f"{prefix}{word}.") if isinstance(value, dict) else {f"{prefix}{word}": value}
    return flat


def _spark_conf(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ValueError("not a table")
    conf = _flat(value)
    if strangers := [word for word in conf if not word.startswith("spark.")]:
        raise ConfigError(f'expected keys that begin with "spark.", found {", ".join(strangers)}')
    if odd := [word for word, item in conf.items() if not isinstance(item, str | int | float)]:
        raise ConfigError(f"expected texts, numbers or booleans, found something else in {', '.join(odd)}")
    return MappingProxyType({w: json.dumps(v) if isinstance(v, bool) else str(v) for w, v in conf.items()})


def _merge_conf(old: object, new: Mapping[str, object]) -> object:
    return _flat(old) | _flat(new) if isinstance(old, dict) else new


def _row_caps(value: object) -> RowCaps:
    if not isinstance(value, dict):
        return RowCaps(_ROWS.read(value))
    tables = {name: _ROWS.read(rows) for name, rows in value.items()}
    return RowCaps(tables.pop("default", 0), MappingProxyType(tables))


def _row_caps_from_text(text: str) -> object:
    return parse_toml(text, "LIVEBOARD_SERVER_MAX_ROWS") if "=" in text else _ROWS.from_text(text)


_URL = re.compile(r"https?://[^\s/]\S*")
_CHECKPOINTS = re.compile(r"[^\s:]+( +[^\s:]+)*|(file|s3a|hdfs|viewfs|abfss?|gs|wasbs?)://([^\s@:/]+@)?[^\s@]*")
_ROWS = integer(0, 1_000_000_000)
_SERVER = r"\s*(\[[0-9A-Fa-f:.]+\]|[^\s,:/\[\]]+):[0-9]{1,5}\s*"
_SERVERS = re.compile(rf"embedded|{_SERVER}(,{_SERVER})*")
KEY_HASH = re.compile(
    r"scrypt\$n=([0-9]{4,7}),r=([0-9]{1,2}),p=([0-9]{1,2})\$([A-Za-z0-9_-]{16,64})\$([A-Za-z0-9_-]{22,86})"
)
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")

NO_SECRET = Secret()
NAME = Spec(
    f'a name of letters, digits and "_" that does not begin with a digit, up to {MAX_TABLE_NAME} long',
    _text_where(lambda text: is_table_name(text) and len(text) <= MAX_TABLE_NAME),
)
BOARD = Spec("a table", dict, from_text=lambda text: parse_toml(text, "LIVEBOARD_BOARD"))

Text = Annotated[str, Spec("a text", _text)]
FilledText = Annotated[str, Spec("a text that is not empty", _text_where(str.strip))]
SecretText = Annotated[Secret, Spec("a text", lambda value: Secret(_text(value)), secret=True)]
KeyHash = Annotated[
    Secret,
    Spec(
        "a hash that `liveboard key` has made",
        lambda value: Secret(_text_where(KEY_HASH.fullmatch)(value)),
        secret=True,
    ),
]
DirPath = Annotated[Path, Spec("a path", lambda value: Path(_text_where(str.strip)(value)))]
Checkpoints = Annotated[
    str,
    Spec(
        'a directory, or an address such as "s3a://bucket/boards" or "hdfs://host:8020/boards"',
        _checkpoints,
    ),
]
Url = Annotated[str, Spec("an http or https URL", _text_where(_URL.fullmatch))]
Conditions = Annotated[
    tuple[tuple[Any, ...], ...],
    Spec('a list of conditions such as [["balance", "<", 0]]', _conditions, _json_or_text),
]
Receivers = Annotated[tuple[str, ...], texts('a list of "topic:NAME" and of http or https URLs', _is_receiver)]
Servers = Annotated[str, Spec('"embedded" or host:port (several separated by commas)', _text_where(_SERVERS.fullmatch))]
Port = Annotated[int, integer(0, 65535)]
TableNames = Annotated[
    tuple[str, ...],
    texts("a list of table names", lambda text: is_table_name(text) and len(text) <= MAX_TABLE_NAME),
]
Origins = Annotated[
    tuple[str, ...], texts('a list of origins such as "https://board.example.com", in lower case', _ORIGIN.fullmatch)
]
Proxies = Annotated[tuple[str, ...], texts('a list of addresses or networks such as "10.0.0.0/8"', _is_network)]
Interval = Annotated[Duration, Spec('a duration above zero such as "5 minutes", "900 s" or "500 ms"', _interval)]
OptionalInterval = Annotated[
    Duration | None, Spec('a duration above zero such as "5 minutes", "900 s" or "500 ms"', _interval)
]
Milliseconds = Annotated[
    int,
    Spec('a duration above zero such as "1 minute" or "500 ms"', lambda value: _interval(value).milliseconds),
]
Measures = Annotated[
    Mapping[str, str],
    Spec(
        'a table of measures such as total = "sum(balance)"',
        _measures,
        from_text=lambda text: parse_toml(text, "LIVEBOARD_BOARD_AGGREGATES_…_MEASURES"),
    ),
]
DurationOrKeep = Annotated[
    Duration | None, Spec('a duration such as "5 minutes" or "900 s", or "keep"', _duration_or_keep)
]
HistoryDepth = Annotated[
    History | None,
    Spec(f'an integer from 1 to {_LONGEST_HISTORY}, or "all"', _history, _number_or_text),
]
KeyColumns = Annotated[
    tuple[str, ...],
    Spec(
        'a column such as "userId", or a list of columns',
        _key_columns,
        lambda text: [name for part in text.split(",") if (name := part.strip())],
    ),
]
SchemaText = Annotated[str, Spec('a schema such as "userId string, age bigint"', _schema)]
TableName = Annotated[str, NAME]
Topic = Annotated[str, Spec('a topic name (1 to 249 letters, digits, ".", "_" or "-")', _text_where(is_topic_name))]
TopicOrDefault = Annotated[
    str,
    Spec(
        'a topic name (1 to 249 letters, digits, ".", "_" or "-"), or nothing for the board\'s own',
        _text_where(lambda text: not text or is_topic_name(text)),
    ),
]
BoardName = Annotated[
    str,
    Spec(
        'a name of up to 30 letters, digits, "_" or "-" that begins with a letter or digit', _text_where(is_board_name)
    ),
]
MaxRows = Annotated[
    RowCaps,
    Spec("a whole number, or a table of them by table name", _row_caps, from_text=_row_caps_from_text),
]
SparkConf = Annotated[
    Mapping[str, str],
    Spec(
        "a table of spark.* keys",
        _spark_conf,
        from_text=lambda text: parse_toml(text, "LIVEBOARD_SPARK_CONF"),
        merge=_merge_conf,
    ),
]
