"""The orchestrator's record outlives the topic that it is in."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import cast

import pytest
from harness import Topics, until

from liveboard.contract.names import Names
from liveboard.contract.status import BoardStatus, Owner, decode_status
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.ownership import Ownership
from liveboard.orchestrator.record import BoardRecord

pytestmark = pytest.mark.integration


class Owning:
    """Nobody else wants the board."""

    owner = Owner(id="test", name="test", since=0)

    def check(self) -> None:
        pass


def test_a_status_topic_that_was_deleted_is_made_again(kafka: str) -> None:
    names, config, said = Names("deleted-status"), {"bootstrap.servers": kafka}, list[str]()
    admin = Admin(config)
    admin.create_changelogs([names.status])
    with BoardRecord(config, admin, cast(Ownership, Owning()), names, said.append, threading.Event()) as record:
        record.keep(BoardStatus(sources=("users",)))
        admin.delete([names.status])
        until(lambda: names.status not in admin.partitions(), "the end of the topic")
        record.keep(BoardStatus(sources=("accounts",)))
    with closing(Topics(kafka)) as topics:
        assert decode_status(topics.messages(names.status)[-1].value()).sources == ("accounts",)
    assert any("made again" in text for text in said)
