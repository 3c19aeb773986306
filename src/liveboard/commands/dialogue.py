"""Questions on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from liveboard.contract.errors import LiveboardError

T = TypeVar("T")


class Dialogue:
    """Asks until the answer can be used."""

    def __init__(self, show: Callable[[str], None], read: Callable[[str], str] = input) -> None:
        self._show = show
        self._read = read

    def ask(self, question: str, understood: Callable[[str], T], default: str = "") -> T:
        """What `understood` makes of the answer; where it raises a LiveboardError, that is said and asked again."""
        while True:
            answer = self._answer(question) or default
            try:
                return understood(answer)
            except LiveboardError as error:
                self._show(str(error))

    def confirm(self, question: str, *, default: bool) -> bool:
        """Whether the answer is yes; a bare Enter is the default."""
        while True:
            answer = self._answer(f"{question} [{'Y/n' if default else 'y/N'}]").lower()
            if answer in ("", "y", "yes", "n", "no"):
                return answer[0] == "y" if answer else default
            self._show(f'expected y or n, found "{answer}"')

    def _answer(self, question: str) -> str:
        try:
            return self._read(f"{question} ").strip()
        except EOFError:
            self._show("")
            raise LiveboardError("expected an answer, found the end of the input; nothing is written") from None
