"""The example notebook, run in a real kernel against the real server."""

from __future__ import annotations

import threading
from pathlib import Path

import nbformat
import pytest
from live import KEY, Board, serving, users, wait
from nbclient import NotebookClient

pytestmark = pytest.mark.integration

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
UNTIL_TICKED = """
import time

while not live.update or live.update.rows[0][0] != "u10":
    time.sleep(0.01)
"""


def test_the_example_notebook_runs_and_its_table_ticks(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    # Before the last cell, which stops the display
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(UNTIL_TICKED))  # type: ignore[no-untyped-call]
    board = Board(kafka)
    generation = board.build()
    board.write(generation, users(*range(10)))
    board.switch(generation)
    with serving(kafka) as running:
        running.bound(generation)
        monkeypatch.setenv("LIVEBOARD_SERVER_PORT", str(running.port))
        monkeypatch.setenv("LIVEBOARD_SERVER_PSK", KEY)

        def tick() -> None:
            wait(lambda: running.server.hub.subscriptions)
            board.write(generation, users(10))

        ticking = threading.Thread(target=tick)
        ticking.start()
        NotebookClient(notebook, timeout=120).execute()
        ticking.join()
        wait(lambda: running.server.hub.subscriptions == 0)
    (live,) = [cell for cell in notebook.cells if "client.live(" in cell.source]
    table = live.outputs[0]["data"]["text/html"]
    assert "rows 0-9 of 11" in table
    assert table.index("u10") < table.index("u9")
    assert "users_ui" in str(notebook.cells[1].outputs)
