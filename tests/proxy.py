"""A TCP proxy between two processes of a test, whose connections can be cut, slowed down or left hanging."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

HOST = "127.0.0.1"
_BYTES = 65_536


class Proxy:
    """Passes connections on to a port of this machine, in a thread of its own."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._delay_s = 0.0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self.port: int = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{HOST}:{self.port}"

    def cut(self) -> None:
        """Ends all connections and takes no more."""

        def do() -> None:
            self._is_cut = True
            self._end_all()

        self._do(do)

    def slow(self, seconds: float) -> None:
        """Whatever is sent arrives so much later, in either direction."""
        self._do(lambda: setattr(self, "_delay_s", seconds))

    def half_open(self) -> None:
        """Connections stay, and new ones are taken, but nothing arrives any more."""
        self._do(self._flowing.clear)

    def heal(self) -> None:
        """As at the beginning; connections on which something was held back are ended, as routers do it."""

        def do() -> None:
            if not self._flowing.is_set():
                self._end_all()
            self._is_cut, self._delay_s = False, 0.0
            self._flowing.set()

        self._do(do)

    def close(self) -> None:
        """Ends everything."""

        async def end() -> None:
            self._server.close()
            self._end_all()
            mine = asyncio.current_task()
            tasks = [task for task in asyncio.all_tasks() if task is not mine]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Callable[[], None]) -> None:
        async def done() -> None:
            what()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._pass_on, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            return writer.transport.abort()
        self._writers.add(writer)
        try:
            there_reader, there_writer = await asyncio.open_connection(HOST, self._target_port)
            self._writers.add(there_writer)
            try:
                await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
            finally:
                self._writers.discard(there_writer)
                there_writer.transport.abort()
        except OSError:
            pass  # one of the two has gone
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_BYTES):
            await asyncio.sleep(self._delay_s)
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        # Ends the other direction too.
        raise ConnectionResetError

    def _end_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
