"""Protocol 1: the example frames that the Python and the TypeScript tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from liveboard.contract import frames
from liveboard.contract.frames import Code, FrameError, decode_client, decode_server, encode

EXAMPLES: dict[str, list[Any]] = json.loads(Path(frames.__file__).with_name("frames.json").read_text())


def _text(example: object) -> str:
    return json.dumps(example, ensure_ascii=False)


@pytest.mark.parametrize("example", EXAMPLES["client"], ids=_text)
def test_client_frames_come_back_the_same(example: dict[str, Any]) -> None:
    assert json.loads(encode(decode_client(_text(example)))) == example


@pytest.mark.parametrize("example", EXAMPLES["server"], ids=_text)
def test_server_frames_come_back_the_same(example: dict[str, Any]) -> None:
    assert json.loads(encode(decode_server(_text(example)))) == example


@pytest.mark.parametrize("example", EXAMPLES["bad"], ids=_text)
def test_bad_frames_are_refused_and_their_id_is_known(example: dict[str, Any]) -> None:
    with pytest.raises(FrameError, match=r"^expected a frame \(.*\), found: .+") as caught:
        decode_client(example["text"])
    assert (caught.value.code, caught.value.id) == (Code.BAD_FRAME, example["id"])


@pytest.mark.parametrize("text", [b"\xff", "[" * 100_000, '{"op":"auth","psk":"\ud800"}', "{}" * 2])
def test_what_is_hardly_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(FrameError):
        decode_client(text)


def test_every_kind_of_frame_has_an_example() -> None:
    client = {decode_client(_text(example)).__class__ for example in EXAMPLES["client"]}
    server = {decode_server(_text(example)).__class__ for example in EXAMPLES["server"]}
    assert client == set(frames.ClientFrame.__args__)
    assert server == set(frames.ServerFrame.__args__)


def test_shared_bodies_make_the_same_frames() -> None:
    for example in EXAMPLES["server"]:
        frame = decode_server(_text(example))
        match frame:
            case frames.Snapshot():
                rows = [msgspec.json.encode(row) for row in frame.rows]
                keys = [key.encode() for key in frame.keys]
                body = frames.snapshot_body(frame.generation, frame.total, frame.offset, frame.columns, keys, rows)
                assert decode_server(frames.framed("snapshot", frame.id, frame.version, body)) == frame
            case frames.Delta():
                changes = [(index, key.encode(), msgspec.json.encode(row)) for index, key, row in frame.rows]
                body = frames.delta_body(frame.total, changes, frame.drop, frame.insert)
                assert decode_server(frames.framed("delta", frame.id, frame.version, body)) == frame


def test_b19_the_key_is_in_no_repr() -> None:
    assert "secret" not in repr(frames.Auth("secret"))
