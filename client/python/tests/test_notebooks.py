"""What a notebook shows: a real kernel of Jupyter runs cells on a real cluster."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_kit import Cluster
from kit import BOUND_SECONDS

pytest.importorskip("cohabit._native", reason="the native half is not built: pip install ./client/python")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
manager = pytest.importorskip("jupyter_client.manager", reason="jupyter_client is not installed")


class Notebook:
    """A kernel, and what its cells show."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, code: str) -> list[tuple[str, dict[str, Any]]]:
        """Runs a cell. What it shows, as pairs of the message's type and its contents."""
        shown: list[tuple[str, dict[str, Any]]] = []
        reply = self._client.execute_interactive(
            code, timeout=BOUND_SECONDS, output_hook=lambda it: shown.append((it["msg_type"], it["content"]))
        )
        assert reply["content"]["status"] == "ok", reply["content"]
        return shown

    def tables(self, code: str) -> list[dict[str, Any]]:
        """What a cell displays, until that says that a job has ended: updates follow the end of the cell."""
        shown: list[dict[str, Any]] = []
        cell = self._client.execute(code)
        while not (shown and "FAILED" in shown[-1]["data"]["text/html"]):
            message = self._client.get_iopub_msg(timeout=BOUND_SECONDS)
            is_display = message["msg_type"] in ("display_data", "update_display_data")
            if is_display and message["parent_header"]["msg_id"] == cell:
                shown.append(message["content"])
        return shown


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder: pathlib.Path = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder)
    kernel, client = manager.start_new_kernel(startup_timeout=BOUND_SECONDS, kernel_name="python3")
    notebook = Notebook(client)
    notebook.run(f"import cohabit; state = {str(folder / 'state')!r}; client = cohabit.Client(state=state)")
    yield notebook
    client.stop_channels()
    kernel.shutdown_kernel(now=True)
    cluster.close()


def test_a_job_is_a_table_that_follows_it_to_its_end(notebook: Notebook) -> None:
    tables = notebook.tables("client.submit(['sh', '-c', 'exit 3'], gpus=0.5, name='<b>base</b>')")
    first, updates = tables[0], tables[1:]
    assert "<table" in first["data"]["text/html"] and "&lt;b&gt;base" in first["data"]["text/html"]
    assert updates and all(it["transient"] == first["transient"] for it in updates)
    assert "FAILED" in updates[-1]["data"]["text/html"] and "FAILED" in updates[-1]["data"]["text/plain"]


def test_records_are_tables_and_coroutines_run_in_the_loop_of_the_kernel(notebook: Notebook) -> None:
    (shown,) = [content for kind, content in notebook.run("client.jobs()[0]") if kind == "execute_result"]
    assert "&lt;b&gt;base" in shown["data"]["text/html"] and "base" in shown["data"]["text/plain"]
    code = "async with cohabit.AsyncClient(state=state) as it:\n    print(len(await it.nodes()))"
    assert ("stream", "1\n") in [(kind, content.get("text")) for kind, content in notebook.run(code)]
