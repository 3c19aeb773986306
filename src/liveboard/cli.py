"""The command line: one function per command."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from liveboard import __version__, config
from liveboard.contract.names import EXPORT_FORMATS
from liveboard.errors import LiveboardError

# The rest is imported by the commands that need it, so that each of them answers at once.

_INTERRUPTED = 130
_DEFAULT_RATE = 50.0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 for an error that is said, 130 when interrupted."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return command(arguments)
    except LiveboardError as error:
        print(f"liveboard: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Who reads us has seen enough; without this Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def up(arguments: argparse.Namespace) -> int:
    """Run everything: the broker if it is embedded, the pipeline, sample data if wanted; show the tables."""
    from liveboard import up as everything

    if arguments.rate is not None and not arguments.sample:
        raise LiveboardError("--rate: expected --sample with it, since it is the rate of the sample data")
    rate = (arguments.rate if arguments.rate is not None else _DEFAULT_RATE) if arguments.sample else None
    settings = config.load(arguments.config)
    with _stopping() as stopping:
        everything.run(settings, arguments.config, rate, stopping)
    return 0


def broker(arguments: argparse.Namespace) -> int:
    """Run the embedded Kafka broker alone."""
    from liveboard.kafka import address
    from liveboard.kafka.broker import Broker

    settings = config.load(arguments.config)
    kafka = Broker(settings.storage.dir / "broker", settings.kafka.port)
    with _stopping() as stopping:

        def show(text: str) -> None:
            if stopping.is_set():
                raise KeyboardInterrupt
            print(text, flush=True)

        kafka.start(show)
        try:
            address.remember(settings, kafka.bootstrap_servers)
            print(f"Kafka {kafka.bootstrap_servers}, data in {kafka.directory}, Ctrl-C stops", flush=True)
            while not stopping.wait(0.2):
                kafka.check()
        finally:
            kafka.stop()
    return 0


def pipeline(arguments: argparse.Namespace) -> int:
    """Run the pipeline alone: Spark joins the topics and keeps the tables' changelogs up to date."""
    from liveboard.kafka import address
    from liveboard.orchestrator import service

    settings = config.load(arguments.config)
    with _stopping() as stopping:
        service.run(settings, address.bootstrap(settings), lambda text: print(text, flush=True), stopping)
    return 0


def serve(arguments: argparse.Namespace) -> int:
    """Run the live-table server alone: viewers see the tables over WebSocket and HTTP."""
    from liveboard.kafka import address
    from liveboard.serving import log, server

    settings = config.load(arguments.config)
    log.to_stderr()
    with _stopping() as stopping:
        server.run(settings, address.bootstrap(settings), lambda text: print(text, flush=True), stopping)
    return 0


def sample(arguments: argparse.Namespace) -> int:
    """Produce believable users and accounts for the default board."""
    from liveboard.kafka import address, security
    from liveboard.kafka import sample as samples
    from liveboard.kafka.admin import Admin

    settings = config.load(arguments.config)
    chosen = ("seed", "rate", "count", "users", "late_users", "bad", "hot_keys")
    options = samples.options_for(settings.board, **{name: getattr(arguments, name) for name in chosen})
    bootstrap = address.reachable(address.bootstrap(settings))
    kafka = security.librdkafka(settings.kafka, bootstrap)
    topics = (options.users_topic, options.accounts_topic)
    if settings.kafka.embedded:
        Admin(kafka).create(topics)
    Admin(kafka).require(topics)
    progress = _Progress()
    with _stopping() as stopping:
        sent = samples.produce(samples.events(options), options.rate, kafka, stopping, progress.show)
    progress.end(f"{sent:,} events sent to {topics[0]} and {topics[1]}")
    return 0


def swap(arguments: argparse.Namespace) -> int:
    """Point the board at other topics or another join, while everyone is watching."""
    from liveboard import swap as swapping

    settings = config.load(arguments.config)
    topics, joins = dict(arguments.topic), dict(arguments.join)
    topics |= {source: topic for source in ("users", "accounts") if (topic := getattr(arguments, source))}
    if not topics and not joins:
        raise LiveboardError("expected another topic or join, as in --users TOPIC or --join inner, found neither")
    progress = _Progress()
    if arguments.url:
        from liveboard import remote

        where = remote.server_address(settings, arguments.url, arguments.key, arguments.ca_file)
        said = remote.swap(where, topics, joins, wait=arguments.wait, show=progress.show)
    else:
        said = swapping.run(settings, topics, joins, wait=arguments.wait, show=progress.show)
    progress.end(said)
    return 0


def tail(arguments: argparse.Namespace) -> int:
    """Follow a table: its last changes, then every one that comes."""
    from liveboard import tail as tailing

    settings = config.load(arguments.config)
    if arguments.url:
        from liveboard import remote

        if arguments.from_start:
            raise LiveboardError("--from-start: expected no --url with it, since a server has rows and no history")
        where = remote.server_address(settings, arguments.url, arguments.key, arguments.ca_file)
        remote.tail(where, arguments.table, as_json=arguments.json, limit=arguments.limit)
    else:
        chosen = {"from_start": arguments.from_start, "as_json": arguments.json, "limit": arguments.limit}
        tailing.run(settings, arguments.table, **chosen)
    return 0


def tables(arguments: argparse.Namespace) -> int:
    """List the tables of a running server."""
    from liveboard import remote

    settings = config.load(arguments.config)
    for line in remote.table_lines(remote.server_address(settings, arguments.url, arguments.key, arguments.ca_file)):
        print(line)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write a whole table of a running server to a file, as of one moment."""
    from liveboard import remote

    where = remote.server_address(config.load(arguments.config), arguments.url, arguments.key, arguments.ca_file)
    remote.export(where, arguments.table, arguments.format, arguments.output)
    return 0


def key(arguments: argparse.Namespace) -> int:
    """Make a key for the server, and its hash for the configuration."""
    from liveboard.serving import hashes

    given = _read_key() if arguments.stdin else None
    made = given or hashes.new_key()
    if given is None:
        print(f"key:  {made.reveal()}")
    print(f"hash: {hashes.hashed(made)}")
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    """Check the machine, Kafka and the board, and say what to do about every problem."""
    from liveboard import doctor as checks

    return 0 if checks.run(config.load(arguments.config)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="liveboard", description="Live tables for business data.")
    parser.add_argument("--version", action="version", version=f"liveboard {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = run.__doc__ or ""
        added = commands.add_parser(run.__name__, help=text, description=text)
        added.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help="the configuration (default: $LIVEBOARD_CONFIG, or liveboard.toml here if there is one)",
        )
        added.set_defaults(run=run)
        return added

    everything = command(up)
    everything.add_argument("--sample", action="store_true", help="produce sample data too")
    everything.add_argument(
        "--rate", type=_number, metavar="N", help=f"sample events per second (default {_DEFAULT_RATE:.0f})"
    )
    command(broker)
    command(pipeline)
    command(serve)
    _sample_options(command(sample))
    _swap_options(command(swap))
    followed = command(tail)
    followed.add_argument("table", metavar="TABLE", help="such as final_ui")
    followed.add_argument("--from-start", action="store_true", help="print all that the changelog still has")
    followed.add_argument("--json", action="store_true", help="one JSON object per line")
    followed.add_argument("--limit", type=_count, metavar="N", help="stop after N changes")
    _server_options(followed, "a server instead of Kafka, which shows changes of the 1,000 newest rows")
    _server_options(command(tables))
    exported = command(export)
    exported.add_argument("table", metavar="TABLE", help="such as final_ui")
    exported.add_argument("--format", choices=EXPORT_FORMATS, help="default: what FILE ends with, otherwise csv")
    exported.add_argument("--output", type=Path, metavar="FILE", help="default: stdout")
    _server_options(exported)
    command(key).add_argument("--stdin", action="store_true", help="hash the key on standard input, not a new one")
    command(doctor)
    return parser


def _server_options(
    parser: argparse.ArgumentParser, url: str = "the server (default: as configured, or the one that `up` runs here)"
) -> None:
    parser.add_argument("--url", metavar="URL", help=url)
    parser.add_argument("--key", metavar="KEY", help="its key (default: server.psk, or the one that `up` has made)")
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="who may have signed its certificate (default: server.ca_file)"
    )


def _sample_options(parser: argparse.ArgumentParser) -> None:
    def option(name: str, type_: Callable[[str], object], metavar: str, default: object, text: str) -> None:
        shown = "" if default is None else f" (default {default})"
        parser.add_argument(name, type=type_, metavar=metavar, default=default, help=text + shown)

    option("--seed", _whole, "N", 1, "another seed, other events")
    option("--rate", _number, "N", _DEFAULT_RATE, "events per second, 0 for as fast as possible")
    option("--count", _count, "N", None, "stop after N events")
    option("--users", _count, "N", 1_000, "how many users there are")
    option("--late-users", _fraction, "F", 0.1, "the fraction of users that come after their first accounts")
    option("--bad", _fraction, "F", 0.0, "the fraction of events that cannot be read")
    option("--hot-keys", _whole, "N", 0, "how many users get half of all accounts")


def _swap_options(parser: argparse.ArgumentParser) -> None:
    def option(name: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        parser.add_argument(name, type=type_, metavar=metavar, action="append", default=[], help=text)

    parser.add_argument("--users", metavar="TOPIC", help="short for --topic users=TOPIC")
    parser.add_argument("--accounts", metavar="TOPIC", help="short for --topic accounts=TOPIC")
    option("--topic", _named, "NAME=TOPIC", "the topic of a source; sources that are not named keep theirs")
    option("--join", _maybe_named, "[TABLE=]KIND", "left, inner or asof, for the board's first join or the named one")
    parser.add_argument("--wait", action="store_true", help="show the build until it is live (exit 0) or failed (1)")
    _server_options(parser, "a server to send it through instead of Kafka")


def _read_key() -> config.Secret:
    text = getpass.getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline()
    given = config.Secret(text.removesuffix("\n").removesuffix("\r"))
    if not given:
        raise LiveboardError("--stdin: expected a key, found nothing")
    return given


def _named(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=TOPIC, found {text}")
    return name, value


def _maybe_named(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    return name, value


def _within(convert: Callable[[str], float], least: float, most: float, expected: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            value = convert(text)
            if least <= value <= most:
                return value
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text}")

    return read


_number = _within(float, 0, 1e9, "a number from 0")
_fraction = _within(float, 0, 1, "a number from 0 to 1")
_whole = _within(int, 0, 2**63, "a whole number from 0")
_count = _within(int, 1, 2**63, "a whole number from 1")


@contextlib.contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set, instead of ending the process at any place."""
    event = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: event.set()) for number in signals}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Progress:
    """A line that is rewritten in place on a terminal, and repeated now and then elsewhere."""

    _EVERY_S = 10.0

    def __init__(self) -> None:
        self._shown = time.monotonic()

    def show(self, text: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\033[K{text}", end="", flush=True)
        elif time.monotonic() - self._shown >= self._EVERY_S:
            print(text, flush=True)
            self._shown = time.monotonic()

    def end(self, text: str) -> None:
        print(f"\r\033[K{text}" if sys.stdout.isatty() else text, flush=True)
