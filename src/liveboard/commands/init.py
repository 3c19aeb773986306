"""`liveboard init`: a configuration for topics as they are, by questions or by options."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from liveboard import config
from liveboard.commands.dialogue import Dialogue
from liveboard.config import ConfigError, Settings
from liveboard.config.environment import CONFIG_VARIABLE, PREFIX, variable
from liveboard.config.settings import DEFAULT_FILE
from liveboard.contract.errors import LiveboardError, nearest
from liveboard.contract.joins import JOINS
from liveboard.contract.names import Names, is_board_name, without_boards
from liveboard.inspect.board import board_toml, secrets, source_names
from liveboard.inspect.excerpt import look
from liveboard.inspect.joins import Proposal, proposals
from liveboard.inspect.toml import remarks
from liveboard.inspect.topic import Topic
from liveboard.kafka import address, security
from liveboard.kafka.admin import Admin

_ALL = "all"
_SERVERS = ("kafka", "bootstrap_servers")


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was said on the command line; what is None is asked for."""

    output: Path
    topics: Sequence[str] | None = None
    joins: Sequence[Proposal] | None = None
    """Those wanted, whatever is proposed; their sides are sources or topics."""
    accept: bool = False
    """Takes every join that is proposed."""
    name: str | None = None
    force: bool = False
    records: int = 5_000


def settings(file: Path | None, servers: str | None, dialogue: Dialogue | None) -> Settings:
    """The settings, with the Kafka that is given, or else configured, or else asked for."""

    def with_servers(servers: str) -> Settings:
        return config.load(file, os.environ | {variable(_SERVERS): servers})

    if servers is not None:
        return with_servers(servers)
    found = config.load(file)
    if dialogue is None or not found.kafka.embedded:
        return found
    usual = f"127.0.0.1:{found.kafka.port or 9092}"
    return dialogue.ask(f"Where is Kafka? host:port, or Enter for {usual}:", with_servers, usual)


def run(settings: Settings, wishes: Wishes, dialogue: Dialogue | None, show: Callable[[str], None]) -> None:
    """Writes the configuration, which `liveboard up` can run as it is; asks where there is somebody to be asked."""
    if wishes.output.exists() and not wishes.force and not _may_replace(wishes.output, dialogue):
        return show("nothing is written")
    bootstrap = address.reachable(address.bootstrap(settings))
    kafka = security.librdkafka(settings.kafka, bootstrap)
    partitions = Admin(kafka).partitions()
    available = sorted(without_boards(partitions, settings.names))
    if not available:
        raise LiveboardError(f"expected topics at {bootstrap}, found none that a board could show; produce some events")
    chosen = _chosen(wishes.topics, available, partitions, dialogue, show)
    topics = _looked_at(kafka, chosen, wishes.records, show)
    joins = _joins(wishes, topics, dialogue, show)
    name = _board_name(wishes.name, settings.board.name, partitions, show)
    text = board_toml(replace(settings.kafka, bootstrap_servers=bootstrap), name, topics, joins)
    _check(text, wishes.output, secrets(settings.kafka))
    if dialogue and not wishes.accept and not dialogue.confirm(f"Write {wishes.output}?", default=True):
        return show("nothing is written")
    _write(text, wishes.output)
    tables = (
        f"{len(topics)} source{'s' if len(topics) > 1 else ''} and {len(joins)} join{'' if len(joins) == 1 else 's'}"
    )
    flag = "" if wishes.output == Path(DEFAULT_FILE) else f" --config {wishes.output}"
    show(f"{wishes.output} is written, with {tables}; `liveboard up{flag}` shows the board")


def _may_replace(output: Path, dialogue: Dialogue | None) -> bool:
    if not dialogue:
        raise LiveboardError(f"--output: expected a file that is not there yet, or --force, found {output}")
    return dialogue.confirm(f"{output} is there already. Replace it?", default=False)


def _chosen(
    wanted: Sequence[str] | None,
    available: Sequence[str],
    partitions: Mapping[str, int],
    dialogue: Dialogue | None,
    show: Callable[[str], None],
) -> list[str]:
    if wanted is not None:
        return chosen_topics(wanted, available)
    if not dialogue:
        raise LiveboardError("--topics: expected the topics to show, since nobody can be asked here, found nothing")
    for number, topic in enumerate(available, 1):
        many = partitions[topic]
        show(f"{number:>4}  {topic}  ({many} partition{'s' if many > 1 else ''})")
    question = "Which topics? Numbers or names with commas between them, or all:"
    return dialogue.ask(question, lambda answer: chosen_topics(answer.replace(",", " ").split(), available))


def chosen_topics(words: Sequence[str], available: Sequence[str]) -> list[str]:
    """The topics that names or numbers from 1 mean, each once; a LiveboardError where one means no topic."""
    if list(words) == [_ALL] and _ALL not in available:
        return list(available)
    chosen = []
    for word in words:
        if word not in available and word.isdecimal() and 1 <= int(word) <= len(available):
            word = available[int(word) - 1]
        if word not in available:
            expected = f'expected a topic such as {nearest(word, available)}, found "{word}"'
            raise LiveboardError(f"--topics: {expected}; there are {len(available)} to choose from")
        chosen.append(word)
    if not chosen:
        raise LiveboardError("--topics: expected at least one topic, found none")
    return list(dict.fromkeys(chosen))


def _looked_at(
    kafka: Mapping[str, str], chosen: Sequence[str], records: int, show: Callable[[str], None]
) -> dict[str, Topic]:
    """The topics that a board can show, by the names of their sources."""
    found: list[Topic] = []
    for name in chosen:
        try:
            topic = look(kafka, name, records)
        except LiveboardError as error:
            show(f"left out: {error}")
            continue
        about = list(remarks(topic))
        if topic.has_columns:
            found.append(topic)
            show(f"{about[0][:-1]}: {len(topic.columns)} columns")
        else:
            show(f"left out: {' '.join(about)}")
    if not found:
        raise LiveboardError(f"expected a topic with JSON objects among {', '.join(chosen)}, found none")
    names = source_names(topic.name for topic in found)
    return {names[topic.name]: topic for topic in found}


def _joins(
    wishes: Wishes, topics: Mapping[str, Topic], dialogue: Dialogue | None, show: Callable[[str], None]
) -> list[Proposal]:
    if wishes.joins is not None:
        sources = {topic.name: source for source, topic in topics.items()}
        return [
            replace(join, left=sources.get(join.left, join.left), right=sources.get(join.right, join.right))
            for join in wishes.joins
        ]
    found = proposals(topics)
    if wishes.accept:
        for join in found:
            show(f"joined: {in_words(join)}")
        return found
    if dialogue:
        return [join for join in found if dialogue.confirm(f"Join {in_words(join)}?", default=True)]
    if found:
        options = " ".join(f"--join left={j.left},right={j.right},on={j.on},how={j.how}" for j in found)
        raise LiveboardError(f"expected --yes, --no-joins or --join, found none of them; proposed: {options}")
    return []


def in_words(join: Proposal) -> str:
    """What the join does, and how many values of the sample speak for it."""
    found = JOINS[join.how].right_in_words
    return f"{join.left} with {join.right} ({found}) on {join.on}: {join.met:,} of {join.of:,} sampled values met"


def _board_name(wanted: str | None, usual: str, topics: Collection[str], show: Callable[[str], None]) -> str:
    if wanted is not None:
        if not is_board_name(wanted):
            expected = 'expected up to 30 letters, digits, "_" or "-" that begin with a letter or digit'
            raise LiveboardError(f'--name: {expected}, found "{wanted}"')
        return wanted
    name, number = usual, 1
    while Names(name).status in topics:
        number += 1
        name = f"{usual[:26]}-{number}"
    if name != usual:
        show(f"The board is called {name}, since a board {usual} is on this Kafka already; --name sets another name")
    return name


def _check(text: str, output: Path, secrets: dict[str, str]) -> None:
    """Has the configuration read as `liveboard up` will read it, before anything is written."""
    ours = (CONFIG_VARIABLE, f"{PREFIX}BOARD")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / DEFAULT_FILE
        file.write_text(text, encoding="utf-8")
        try:
            config.load(file, secrets | others)
        except ConfigError as error:
            raise LiveboardError(str(error).replace(str(file), str(output))) from None


def _write(text: str, output: Path) -> None:
    part = output.with_name(f"{output.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(output)
    except OSError as error:
        raise LiveboardError(f"--output: expected to write {output}, found: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
