"""Links that log in once."""

from __future__ import annotations

from pathlib import Path

import pytest

from liveboard.commands.access import Access, login_link
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


def test_a_used_token_stays_used_after_a_restart(tmp_path: Path) -> None:
    file, token, other = tmp_path / "storage" / "used.json", make_token(KEY), make_token(KEY)
    assert Logins(KEY, file).exchange(token) == KEY
    assert Logins(KEY, file).exchange(token) is None
    assert Logins(KEY, file).exchange(other) == KEY
    assert Logins(KEY, file).exchange(token) is None
    file.write_text("[not what it was")
    assert Logins(KEY, file).exchange(make_token(KEY)) == KEY


def test_without_a_file_to_write_a_token_is_used_once_all_the_same(tmp_path: Path) -> None:
    logins, token = Logins(KEY, tmp_path), make_token(KEY)
    assert [logins.exchange(token), logins.exchange(token)] == [KEY, None]


def test_where_there_is_no_key_no_token_is_right() -> None:
    assert Logins(Secret("")).exchange(make_token(Secret(""))) is None
