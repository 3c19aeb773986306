"""Carries out what control messages ask for, with Spark and Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from msgspec.structs import replace as changed

from liveboard.backoff import Backoff
from liveboard.contract.board import Wiring
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import BEAT_S, AlertFigures, Phase, State
from liveboard.orchestrator import generations, hearing
from liveboard.orchestrator.building import Builds
from liveboard.orchestrator.control import ControlTopic
from liveboard.orchestrator.counting import Counting
from liveboard.orchestrator.ending import Ending
from liveboard.orchestrator.generations import Do, NextStep
from liveboard.orchestrator.listener import ControlListener, described
from liveboard.orchestrator.ownership import Ownership, OwnershipLost
from liveboard.orchestrator.repairing import Repairing
from liveboard.orchestrator.running import SPARK_ERRORS
from liveboard.orchestrator.workplace import Workplace
from liveboard.pipeline.generation import reason

_TICK_S = 0.05
# While people wait for a swap.
_BUILDING_TICK_S = 0.01
_STANDING_STILL = (Phase.STARTING, Phase.RESTARTING)
_BUILDING = (Phase.BUILDING, Phase.CATCHING_UP)


class Orchestrator:
    """Moves the board from wiring to wiring, and keeps what is there running."""

    def __init__(
        self, work: Workplace, ownership: Ownership, alerts: Callable[[], Mapping[str, AlertFigures]] = dict
    ) -> None:
        """`alerts` gives the figures that the document has of them."""
        self._work = work
        self._ownership = ownership
        self._inherited = set(work.usable)
        self._alerts = alerts
        self._running = work.running
        self._listener = ControlListener(work)
        self._repairing = Repairing(work)
        self._ending = Ending(work)
        self._counting = Counting(work, ownership.is_sure)
        self._builds = Builds(work, self._repairing, self._counting)
        self._retry = Backoff()
        self._tombstones = 0
        self._beaten_at = time.monotonic()
        work.record.status = work.leftovers.taken_up(work.status, work.board)
        work.leftovers.sweep(work.status)

    def run(self, control: ControlTopic, stopping: threading.Event) -> None:
        """Works until `stopping` is set, then stops all queries."""
        work = self._work
        if work.status.live in work.usable:
            self._running.follow(work.status.live)
        work.log("ready")
        work.log(f"control listener on '{control.topic}'")
        self._listener.hear(control.backlog())
        while not stopping.is_set():
            self._ownership.check()
            self._distrust()
            self._keep_running()
            self._repairing.advance()
            self._ending.advance()
            self._counting.advance()
            self._advance_build()
            self._take_steps()
            if self._beat() and not stopping.is_set():
                self._give_up_what_is_gone()
            self._listener.hear(control.read(_BUILDING_TICK_S if work.status.request else _TICK_S))
            self._listener.tell_problem(control.problem)
        for name in self._running.names:
            self._hang_up(name)
        self._running.stop()
        work.schemas.close()

    def _distrust(self) -> None:
        """Has built anew what an owner may have written to after it was replaced: older rows over newer ones."""
        work, who = self._work, self._ownership.survivor()
        if not who or not (shared := self._inherited & work.usable):
            return
        work.log(f"{who} was still alive after it was replaced: building {', '.join(sorted(shared))} anew")
        work.usable -= shared
        # On record, so that a crash does not forget it: nothing goes on from a checkpoint without a fingerprint.
        records = {
            name: changed(record, fingerprint={}) if name in shared else record
            for name, record in work.status.generations.items()
        }
        work.keep(changed(work.status, generations=records))

    def _keep_running(self) -> None:
        """Heals what has died, and says so about what is live."""
        work = self._work
        work.schemas.advance()
        self._running.heal()
        for name, why in self._running.hopeless().items():
            self._abandon(name, why)
        live = work.status.live or ""
        problem = self._running.problem(live)
        if problem and problem != work.status.message:
            work.keep(changed(work.status, phase=Phase.RESTARTING, message=problem))
        elif not problem and self._running.is_seen(live) and work.status.phase in _STANDING_STILL:
            work.log(f"{live} is live")
            work.keep(changed(work.status, phase=Phase.LIVE, message=""))
        if problem or self._running.is_seen(live) or live not in work.usable:
            # After the live one: on a small machine they would all be late.
            for name in work.usable - self._running.following:
                if work.status.generations[name].state is State.RETIRING:
                    self._running.follow(name)

    def _take_steps(self) -> None:
        """Does what can be done at once; a build is begun here and goes on in `_advance_build`."""
        goal = generations.target(self._work.status, self._work.board)
        while (step := self._next_step(goal)).do is not Do.NOTHING:
            try:
                self._take(step, goal)
            except (OwnershipLost, ConnectionError):
                raise
            except (LiveboardError, *SPARK_ERRORS) as error:
                return self._give_up(step, error)
            if step.do is Do.BUILD:
                return None
        return None

    def _next_step(self, goal: Wiring) -> NextStep:
        step = generations.next_step(self._work.status, goal, self._work.usable, time.time())
        waiting = not self._retry.over or self._builds.waits_for_topics
        return NextStep(Do.NOTHING) if step.do in (Do.BUILD, Do.REMOVE) and waiting else step

    def _take(self, step: NextStep, goal: Wiring) -> None:
        work, name = self._work, step.generation
        match step.do:
            case Do.BUILD:
                self._builds.begin(goal)
            case Do.SWITCH:
                self._switch(name)
            case Do.CLOSE:
                work.log(f"closing {name}, which was {work.status.generations[name].state}")
                closed = generations.closed(work.status, name)
                if work.status.live and work.status.phase in _BUILDING:
                    # Whatever is built next says so.
                    closed = changed(closed, phase=Phase.LIVE, message="")
                work.keep(closed)
            case Do.REMOVE:
                self._remove(name)

    def _advance_build(self) -> None:
        work = self._work
        goal = generations.target(work.status, work.board)
        for name, record in work.status.generations.items():
            if record.state is not State.BUILDING or record.wiring != goal or name not in work.usable:
                continue
            try:
                if name not in self._running and work.schemas.waiting:
                    self._builds.say_waiting(work.schemas.problem)
                elif name not in self._running:
                    work.log(f"taking up the build of {name}")
                    self._builds.start(name)
                elif self._builds.is_complete(name):
                    self._switch(name)
            except (OwnershipLost, ConnectionError):
                raise
            except (LiveboardError, *SPARK_ERRORS) as error:
                if work.schemas.learn(reason(error)):
                    # It is taken up again when the schema is known.
                    self._hang_up(name)
                    self._running.drop(name)
                else:
                    self._fail(name, error)

    def _switch(self, name: str) -> None:
        work = self._work
        if name not in self._running.following:
            self._running.follow(name)
        self._builds.drop(name)
        complete_at = work.ends(name)
        # Before the switch: a crash between the two has the request carried out and answered again.
        self._listener.tell_request(hearing.APPLIED)
        status = generations.switched(
            work.status,
            name,
            now=time.time(),
            complete_at=complete_at,
            retire_after=work.settings.control.retire_after,
            old_usable=work.status.live in work.usable,
        )
        work.keep(changed(status, phase=Phase.LIVE, message=""))
        work.log(f"topics set {described(status.generations[name].wiring, ' ')}")

    def _give_up(self, step: NextStep, error: Exception) -> None:
        """A step could not be taken: a build fails, anything else is tried again."""
        records = self._work.status.generations.items()
        building = [name for name, record in records if record.state is State.BUILDING]
        if step.do is Do.BUILD:
            self._fail(building[-1] if building else "", error)
        else:
            self._retry.failed()
            why = self._work.explain(error)
            self._work.log(f"{step.do.name.lower()} {step.generation}: {why}; trying again")

    def _fail(self, name: str, error: Exception) -> None:
        """A build has failed; without a name, before there was anything of it."""
        work = self._work
        why = f"{name or 'the new wiring'} could not be built: {work.explain(error)}"
        if not work.status.request:
            self._retry.failed()
        self._listener.tell_request(hearing.FAILED, why)
        status = generations.failed(work.status, name) if name else changed(work.status, request=None)
        work.log(why)
        work.keep(changed(status, phase=Phase.LIVE if status.live else Phase.FAILED, message=why))

    def _remove(self, name: str) -> None:
        """Deletes the generation's queries, topics and checkpoint."""
        self._hang_up(name)
        self._running.drop(name)
        self._work.usable.discard(name)
        self._work.leftovers.remove(name)
        self._work.keep(generations.removed(self._work.status, name))

    def _give_up_what_is_gone(self) -> None:
        """Gives up generations whose topics were made again or changelogs were deleted; they are built anew."""
        work = self._work
        try:
            for name in sorted(work.usable & work.status.generations.keys()):
                why = work.losses.replaced(name)
                if not why and name in self._running.following:
                    why = work.leftovers.lacking(work.status, name)
                if why:
                    self._abandon(name, why)
        except OwnershipLost:
            raise
        except LiveboardError as error:
            work.log(f"looking whether all topics are still there: {error}")

    def _abandon(self, name: str, why: str) -> None:
        """Gives the generation up: its wiring is built anew beside it."""
        self._work.log(f"{name} cannot go on: {why}")
        self._hang_up(name)
        self._running.drop(name)
        self._work.usable.discard(name)

    def _hang_up(self, name: str) -> None:
        """Ends our own connections for the generation."""
        self._repairing.drop(name)
        self._ending.drop(name)
        self._counting.drop(name)
        self._builds.drop(name)

    def _beat(self) -> bool:
        """Repeats the document now and then, so that readers know that it is kept; tells whether it did."""
        work = self._work
        if time.monotonic() - self._beaten_at < BEAT_S:
            return False
        self._beaten_at = time.monotonic()
        work.check_spark()
        work.keep(changed(work.status, alerts=self._alerts()))
        work.leftovers.sweep_checkpoints(work.status)
        live = work.status.live or ""
        if live in self._running and (tombstones := self._running[live].tombstones()) > self._tombstones:
            self._tombstones = tombstones
            work.log(f"skipped {tombstones:,} records without a value (tombstones) so far")
        return True
