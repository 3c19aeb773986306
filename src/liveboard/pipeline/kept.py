"""Expressions that depend on the board alone, made once and kept for its next query.

PySpark calls Java for every part of an expression, some thousand times for a board. A swap, a repair or a restart of
the stream would wait for that. Expressions name tables and sources; only a query knows generations and topics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

# Boards do not change while a process runs, but the kinds of their joins do.
_MOST = 64

_made: dict[tuple[str, str], Any] = {}

Parameters = ParamSpec("Parameters")
Made = TypeVar("Made")


def kept(make: Callable[Parameters, Made]) -> Callable[Parameters, Made]:
    """Has a function make the expressions of the same arguments only once; arguments are told apart by their repr."""

    @wraps(make)
    def found(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Made:
        key = (f"{make.__module__}.{make.__qualname__}", repr((args, kwargs)))
        if key not in _made:
            made = make(*args, **kwargs)
            while len(_made) >= _MOST:
                _made.pop(next(iter(_made)), None)
            _made[key] = made
        return _made[key]  # type: ignore[no-any-return]

    return found


def forget() -> None:
    """To be called before Java is started anew: expressions live in it."""
    _made.clear()
