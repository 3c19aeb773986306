"""How long a board takes to heal, from a fault until all viewers see what is produced after it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp

from clustered import Clustered
from harness import emptied
from paired import Paired
from processes import say
from report import Figure, Target
from stage import Stage

# Few that show how long the parts wait for each other, and many, which two cores hardly carry.
_RATES = (100, 1_000)
# Seconds from the owner's death until the board's document names the standby.
_TAKEOVER = Target(15)
# Spark as users have it, where tests do without what does not pay for them.
_AS_USERS = {"LIVEBOARD_SPARK_CONF": "", "LIVEBOARD_SPARK_CHECKPOINT_INTERVAL": "15 s"}


def healing(stage: Stage) -> list[Figure]:
    """A cluster of two workers, checkpoints in S3 every 15 s, a standby and two servers, under even loads."""
    return [figure for rate in _RATES for figure in _at(stage, rate)]


def standby(stage: Stage) -> list[Figure]:
    """An owner and a standby without a cluster, as two machines would run them, under even loads."""
    return [figure for rate in _RATES for figure in _taken_over(stage, rate)]


def _taken_over(stage: Stage, rate: int) -> list[Figure]:
    directory, figures = Path(mkdtemp(prefix="standby-", dir=stage.directory)), []
    name = f"standby at {rate:,} events/s, the owner killed"
    with emptied(stage.bootstrap), ExitStack() as parts:
        environment = {**_AS_USERS, "LIVEBOARD_STORAGE_CHECKPOINTS": str(directory / "checkpoints")}
        running = Paired(stage.bootstrap, directory, parts, environment)
        with running.load(rate):
            time.sleep(stage.sizes.warm_up_s)
            say(name)
            began = time.monotonic()
            running.lose_the_driver()
            figures += _taking_over(running, name, began)
            running.expect_followed()
            figures.append(Figure(f"{name}, viewers see what came after it", "s", time.monotonic() - began))
        running.expect_exact()
    return figures


def _taking_over(running: Paired, name: str, began: float) -> list[Figure]:
    """How long the standby took to have the board, and to be at work."""
    running.expect_taken_over()
    has_it = time.monotonic() - began
    running.expect_live()
    return [
        Figure(f"{name}, the standby has the board", "s", has_it, target=_TAKEOVER),
        Figure(f"{name}, the standby's stream runs", "s", time.monotonic() - began),
    ]


def _at(stage: Stage, rate: int) -> list[Figure]:
    directory, figures = Path(mkdtemp(prefix="healing-", dir=stage.directory)), []
    name = f"healing at {rate:,} events/s"
    with emptied(stage.bootstrap), ExitStack() as parts:
        running = Clustered(stage.bootstrap, directory, parts, {})
        with running.load(rate):
            time.sleep(stage.sizes.warm_up_s)
            faults = {
                "nothing": lambda: None,
                "the master killed": running.lose_the_master,
                "the master started, and a worker": running.get_a_master,
                "a worker killed": running.lose_a_worker,
                "the driver killed": running.lose_the_driver,
                "a server killed": running.lose_a_server,
            }
            for what, do in faults.items():
                say(f"{name}: {what}")
                began = time.monotonic()
                do()
                if what == "the driver killed":
                    figures += _taking_over(running, name, began)
                running.expect_followed()
                figures.append(Figure(f"{name}, {what}", "s", time.monotonic() - began))
                time.sleep(stage.sizes.rest_s)
            running.servers[0].start()
        running.expect_exact()
    return figures
