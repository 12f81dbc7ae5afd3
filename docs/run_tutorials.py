"""Run the tutorials, and keep them with what they showed.

    python docs/run_tutorials.py [NAME ...]

A test runs them, too; the site shows what is kept.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "tutorials"
MOST_SECONDS = 600
"""Of one cell, on a machine that is busy with other things."""

COLOURS = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")


def run_notebook(path: Path, folder: str | Path) -> nbformat.NotebookNode:
    """Return a notebook with the output that its cells have now, run in a folder."""
    notebook = nbformat.read(path, as_version=4)
    home = str(Path(sys.executable).parent)  # where the command `prune4rel` lies
    os.environ["PATH"] = os.pathsep.join([home, os.environ.get("PATH", "")])
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        startup_timeout=MOST_SECONDS,
        timeout=MOST_SECONDS,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute()
    return plain(notebook)


def plain(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave away what differs from run to run and machine to machine."""
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        if cell.cell_type == "code":
            cell.outputs = list(_joined(cell.outputs))
            for each in cell.outputs:
                if each.output_type == "stream":
                    each.text = COLOURS.sub("", each.text)
    return notebook


def _joined(outputs: Iterable[nbformat.NotebookNode]) -> Iterable[nbformat.NotebookNode]:
    """Put pieces of one stream together, without colours; what goes to standard error is progress."""
    last = None
    for each in outputs:
        if each.output_type == "stream":
            if each.name == "stderr":
                continue
            if last is not None:
                last.text += each.text
                continue
            last = each
        else:
            last = None
        yield each


def main(names: list[str]) -> None:
    """Run those that are named, or all."""
    for path in [FOLDER / f"{name}.ipynb" for name in names] or sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run_notebook(path, folder), path)
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
