"""Log lines that people and programs read: one line per event, key=value."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_TELLING = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """`time=… level=… logger=… event="…"` and what the event is about."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever is in it."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return " ".join(f"{name}={_shown(value)}" for name, value in fields.items() if value is not None)


def to_stderr() -> None:
    """Sends all log lines of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def keep_frames_out() -> None:
    """Lets uvicorn log nothing below a warning, whatever levels are set: it would log viewers' frames and headers."""
    for name in _TELLING:
        logger = logging.getLogger(name)
        # The level saves the work; the filter holds even if somebody sets another level later.
        logger.setLevel(logging.WARNING)
        logger.addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _shown(value: object) -> str:
    text = str(value)
    plain = text and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)
