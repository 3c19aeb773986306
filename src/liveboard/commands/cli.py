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
from liveboard.commands import arguments as options
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import EXPORT_FORMATS

# The rest is imported by the commands that need it, so that each of them answers at once.

_INTERRUPTED = 130
_LONGEST_STOP_S = 9.0


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
    from liveboard.commands import up as everything

    if arguments.rate is not None and not arguments.sample:
        raise LiveboardError("--rate: expected --sample with it, since it is the rate of the sample data")
    rate = arguments.rate if arguments.rate is not None else options.DEFAULT_RATE
    sampled = everything.Sample(arguments.sample, rate) if arguments.sample else None
    settings = config.load(arguments.config)
    _provide_libraries()
    with _stopping() as stopping:
        everything.run(settings, arguments.config, sampled, stopping)
    return 0


def broker(arguments: argparse.Namespace) -> int:
    """Run the embedded Kafka broker alone."""
    from liveboard.kafka import address
    from liveboard.kafka.broker import Broker

    settings = config.load(arguments.config)
    _provide_libraries()
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
    from liveboard.orchestrator.metrics import PipelineMetrics

    settings = config.load(arguments.config)
    _provide_libraries()
    metrics = PipelineMetrics(settings.storage.dir / "broker", standby=arguments.standby)
    with _stopping() as stopping, _in_time(stopping), metrics.served(settings.pipeline):
        service.run(
            settings,
            address.bootstrap(settings),
            lambda text: print(text, flush=True),
            stopping,
            metrics.watch,
            standby=arguments.standby,
        )
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
    """Produce believable data: users and accounts for the default board, or a shop with nested and keyed records."""
    from liveboard.kafka import address, security
    from liveboard.kafka.admin import Admin
    from liveboard.sample import shop, users
    from liveboard.sample.producing import produce

    settings = config.load(arguments.config)
    given = {name: value for name in options.SAMPLE_OPTIONS if (value := getattr(arguments, name)) is not None}
    if arguments.like == "shop":
        if odd := given.keys() & set(options.USERS_OPTIONS):
            flag = f"--{sorted(odd)[0].replace('_', '-')}"
            raise LiveboardError(f"{flag}: expected no --like shop with it, since it is about users and accounts")
        topics, events = list(shop.TOPICS), shop.events(shop.Options(**given))
    else:
        chosen = users.options_for(settings.board, **given)
        topics, events = [chosen.users_topic, chosen.accounts_topic], users.events(chosen)
    kafka = security.librdkafka(settings.kafka, address.reachable(address.bootstrap(settings)))
    if settings.kafka.embedded:
        Admin(kafka).create(topics)
    Admin(kafka).require(topics)
    progress = _Progress()
    with _stopping() as stopping:
        sent = produce(events, arguments.rate, kafka, stopping, progress.show)
    progress.end(f"{sent:,} events sent to {', '.join(topics[:-1])} and {topics[-1]}")
    return 0


def inspect(arguments: argparse.Namespace) -> int:
    """Look at a topic and print the TOML of a source for it."""
    from liveboard.commands import inspect as inspecting

    print(inspecting.run(config.load(arguments.config), arguments.topic, arguments.records), end="")
    return 0


def init(arguments: argparse.Namespace) -> int:
    """Write the configuration of a board for topics as they are; asks for what the options leave open."""
    from liveboard.commands import init as initialising
    from liveboard.commands.dialogue import Dialogue

    def show(text: str) -> None:
        print(text, flush=True)

    dialogue = Dialogue(show) if sys.stdin.isatty() and sys.stdout.isatty() else None
    wishes = initialising.Wishes(
        output=arguments.output,
        topics=arguments.topics,
        joins=[] if arguments.no_joins else arguments.join,
        accept=arguments.yes,
        name=arguments.name,
        force=arguments.force,
        records=arguments.records,
    )
    settings = initialising.settings(arguments.config, arguments.bootstrap_servers, dialogue)
    initialising.run(settings, wishes, dialogue, show)
    return 0


def send(arguments: argparse.Namespace) -> int:
    """Send one record to a source: a JSON object, or - for standard input."""
    from liveboard.commands import send as sending

    text = sys.stdin.read() if arguments.record == "-" else arguments.record
    print(sending.run(config.load(arguments.config), arguments.source, text))
    return 0


def swap(arguments: argparse.Namespace) -> int:
    """Point the board at other topics or another join, while everyone is watching."""
    from liveboard.commands import swap as swapping

    settings = config.load(arguments.config)
    topics, joins = dict(arguments.topic), dict(arguments.join)
    topics |= {source: topic for source in ("users", "accounts") if (topic := getattr(arguments, source))}
    if not topics and not joins:
        raise LiveboardError("expected another topic or join, as in --users TOPIC or --join inner, found neither")
    progress = _Progress()
    if arguments.url:
        from liveboard.commands import remote

        where = remote.server_address(settings, arguments.url, arguments.key, arguments.ca_file)
        said = remote.swap(where, topics, joins, wait=arguments.wait, show=progress.show)
    else:
        said = swapping.run(settings, topics, joins, wait=arguments.wait, show=progress.show)
    progress.end(said)
    return 0


def tail(arguments: argparse.Namespace) -> int:
    """Follow a table: its last changes, then every one that comes."""
    from liveboard.commands import tail as tailing

    settings = config.load(arguments.config)
    if arguments.url:
        from liveboard.commands import remote

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
    from liveboard.commands import remote

    settings = config.load(arguments.config)
    for line in remote.table_lines(remote.server_address(settings, arguments.url, arguments.key, arguments.ca_file)):
        print(line)
    return 0


def query(arguments: argparse.Namespace) -> int:
    """Ask a running server with SQL: one SELECT over its tables."""
    from liveboard.commands import remote

    where = remote.server_address(config.load(arguments.config), arguments.url, arguments.key, arguments.ca_file)
    remote.query(where, arguments.sql, watch=arguments.watch, as_json=arguments.json)
    return 0


def view(arguments: argparse.Namespace) -> int:
    """Define a view on the servers of a running board, a table made of others with SQL, or remove one."""
    from liveboard.client.api import Api
    from liveboard.commands import remote

    if arguments.remove == (arguments.sql is not None):
        raise LiveboardError("expected either a SELECT statement or --remove, found both or neither")
    where = remote.server_address(config.load(arguments.config), arguments.url, arguments.key, arguments.ca_file)
    if arguments.remove:
        Api(where).remove_view(arguments.name)
    else:
        Api(where).define_view(arguments.name, arguments.sql, arguments.column)
    print(f"view {arguments.name} {'removed' if arguments.remove else 'defined'}")
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write a whole table of a running server to a file, as of one moment."""
    from liveboard.commands import remote

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
    from liveboard.commands import doctor as checks

    return 0 if checks.run(config.load(arguments.config)) else 1


def _provide_libraries() -> None:
    """After an installation with pip, the first command that needs the Java libraries fetches them."""
    from liveboard.install import progress

    progress.provide_libraries("liveboard: fetching the Java libraries, which takes a minute and is done once")


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
    everything.add_argument(
        "--sample",
        nargs="?",
        const=options.SAMPLES[0],
        choices=options.SAMPLES,
        help="produce sample data too: users and accounts, or a shop as examples/shop.toml shows it",
    )
    everything.add_argument(
        "--rate",
        type=options.number,
        metavar="N",
        help=f"sample events per second (default {options.DEFAULT_RATE:.0f})",
    )
    command(broker)
    command(pipeline).add_argument(
        "--standby", action="store_true", help="wait while another one keeps the board, and take over when it ends"
    )
    command(serve)
    options.sample_options(command(sample))
    options.send_options(command(send))
    options.inspect_options(command(inspect))
    options.init_options(command(init))
    options.swap_options(command(swap))
    followed = command(tail)
    followed.add_argument("table", metavar="TABLE", help="such as final_ui")
    followed.add_argument("--from-start", action="store_true", help="print all that the changelog still has")
    followed.add_argument("--json", action="store_true", help="one JSON object per line")
    followed.add_argument("--limit", type=options.count, metavar="N", help="stop after N changes")
    options.server_options(followed, "a server instead of Kafka, which shows changes of the 1,000 newest rows")
    options.server_options(command(tables))
    asked = command(query)
    asked.add_argument("sql", metavar="SQL", help='such as "SELECT accountType, count(*) FROM final_ui GROUP BY 1"')
    asked.add_argument("--watch", action="store_true", help="show the answer again whenever it has changed")
    asked.add_argument("--json", action="store_true", help="one JSON object per row")
    options.server_options(asked)
    viewed = command(view)
    viewed.add_argument("name", metavar="NAME", help="of the table that it becomes")
    viewed.add_argument("sql", metavar="SQL", nargs="?", help="one SELECT over the tables of the board")
    viewed.add_argument("--column", action="append", default=[], metavar="C", help="one that tells its rows apart")
    viewed.add_argument("--remove", action="store_true", help="take it away")
    options.server_options(viewed)
    exported = command(export)
    exported.add_argument("table", metavar="TABLE", help="such as final_ui")
    exported.add_argument("--format", choices=EXPORT_FORMATS, help="default: what FILE ends with, otherwise csv")
    exported.add_argument("--output", type=Path, metavar="FILE", help="default: stdout")
    options.server_options(exported)
    command(key).add_argument("--stdin", action="store_true", help="hash the key on standard input, not a new one")
    command(doctor)
    return parser


def _read_key() -> config.Secret:
    text = getpass.getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline()
    given = config.Secret(text.removesuffix("\n").removesuffix("\r"))
    if not given:
        raise LiveboardError("--stdin: expected a key, found nothing")
    return given


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


@contextlib.contextmanager
def _in_time(stopping: threading.Event) -> Iterator[None]:
    """Ends the process some seconds after `stopping` was set, whatever still waits for Kafka or Spark.

    A crash at any moment loses nothing, and neither does this.
    """
    ended = threading.Event()

    def watch() -> None:
        stopping.wait()
        if not ended.wait(_LONGEST_STOP_S):
            print(f"liveboard: expected to have stopped within {_LONGEST_STOP_S:.0f} s, ends as it is", flush=True)
            os._exit(0)

    threading.Thread(target=watch, name="stopping in time", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


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
