"""Tutorials: Python scripts whose comments are pages, run as notebooks when the site is built.

One source is both: `python docs/tutorials/first_steps.py` runs it, editors and checkers read it, a difference of two
versions is readable; jupytext makes the notebook, Jupyter's own kernel runs it, and the result is a page and a file
to download.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from staging import HERE, _places, pages, relink

SCRIPTS = HERE.parent / "tutorials"


def write(folder: Path) -> None:
    """Run all of them, two at a time, and write the notebooks with their results."""
    folder.mkdir(parents=True, exist_ok=True)
    downloads = folder / "files"
    downloads.mkdir()
    scripts = sorted(SCRIPTS.glob("*.py"))
    with ThreadPoolExecutor(2) as pool:
        for script, (notebook, seconds) in zip(scripts, pool.map(_run, scripts), strict=True):
            _write(notebook, downloads / f"{script.stem}.ipynb")
            shutil.copy(script, downloads / script.name)
            _write(_as_page(notebook, script.stem, seconds), folder / f"{script.stem}.ipynb")


def _run(script: Path) -> tuple[Any, float]:
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as home:
        where = {"metadata": {"path": home}}
        client = NotebookClient(notebook, timeout=900, startup_timeout=600, kernel_name="python3", resources=where)
        # Files of its own instead of sockets, which others could listen to.
        kernel = client.create_kernel_manager()
        kernel.transport, kernel.ip = "ipc", str(Path(home) / "kernel")
        client.execute()
    return notebook, time.perf_counter() - began


def _as_page(notebook: Any, name: str, seconds: float) -> Any:
    """The notebook with links that fit the site, and a note where its files are."""
    import copy

    page = copy.deepcopy(notebook)
    home, target, places = f"docs/tutorials/{name}.py", pages()[f"docs/tutorials/{name}.py"], _places()
    for cell in page.cells:
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, home, target, places)
    title, _, rest = page.cells[0].source.partition("\n")
    note = f"*This page is {{download}}`a notebook <files/{name}.ipynb>` and {{download}}`a script <files/{name}.py>`"
    page.cells[0].source = f"{title}\n\n{note}; running it took {seconds:.0f} s when the site was built.*\n{rest}"
    return page


def _write(notebook: Any, path: Path) -> None:
    import nbformat

    nbformat.write(notebook, path)
