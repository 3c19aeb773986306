"""Keys as hashes, which give nothing away to whoever reads the configuration.

The hash is scrypt's, with a salt, because a key that a person has chosen can be guessed; the text says how it was made:
`scrypt$n=32768,r=8,p=1$salt$hash`, both in URL-safe base64 without padding.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from liveboard.config.values import KEY_HASH, Secret

_COST, _BLOCK, _PARALLEL = 2**15, 8, 1
_SALT_BYTES = 16
_HASH_BYTES = 32
_KEY_BYTES = 24
_MAX_MEMORY = 256 * 2**20


def new_key() -> Secret:
    """A key that nobody can guess; it can be given to a command, which would take a leading dash for an option."""
    while (key := secrets.token_urlsafe(_KEY_BYTES)).startswith("-"):
        pass
    return Secret(key)


def hashed(key: Secret) -> str:
    """The key as a hash, with a salt of its own."""
    salt = secrets.token_bytes(_SALT_BYTES)
    made = _scrypt(key.reveal(), salt, _COST, _BLOCK, _PARALLEL, _HASH_BYTES)
    return f"scrypt$n={_COST},r={_BLOCK},p={_PARALLEL}${_encoded(salt)}${_encoded(made)}"


def matches(kept: Secret, text: str) -> bool:
    """Whether the text is the key that the hash was made of; takes a tenth of a second."""
    found = KEY_HASH.fullmatch(kept.reveal())
    if found is None:
        return False
    cost, block, parallel = map(int, found.groups()[:3])
    salt, made = map(_decoded, found.groups()[3:])
    return hmac.compare_digest(made, _scrypt(text, salt, cost, block, parallel, len(made)))


def _scrypt(text: str, salt: bytes, cost: int, block: int, parallel: int, length: int) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(encoded, salt=salt, n=cost, r=block, p=parallel, maxmem=_MAX_MEMORY, dklen=length)


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
