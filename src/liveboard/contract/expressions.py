"""The expressions of aggregates: the part of Spark SQL that cannot fail and depends on nothing but the record.

    expression  a OR b, a AND b, NOT a
    predicate   = == != <> < <= > >=, IS [NOT] NULL, [NOT] IN (…), [NOT] BETWEEN … AND …, [NOT] LIKE '…'
    number      + - * / % and abs(x); `/` gives a double
    value       a column, `ts`, 12, 1.5, 'text', TRUE, FALSE, lower(x), upper(x), length(x), coalesce(x, y)

Words are read in any case, columns as the schema writes them, odd names in backquotes. What cannot be computed is null,
as a division by zero or an integer beyond 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from liveboard.contract.errors import LiveboardError, nearest
from liveboard.contract.types import MOST_DIGITS, TYPES, column_type

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?![\w.]))|(?P<text>'[^'\\]*'|\"[^\"\\]*\")|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign><=|>=|<>|!=|==|[-+*/%=<>(),]))"
)
_SIGNS = {"==": "=", "<>": "!="}
_TURNED = {">": "<", ">=": "<="}
_TEXT_FUNCTIONS = {"lower": "string", "upper": "string", "length": "int"}
_FUNCTIONS = ("abs", "coalesce", *_TEXT_FUNCTIONS)
_NUMBERS = [name for name, type_ in TYPES.items() if type_.is_number]
_RESERVED = {"and", "or", "not", "is", "null", "in", "between", "like", "true", "false"}


class ExpressionError(LiveboardError):
    """A text that is no such expression; the message says what was expected and what was found."""


@dataclass(frozen=True)
class Expression:
    """An operator with what it is applied to, and the type of what it gives."""

    operator: str
    type: str
    """As a schema writes it."""
    of: tuple[Expression, ...] = ()
    value: str = ""
    """The column's name, or the literal's text."""

    @property
    def kind(self) -> str:
        """The type without its parameters."""
        return column_type(self.type).name


def parse_expression(text: str, columns: Mapping[str, str]) -> Expression:
    """The expression that a text means over columns of these types; an ExpressionError says what is wrong."""
    parser = _Parser(text, columns)
    found = parser.expression()
    parser.end()
    return found


def parse_condition(text: str, columns: Mapping[str, str]) -> Expression:
    """An expression that is true or false."""
    found = parse_expression(text, columns)
    if found.type != "boolean":
        raise ExpressionError(f"expected a condition such as balance > 0, found a {found.type}")
    return found


class _Parser:
    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._tokens = list(_tokens(text))
        self._at = 0

    def expression(self) -> Expression:
        found = self._all()
        while self._takes("or"):
            found = _logical("or", found, self._all())
        return found

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise ExpressionError(f"expected an operator or the end, found {self._shown()}")

    def _all(self) -> Expression:
        found = self._not()
        while self._takes("and"):
            found = _logical("and", found, self._not())
        return found

    def _not(self) -> Expression:
        return _negated(self._not()) if self._takes("not") else self._predicate()

    def _predicate(self) -> Expression:
        found = self._sum()
        for sign in ("=", "!=", "<", "<=", ">", ">="):
            if self._takes(sign):
                return _compared(sign, found, self._sum())
        if self._takes("is"):
            negated = self._takes("not")
            self._expect("null")
            return _negated(_null(found)) if negated else _null(found)
        negated = self._takes("not")
        if self._takes("in"):
            self._expect("(")
            said = self._any_of(found)
        elif self._takes("between"):
            low = _compared(">=", found, self._sum())
            self._expect("and")
            said = _logical("and", low, _compared("<=", found, self._sum()))
        elif self._takes("like"):
            pattern = self._sum()
            if found.type != "string" or pattern.type != "string" or pattern.operator != "literal":
                raise ExpressionError("expected LIKE between a text and a pattern such as 'a%', found something else")
            said = Expression("like", "boolean", (found,), pattern.value)
        elif negated:
            raise ExpressionError(f"expected IN, BETWEEN or LIKE after NOT, found {self._shown()}")
        else:
            return found
        return _negated(said) if negated else said

    def _any_of(self, found: Expression) -> Expression:
        said = _compared("=", found, self._sum())
        while not self._takes(")"):
            self._expect(",")
            said = _logical("or", said, _compared("=", found, self._sum()))
        return said

    def _sum(self) -> Expression:
        found = self._product()
        while sign := next((sign for sign in "+-" if self._takes(sign)), ""):
            found = _computed(sign, found, self._product())
        return found

    def _product(self) -> Expression:
        found = self._single()
        while sign := next((sign for sign in "*/%" if self._takes(sign)), ""):
            found = _computed(sign, found, self._single())
        return found

    def _single(self) -> Expression:
        if self._takes("-"):
            return _number("negative", self._single())
        if self._takes("("):
            found = self.expression()
            self._expect(")")
            return found
        if self._at == len(self._tokens):
            raise ExpressionError("expected a column or a value, found the end")
        kind, text = self._tokens[self._at]
        self._at += 1
        match kind:
            case "number":
                return Expression("literal", _number_type(text), value=text)
            case "text":
                return Expression("literal", "string", value=text[1:-1])
            case "quoted":
                return self._column(text[1:-1].replace("``", "`"))
            case "word" if text.lower() in ("true", "false"):
                return Expression("literal", "boolean", value=text.lower())
            case "word" if text.lower() not in _RESERVED:
                return self._function(text) if self._takes("(") else self._column(text)
        self._at -= 1
        raise ExpressionError(f"expected a column or a value, found {self._shown()}")

    def _column(self, name: str) -> Expression:
        if name not in self._columns:
            known = ", ".join(self._columns)
            raise ExpressionError(
                f'expected a column ({known}), found "{name}", did you mean {nearest(name, self._columns)}?'
            )
        return Expression("column", self._columns[name], value=name)

    def _function(self, word: str) -> Expression:
        name = word.lower()
        if name not in _FUNCTIONS:
            raise ExpressionError(f'expected a function ({", ".join(_FUNCTIONS)}), found "{word}"')
        given = [self.expression()]
        while not self._takes(")"):
            self._expect(",")
            given.append(self.expression())
        if name == "coalesce":
            return _first_known(given)
        if len(given) > 1:
            raise ExpressionError(f"expected one value in {name}(…), found {len(given)}")
        if name == "abs":
            return _number("abs", given[0])
        if given[0].type != "string":
            raise ExpressionError(f"expected a text in {name}(…), found a {given[0].type}")
        return Expression(name, _TEXT_FUNCTIONS[name], (given[0],))

    def _takes(self, word: str) -> bool:
        if self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind in ("word", "sign") and _SIGNS.get(text, text.lower()) == word:
                self._at += 1
                return True
        return False

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise ExpressionError(f"expected {word.upper()}, found {self._shown()}")

    def _shown(self) -> str:
        return f'"{self._tokens[self._at][1]}"' if self._at < len(self._tokens) else "the end"


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if not found or not found.lastgroup:
            raise ExpressionError(f'expected a column, a value or an operator, found "{text[at:].strip()[:20]}"')
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


def _logical(word: str, one: Expression, other: Expression) -> Expression:
    for each in (one, other):
        _need_boolean(each, word.upper())
    return Expression(word, "boolean", (one, other))


def _negated(found: Expression) -> Expression:
    _need_boolean(found, "NOT")
    return Expression("not", "boolean", (found,))


def _need_boolean(found: Expression, word: str) -> None:
    if found.type != "boolean":
        raise ExpressionError(f"expected conditions around {word}, found a {found.type}")


def _null(found: Expression) -> Expression:
    return Expression("null", "boolean", (found,))


def _compared(sign: str, one: Expression, other: Expression) -> Expression:
    one, other = _alike(one, other), _alike(other, one)
    both_numbers = one.kind in _NUMBERS and other.kind in _NUMBERS
    for each in (one, other):
        if each.kind in ("json", "binary"):
            raise ExpressionError(f"expected something that can be compared, found a {each.type}")
    if not both_numbers and one.type != other.type:
        raise ExpressionError(f"expected two values of one type around {sign}, found {one.type} and {other.type}")
    if sign == "!=":
        return _negated(Expression("=", "boolean", (one, other)))
    if sign in _TURNED:
        sign, one, other = _TURNED[sign], other, one
    return Expression(sign, "boolean", (one, other))


def _alike(found: Expression, beside: Expression) -> Expression:
    """A text beside a date or a time is one."""
    if found.operator != "literal" or found.type != "string" or beside.type not in ("date", "timestamp"):
        return found
    try:
        (date if beside.type == "date" else datetime).fromisoformat(found.value)
    except ValueError:
        example = "2026-01-31" if beside.type == "date" else "2026-01-31T09:30:00Z"
        raise ExpressionError(f"expected a {beside.type} such as '{example}', found '{found.value}'") from None
    return Expression("literal", beside.type, value=found.value)


def _number(operator: str, found: Expression) -> Expression:
    if found.kind not in _NUMBERS:
        raise ExpressionError(f"expected a number, found a {found.type}")
    return Expression(operator, "bigint" if found.type == "int" else found.type, (found,))


def _computed(sign: str, one: Expression, other: Expression) -> Expression:
    for each in (one, other):
        if each.kind not in _NUMBERS:
            raise ExpressionError(f"expected numbers around {sign}, found a {each.type}")
    if sign == "/" or "double" in (one.type, other.type):
        return Expression(sign, "double", (one, other))
    if "decimal" not in (one.kind, other.kind):
        return Expression(sign, "bigint", (one, other))
    return Expression(sign, _decimal(sign, _digits(one), _digits(other)), (one, other))


def _digits(found: Expression) -> tuple[int, int]:
    """All digits, and those behind the point."""
    if found.kind == "decimal":
        precision, scale = column_type(found.type).parameters
        return precision, scale
    return (10, 0) if found.type == "int" else (19, 0)


def _decimal(sign: str, one: tuple[int, int], other: tuple[int, int]) -> str:
    whole, scale = max(one[0] - one[1], other[0] - other[1]), max(one[1], other[1])
    if sign == "*":
        whole, scale = one[0] - one[1] + other[0] - other[1], one[1] + other[1]
    digits = whole + scale + (sign in "+-")
    if digits > MOST_DIGITS:
        raise ExpressionError(f"expected at most {MOST_DIGITS} digits of {sign}, found {digits}")
    return f"decimal({digits},{scale})"


def _number_type(text: str) -> str:
    whole, _, fraction = text.partition(".")
    if not fraction:
        if int(whole) >= 2**63:
            raise ExpressionError(f"expected an integer of 64 bits, found {text}")
        return "int" if int(whole) < 2**31 else "bigint"
    digits = max(len(whole.lstrip("0")) + len(fraction), len(fraction))
    if digits > MOST_DIGITS:
        raise ExpressionError(f"expected at most {MOST_DIGITS} digits, found {text}")
    return f"decimal({digits},{len(fraction)})"


def _first_known(given: Sequence[Expression]) -> Expression:
    types = {each.type for each in given}
    if len(types) > 1:
        if any(each.kind not in _NUMBERS for each in given):
            raise ExpressionError(f"expected values of one type in coalesce(…), found {', '.join(sorted(types))}")
        kinds = {each.kind for each in given}
        if "decimal" in kinds and "double" not in kinds:
            digits = [_digits(each) for each in given]
            scale = max(behind for _, behind in digits)
            whole = max(all_ - behind for all_, behind in digits)
            return Expression("coalesce", f"decimal({min(whole + scale, MOST_DIGITS)},{scale})", tuple(given))
        return Expression("coalesce", "double" if "double" in kinds else "bigint", tuple(given))
    return Expression("coalesce", given[0].type, tuple(given))
