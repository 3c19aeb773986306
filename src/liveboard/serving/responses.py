"""How the server answers over HTTP: JSON, one shape for every error, and bodies up to a size."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from liveboard.contract.frames import Code, FrameError
from liveboard.serving.gate import Forbidden, TooFast

_MAX_BODY_BYTES = 64 * 1024
_HTTP_STATUS = {
    Code.UNAUTHORIZED: 401,
    Code.UNKNOWN_TABLE: 404,
    Code.TOO_MANY: 429,
    Code.OVERLOADED: 503,
}
_STATUS_CODES = {403: "forbidden", 404: "not_found", 405: "bad_method"}


def json_response(value: object, status: int = 200) -> Response:
    """The value as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def error_response(status: int, code: str, message: str) -> Response:
    """An error, in the one shape that all have."""
    return json_response({"error": {"code": code, "message": message}}, status)


def unavailable(error: Exception) -> Response:
    """Kafka does not do what was asked for."""
    return error_response(503, "unavailable", str(error))


async def body_of(request: Request, what: str = "control message", most: int = _MAX_BODY_BYTES) -> bytes:
    """What was sent; an HTTPException if it is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise HTTPException(413, f"expected a {what} of up to {most} bytes, found a larger one")
    return body


async def _frame_error(request: Request, error: FrameError) -> Response:
    if isinstance(error, TooFast):
        answer = error_response(429, Code.TOO_MANY, str(error))
        answer.headers["Retry-After"] = str(error.wait_s)
        return answer
    return error_response(_HTTP_STATUS.get(error.code, 400), error.code, str(error))


async def _forbidden(request: Request, error: Forbidden) -> Response:
    return error_response(403, "forbidden", str(error))


async def _http_error(request: Request, error: HTTPException) -> Response:
    return error_response(error.status_code, _STATUS_CODES.get(error.status_code, "bad_request"), error.detail)


async def _failure(request: Request, error: Exception) -> Response:
    return error_response(500, "internal", "expected an answer, found an error in the server, which its log has")


ERROR_HANDLERS = {
    FrameError: _frame_error,
    Forbidden: _forbidden,
    HTTPException: _http_error,
    Exception: _failure,
}
