"""What the commands' options may be."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path

from liveboard.config.settings import DEFAULT_FILE
from liveboard.contract.errors import either
from liveboard.contract.joins import JOIN_KINDS
from liveboard.inspect.joins import Proposal

DEFAULT_RATE = 50.0
SAMPLES = ("users", "shop")
"""What sample data can be like, the usual first."""
USERS_OPTIONS = ("users", "late_users", "hot_keys")
SAMPLE_OPTIONS = ("seed", "count", "bad", *USERS_OPTIONS)
DEFAULT_RECORDS = 5_000


def server_options(
    parser: argparse.ArgumentParser, url: str = "the server (default: as configured, or the one that `up` runs here)"
) -> None:
    """Those of every command that asks a server."""
    parser.add_argument("--url", metavar="URL", help=url)
    parser.add_argument("--key", metavar="KEY", help="its key (default: server.psk, or the one that `up` has made)")
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="who may have signed its certificate (default: server.ca_file)"
    )


def sample_options(parser: argparse.ArgumentParser) -> None:
    """Those of `liveboard sample`."""

    def option(name: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        parser.add_argument(name, type=type_, metavar=metavar, help=text)

    like = "users and accounts (the default), or a shop with nested orders, products by key and Debezium's customers"
    parser.add_argument("--like", choices=SAMPLES, default=SAMPLES[0], help=like)
    rate = f"events per second, 0 for as fast as possible (default {DEFAULT_RATE:.0f})"
    parser.add_argument("--rate", type=number, metavar="N", default=DEFAULT_RATE, help=rate)
    option("--seed", whole, "N", "another seed, other events (default 1)")
    option("--count", count, "N", "stop after N events")
    option("--bad", fraction, "F", "the fraction of events that cannot be read (default 0)")
    option("--users", count, "N", "how many users there are (default 1000)")
    option("--late-users", fraction, "F", "the fraction of users that come after their first accounts (default 0.1)")
    option("--hot-keys", whole, "N", "how many users get half of all accounts (default 0)")


def send_options(parser: argparse.ArgumentParser) -> None:
    """Those of `send`."""
    parser.add_argument("source", metavar="SOURCE", help="such as users")
    parser.add_argument("record", metavar="JSON", help='such as \'{"userId": "u1"}\'')


def inspect_options(parser: argparse.ArgumentParser) -> None:
    """Those of `liveboard inspect`."""
    parser.add_argument("topic", metavar="TOPIC")
    _records_option(parser)


def init_options(parser: argparse.ArgumentParser) -> None:
    """Those of `liveboard init`."""
    parser.add_argument("--bootstrap-servers", metavar="SERVERS", help="your Kafka (default: as configured)")
    parser.add_argument("--topics", type=_words, metavar="A,B", help="the topics to show")
    joins = parser.add_mutually_exclusive_group()
    shown = "left=SOURCE,right=SOURCE,on=COLUMN,how=KIND"
    joins.add_argument("--join", type=_join, metavar=shown, action="append", help="a join instead of those proposed")
    joins.add_argument("--no-joins", action="store_true", help="the topics alone")
    parser.add_argument("--yes", action="store_true", help="take the joins that are proposed, and write the file")
    parser.add_argument("--name", metavar="NAME", help="the board's name (default: one that is free)")
    file = f"default: {DEFAULT_FILE}"
    parser.add_argument("--output", type=Path, metavar="FILE", default=Path(DEFAULT_FILE), help=file)
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    _records_option(parser)


def _records_option(parser: argparse.ArgumentParser) -> None:
    text = f"about how many records of a topic are looked at (default {DEFAULT_RECORDS})"
    parser.add_argument("--records", type=count, metavar="N", default=DEFAULT_RECORDS, help=text)


def swap_options(parser: argparse.ArgumentParser) -> None:
    """Those of `liveboard swap`."""

    def option(name: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        parser.add_argument(name, type=type_, metavar=metavar, action="append", default=[], help=text)

    parser.add_argument("--users", metavar="TOPIC", help="short for --topic users=TOPIC")
    parser.add_argument("--accounts", metavar="TOPIC", help="short for --topic accounts=TOPIC")
    option("--topic", _named, "NAME=TOPIC", "the topic of a source; sources that are not named keep theirs")
    kinds = f"{either(JOIN_KINDS)}, for the board's first join or the named one"
    option("--join", _maybe_named, "[TABLE=]KIND", kinds)
    parser.add_argument("--wait", action="store_true", help="show the build until it is live (exit 0) or failed (1)")
    server_options(parser, "a server to send it through instead of Kafka")


def _named(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=TOPIC, found {text}")
    return name, value


def _maybe_named(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    return name, value


def _words(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def _join(text: str) -> Proposal:
    parts = dict(part.partition("=")[::2] for part in _words(text))
    if not {"left", "right", "on"} <= parts.keys() <= {"left", "right", "on", "how"}:
        raise argparse.ArgumentTypeError(f"expected left=SOURCE,right=SOURCE,on=COLUMN,how=KIND, found {text}")
    how = parts.get("how", JOIN_KINDS[0])
    for kind in JOIN_KINDS:
        if kind == how:
            return Proposal(parts["left"], parts["right"], parts["on"], kind)
    raise argparse.ArgumentTypeError(f"expected how={either(JOIN_KINDS)}, found how={how}")


def _within(convert: Callable[[str], float], least: float, most: float, expected: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            value = convert(text)
            if least <= value <= most:
                return value
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text}")

    return read


number = _within(float, 0, 1e9, "a number from 0")
fraction = _within(float, 0, 1, "a number from 0 to 1")
whole = _within(int, 0, 2**63, "a whole number from 0")
count = _within(int, 1, 2**63, "a whole number from 1")
