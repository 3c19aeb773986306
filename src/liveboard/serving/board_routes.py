"""What changes the board over HTTP, and the views and boards that people keep."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from liveboard.config import LimitSettings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import FrameError, Role
from liveboard.contract.joins import JOIN_KINDS
from liveboard.serving.auth import Grant
from liveboard.serving.gate import Gate
from liveboard.serving.keeping import Keeping
from liveboard.serving.preview import Previews
from liveboard.serving.responses import body_of, error_response, json_response, unavailable
from liveboard.serving.saved import place_of
from liveboard.serving.topic_writer import TopicWriter
from liveboard.serving.topics import Topics


class BoardRoutes:
    """The endpoints that write to Kafka or help to; each asks the gate for a key first."""

    def __init__(
        self, control: TopicWriter, topics: Topics, previews: Previews, keeping: Keeping, limits: LimitSettings
    ) -> None:
        self._control = control
        self._topics = topics
        self._previews = previews
        self._keeping = keeping
        self._limits = limits

    def behind(self, gate: Gate) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/api/views", gate.with_key(self.saved), methods=["GET", "PUT", "DELETE"]),
            Route("/api/control", gate.with_key(self.control, Role.ADMIN), methods=["POST"]),
            Route("/api/topics", gate.with_key(self.topics, Role.ADMIN)),
            Route("/api/preview", gate.with_key(self.preview, Role.ADMIN)),
        ]

    async def saved(self, request: Request, grant: Grant) -> Response:
        """The views and boards that people keep."""
        try:
            if request.method in ("GET", "HEAD"):
                return json_response({"views": await self._keeping.all(grant)})
            place = place_of(grant, request.query_params.multi_items())
            if request.method == "DELETE":
                await self._keeping.remove(grant, place)
            else:
                await self._keeping.put(grant, place, await body_of(request, "view", self._limits.saved_bytes))
            return json_response({})
        except FrameError:
            raise
        except LiveboardError as error:
            return unavailable(error)

    async def control(self, request: Request, grant: Grant) -> Response:
        """Passes a control message on."""
        body = await body_of(request)
        try:
            msgspec.json.decode(body, type=dict[str, object])
        except (msgspec.MsgspecError, UnicodeError) as error:
            return error_response(400, "bad_message", f"expected a control message as a JSON object, found: {error}")
        try:
            partition, offset = await self._control.write(body)
        except LiveboardError as error:
            return unavailable(error)
        return json_response({"partition": partition, "offset": offset}, 202)

    async def topics(self, request: Request, grant: Grant) -> Response:
        """What a control message can choose from."""
        try:
            return json_response({"topics": await self._topics.names(), "joinKinds": JOIN_KINDS})
        except LiveboardError as error:
            return unavailable(error)

    async def preview(self, request: Request, grant: Grant) -> Response:
        """What a topic would bring to a source."""
        asked = request.query_params
        try:
            return json_response(await self._previews.look(grant, asked.get("source", ""), asked.get("topic", "")))
        except LiveboardError as error:
            if isinstance(error, FrameError):
                raise
            return unavailable(error)
