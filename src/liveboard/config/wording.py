"""What the complaints about a board's parts have in common."""

from collections.abc import Iterable

from liveboard.contract.errors import either, nearest
from liveboard.contract.types import TYPES


def expected_one_of(what: str, known: Iterable[str], word: str) -> str:
    """The complaint about a name that is not among the known ones."""
    return f'expected {what} ({", ".join(known)}), found "{word}", did you mean {nearest(word, known)}?'


def key_types() -> str:
    """The types of columns that can tell rows apart."""
    return either([type_.name for type_ in TYPES.values() if not type_.not_a_key])
