"""Where in a JSON document a value is: `customer.address.city`, `items[0].sku`, or `$` for the whole document."""

from __future__ import annotations

import re
from collections.abc import Sequence

from liveboard.contract.errors import LiveboardError

Step = str | int
"""The name of a field, or the place in an array, counted from 0."""
Path = tuple[Step, ...]

WHOLE = "$"
_NAME = re.compile(r"`((?:[^`]|``)+)`|([^.\[\]`\s]+)")
_INDEX = re.compile(r"\[([0-9]{1,6})\]")
_PLAIN = re.compile(r"[^.\[\]`\s]+")
# Spark can look into a variant by such a name in no way.
_NOT_FOUND_BY_SPARK = re.compile(r'(?=.*[.\[])(?=.*["?])', re.DOTALL)


class PathError(LiveboardError):
    """A path that cannot be read; the message says what was expected, what was found and where."""


def parse_path(text: str) -> Path:
    """The steps of a path; names other than plain ones stand in backquotes, a backquote inside is doubled."""
    if text == WHOLE:
        return ()
    at = 2 if text.startswith(f"{WHOLE}.") else 0
    steps: list[Step] = []
    while True:
        name = _NAME.match(text, at)
        if not name:
            raise _error("the name of a field", text, at)
        steps.append(name[2] or name[1].replace("``", "`"))
        if _NOT_FOUND_BY_SPARK.match(str(steps[-1])):
            raise PathError(f'expected a field without a quotation mark or "?" beside a dot, found {steps[-1]}')
        at = name.end()
        while index := _INDEX.match(text, at):
            steps.append(int(index[1]))
            at = index.end()
        if at == len(text):
            return tuple(steps)
        if text[at] == "[":
            raise _error("a place such as [0]", text, at)
        if text[at] != ".":
            raise _error('".", "[" or the end', text, at)
        at += 1


def path_text(path: Sequence[Step]) -> str:
    """The path as people write it; a single name as it is, whatever it holds."""
    if len(path) == 1:
        return str(path[0])
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_written(step)}" for step in path)[1:] or WHOLE


def written_path(path: Sequence[Step]) -> str:
    """The path as `parse_path` reads it."""
    return _written(str(path[0])) if len(path) == 1 else path_text(path)


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name != WHOLE else "`" + name.replace("`", "``") + "`"


def _error(expected: str, text: str, at: int) -> PathError:
    found = f'"{text[at:][:20]}"' if at < len(text) else "the end"
    return PathError(f'expected {expected} at character {at + 1} of "{text}", found {found}')
