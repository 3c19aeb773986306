"""Links that log in once."""

from __future__ import annotations

import pytest

from liveboard.access import Access, login_link
from liveboard.config import Secret
from liveboard.serving.login import Logins, make_token

KEY = Secret("the key")


def test_a_token_gives_the_key_once() -> None:
    logins, token = Logins(KEY), make_token(KEY)
    assert logins.exchange(token) == KEY
    assert logins.exchange(token) is None


def test_a_link_carries_a_token() -> None:
    address, _, token = login_link(Access("http://127.0.0.1:8080", "the key")).partition("#login=")
    assert address == "http://127.0.0.1:8080/"
    assert Logins(KEY).exchange(token) == KEY


def test_a_token_that_is_too_old_is_refused() -> None:
    assert Logins(KEY).exchange(make_token(KEY, life_s=-1)) is None


@pytest.mark.parametrize("forged", ["", ".", "9999999999.x.00", "ä.ö.ü", "9" * 10_000])
def test_a_forged_token_is_refused(forged: str) -> None:
    assert Logins(KEY).exchange(forged) is None


def test_a_token_of_another_key_or_another_time_is_refused() -> None:
    assert Logins(KEY).exchange(make_token(Secret("another"))) is None
    end, _, rest = make_token(KEY).partition(".")
    assert Logins(KEY).exchange(f"{int(end) + 1000}.{rest}") is None
