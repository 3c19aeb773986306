"""Keys, their roles and hashes, and what slows down whoever tries them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest

from liveboard.commands import cli
from liveboard.commands.access import choose
from liveboard.config import KeySettings, Secret, ServerSettings, Settings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Role
from liveboard.serving import hashes
from liveboard.serving.auth import Grant, Keys, bearer, check_keys
from liveboard.serving.throttle import FORGIVEN_EVERY_S, Throttle

PSK = Secret("the admin's own key")
VIEWER = KeySettings(name="wall", role="viewer", key=Secret("a viewer's key"), tables=("final_ui",))
HASHED = KeySettings(name="desk", role="admin", hash=Secret(hashes.hashed(Secret("a hashed key"))))


def grants(server: ServerSettings, *texts: str) -> list[Grant | None]:
    """What each text allows, one after the other."""

    async def ask() -> list[Grant | None]:
        keys = Keys(server)
        try:
            return [await keys.grant(text) for text in texts]
        finally:
            keys.stop()

    return asyncio.run(ask())


def test_each_key_has_its_role_and_its_tables() -> None:
    server = ServerSettings(psk=PSK, keys={"wall": VIEWER, "desk": HASHED})
    admin, viewer, hashed, *others = grants(
        server, PSK.reveal(), "a viewer's key", "a hashed key", "", "wall", "\ud800", HASHED.hash.reveal()
    )
    assert admin == Grant("psk", Role.ADMIN, None)
    assert viewer == Grant("wall", Role.VIEWER, frozenset({"final_ui"}))
    assert hashed == Grant("desk", Role.ADMIN, None)
    assert others == [None] * 4
    assert viewer.shows("final_ui")
    assert not viewer.shows("users_ui")
    assert admin.shows("users_ui")


def test_a_hashed_key_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    matches = hashes.matches

    def counted(kept: Secret, text: str) -> bool:
        asked.append(text)
        return matches(kept, text)

    monkeypatch.setattr(hashes, "matches", counted)
    found = grants(ServerSettings(keys={"desk": HASHED}), "a hashed key", "a hashed key", "wrong", "wrong")
    assert [grant is not None for grant in found] == [True, True, False, False]
    assert asked == ["a hashed key", "wrong", "wrong"]


def test_a_hash_says_how_it_was_made_and_has_its_own_salt() -> None:
    one, other = hashes.hashed(PSK), hashes.hashed(PSK)
    assert one.startswith("scrypt$n=32768,r=8,p=1$")
    assert one != other
    assert hashes.matches(Secret(one), PSK.reveal())
    assert not hashes.matches(Secret(one), PSK.reveal() + " ")
    assert not hashes.matches(Secret("not a hash"), PSK.reveal())


def test_a_new_key_can_be_given_to_a_command() -> None:
    keys = {hashes.new_key().reveal() for _ in range(1_000)}
    assert len(keys) == 1_000
    assert not [key for key in keys if key.startswith("-")]


def test_the_command_makes_a_key_that_fits_its_hash(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["key"]) == 0
    key, kept = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert len(key) == 32
    assert hashes.matches(Secret(kept), key)
    monkeypatch.setattr("sys.stdin", io.StringIO("chosen by hand\n"))
    assert cli.main(["key", "--stdin"]) == 0
    said = capsys.readouterr().out
    assert "chosen" not in said
    assert hashes.matches(Secret(said.split()[1]), "chosen by hand")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert cli.main(["key", "--stdin"]) == 1
    assert capsys.readouterr().err == "liveboard: --stdin: expected a key, found nothing\n"


@pytest.mark.parametrize(
    ("header", "key"),
    [("Bearer a b", "a b"), ("bearer  x ", "x"), ("Bearer", ""), (None, None), ("", None), ("Basic eA==", None)],
)
def test_the_key_in_a_header(header: str | None, key: str | None) -> None:
    assert bearer(header) == key


SHORT = KeySettings(name="wall", role="viewer", key=Secret("fifteen letters"))


def choose_of(server: ServerSettings) -> None:
    choose(Settings(server=server))


@pytest.mark.parametrize("check", [check_keys, choose_of])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "board.example.com"])
def test_other_machines_are_not_let_in_with_a_short_key(check: Callable[[ServerSettings], None], host: str) -> None:
    for server, name, length in (
        (ServerSettings(host=host, psk=Secret("short")), "server.psk", 5),
        (ServerSettings(host=host, psk=PSK, keys={"wall": SHORT}), "server.keys.wall.key", 15),
    ):
        with pytest.raises(LiveboardError) as caught:
            check(server)
        assert str(caught.value) == (
            f"{name}: expected at least 16 characters, because server.host {host} lets other machines in and a short "
            f"key can be guessed, found {length}; `liveboard key` makes one, or set server.host to 127.0.0.1"
        )
    with pytest.raises(LiveboardError, match=r"^server.psk: expected .*, found nothing; set LIVEBOARD_SERVER_PSK"):
        check(ServerSettings(host=host))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_this_machine_a_short_key_will_do(host: str) -> None:
    check_keys(ServerSettings(host=host, psk=Secret("x")))


def test_long_keys_and_hashes_let_other_machines_in() -> None:
    check_keys(ServerSettings(host="0.0.0.0", psk=PSK, keys={"desk": HASHED}))
    check_keys(ServerSettings(host="0.0.0.0", keys={"desk": HASHED}))


def test_an_address_that_fails_has_to_wait_and_is_forgiven_with_time() -> None:
    now = 1_000.0
    throttle = Throttle(3, lambda: now)
    for _ in range(2):
        throttle.failed("192.0.2.1")
        assert throttle.wait_s("192.0.2.1") == 0
    throttle.failed("192.0.2.1")
    assert throttle.wait_s("192.0.2.1") == FORGIVEN_EVERY_S
    assert throttle.wait_s("192.0.2.2") == 0
    now += FORGIVEN_EVERY_S
    assert throttle.wait_s("192.0.2.1") == 0
    throttle.failed("192.0.2.1")
    assert throttle.wait_s("192.0.2.1") == FORGIVEN_EVERY_S
    now += 100 * FORGIVEN_EVERY_S
    throttle.failed("192.0.2.1")
    throttle.failed("192.0.2.1")
    assert throttle.wait_s("192.0.2.1") == 0


def test_an_ipv6_network_is_one_address_and_memory_is_bounded() -> None:
    throttle = Throttle(1, lambda: 5.0)
    throttle.failed("2001:db8::1")
    assert throttle.wait_s("2001:db8::ffff") > 0
    assert throttle.wait_s("2001:db8:0:1::1") == 0
    for number in range(30_000):
        throttle.failed(f"10.0.{number // 256}.{number % 256}")
    assert len(throttle._clear_at) == 10_000
    assert throttle.wait_s("10.0.0.0") == 0
    assert throttle.wait_s(f"10.0.{29_999 // 256}.{29_999 % 256}") > 0
