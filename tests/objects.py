"""An S3 in the hands of a test: moto's server, in a process of its own, with one bucket."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import Request, urlopen

from harness import until
from ports import closed_port

BUCKET = "boards"
SECRET = "not-to-be-seen-anywhere"


@contextmanager
def bucket() -> Iterator[dict[str, str]]:
    """The environment of a pipeline that keeps its checkpoints there."""
    port = closed_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: _made(f"{endpoint}/{BUCKET}"), "a bucket")
            yield {
                "LIVEBOARD_STORAGE_CHECKPOINTS": f"s3a://{BUCKET}/checkpoints",
                "LIVEBOARD_STORAGE_S3_ENDPOINT": endpoint,
                "LIVEBOARD_STORAGE_S3_REGION": "us-east-1",
                "LIVEBOARD_STORAGE_S3_ACCESS_KEY": "tests",
                "LIVEBOARD_STORAGE_S3_SECRET_KEY": SECRET,
            }
        finally:
            server.kill()


def _made(address: str) -> bool:
    try:
        with urlopen(Request(address, method="PUT")):
            return True
    except URLError:
        return False
