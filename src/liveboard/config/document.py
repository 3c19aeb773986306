"""From raw configuration values to frozen settings, with the place each value came from for every complaint.

A settings class is a dataclass, and the type of a field says what its key holds: Annotated with a Spec, or a
Literal, it is one value; a settings class, or that or None, is a section; a mapping to a settings class is
sections under names of the user's choice, which have the name as their `name`.
"""

import functools
import json
import keyword
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Literal

from liveboard.config.values import NAME, InnerErrors, Spec, choice, describe
from liveboard.contract.errors import LiveboardError, nearest

Key = tuple[str, ...]

_BARE_WORD = re.compile(r"[A-Za-z0-9_-]+|<name>")


def dotted(key: Key) -> str:
    """The key as TOML writes it, words that are not bare keys in quotes."""
    return ".".join(w if _BARE_WORD.fullmatch(w) else json.dumps(w, ensure_ascii=False) for w in key)


class Document:
    """Raw values by key, the place each came from, and every problem found with them so far."""

    def __init__(self, root: dict[str, Any], origin: str) -> None:
        self.problems: list[str] = []
        self._root = root
        self._origins: dict[Key, str] = {(): origin}

    def get(self, key: Key) -> Any:
        """The value at a key; None if there is none."""
        value: Any = self._root
        for word in key:
            value = value.get(word) if isinstance(value, dict) else None
        return value

    def put(self, key: Key, value: object, origin: str) -> None:
        """Set the value at a key. If something on the way there is not a table, it stays, and is refused later."""
        table: Any = self._root
        for word in key[:-1]:
            table = table.setdefault(word, {})
            if not isinstance(table, dict):
                return
        table[key[-1]] = value
        self._origins[key] = origin

    def origin(self, key: Key) -> str:
        """Where the value at a key came from, or else the innermost table around it."""
        return next(self._origins[key[:n]] for n in range(len(key), -1, -1) if key[:n] in self._origins)

    def problem(self, key: Key, text: str, because: Key | None = None) -> None:
        """Note what is wrong with a key; `because` is the key that makes it wrong, if not itself."""
        self.complain(f"{dotted(key)}: {text} ({self.origin(because or key)})")

    def complain(self, text: str) -> None:
        """Note a problem; line ends and other characters that would not print are escaped."""
        self.problems.append("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text))


@dataclass(frozen=True)
class Section:
    """A section's class, the spec to read it with if it may be given whole, and its check as a whole."""

    cls: type
    spec: Spec | None = None
    check: Callable[[Document, Any], None] | None = None


@dataclass(frozen=True)
class _Named:
    cls: type


_Kind = Spec | Section | _Named


@functools.cache
def _kinds(cls: type) -> dict[str, _Kind]:
    hints = typing.get_type_hints(cls, include_extras=True)
    # A key that is a word of Python has a field with "_" behind it.
    kinds = {name.removesuffix("_"): _kind(hint) for name, hint in hints.items()}
    return {name: kind for name, kind in kinds.items() if kind}


def _field(key: str) -> str:
    return f"{key}_" if keyword.iskeyword(key) else key


def _kind(hint: Any) -> _Kind | None:
    arguments = typing.get_args(hint)
    for argument in arguments[1:]:
        if isinstance(argument, Spec | Section):
            return argument
    if typing.get_origin(hint) is Literal:
        return choice(*arguments)
    classes: list[Any] = [cls for cls in (hint, *arguments) if is_dataclass(cls)]
    if not classes:
        return None
    return _Named(classes[0]) if typing.get_origin(hint) is Mapping else Section(classes[0])


def patterns(cls: type, at: Key = ()) -> Iterator[tuple[Key, Spec]]:
    """Every key of a settings class, with <name> where the user chooses the name."""
    for name, kind in _kinds(cls).items():
        here = (*at, name)
        match kind:
            case Spec():
                yield here, kind
            case Section():
                if kind.spec:
                    yield here, kind.spec
                yield from patterns(kind.cls, here)
            case _Named():
                yield from patterns(kind.cls, (*here, "<name>"))


def keys_of(document: Document, cls: type) -> dict[Key, Spec]:
    """Every key of a settings class, with the names that the document has."""
    keys: dict[Key, Spec] = {}
    for pattern, spec in patterns(cls):
        if "<name>" not in pattern:
            keys[pattern] = spec
            continue
        at = pattern.index("<name>")
        tables = document.get(pattern[:at])
        keys |= {(*pattern[:at], n, *pattern[at + 1 :]): spec for n in (tables if isinstance(tables, dict) else ())}
    return keys


WRONG: Any = object()


def build(document: Document, cls: type, at: Key = (), **given: str) -> Any:
    """A settings class filled from the table at a key; WRONG, with the reasons noted, if it cannot be."""
    table = document.get(at)
    if not isinstance(table, dict):
        document.problem(at, f"expected a table, found {describe(table)}")
        return WRONG
    kinds = _kinds(cls)
    for word in table:
        if word not in kinds:
            known = dotted((*at, nearest(word, kinds)))
            document.problem((*at, word), f"unknown key, the nearest known one is {known}")
    built: dict[str, Any] = dict(given)
    required = {f.name.removesuffix("_") for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
    for name, kind in kinds.items():
        if name in table:
            built[_field(name)] = _value(document, kind, (*at, name))
        elif name in required and isinstance(kind, Spec):
            document.problem((*at, name), f"expected {kind.expected}, found nothing")
            built[name] = WRONG
    return WRONG if any(value is WRONG for value in built.values()) else cls(**built)


def _value(document: Document, kind: _Kind, at: Key) -> Any:
    match kind:
        case Spec():
            try:
                return kind.read(document.get(at))
            except InnerErrors as errors:
                for inner, text in errors.problems:
                    document.problem((*at, *inner), text)
                return WRONG
            except LiveboardError as error:
                document.problem(at, str(error))
                return WRONG
        case Section():
            built = build(document, kind.cls, at)
            if kind.check and built is not WRONG:
                kind.check(document, built)
            return built
        case _Named():
            return _named_values(document, kind.cls, at)


def _named_values(document: Document, cls: type, at: Key) -> Any:
    tables = document.get(at)
    if not isinstance(tables, dict):
        document.problem(at, f"expected a table, found {describe(tables)}")
        return WRONG
    built = {name: build(document, cls, (*at, name), name=name) for name in tables}
    for name in tables:
        try:
            NAME.read(name)
        except LiveboardError as error:
            document.problem((*at, name), str(error))
    return MappingProxyType({name: item for name, item in built.items() if item is not WRONG})


def check_distinct(document: Document, what: str, names: Mapping[Key, str], fold: Callable[[str], str]) -> None:
    """Names every name that is there twice, as `fold` sees them."""
    first: dict[str, Key] = {}
    for at, name in names.items():
        other = first.setdefault(fold(name), at)
        if other != at:
            document.problem(at, f'expected a {what} of its own, found "{name}" as in {dotted(other)}')
