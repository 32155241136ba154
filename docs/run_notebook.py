"""Runs docs/layer.ipynb and writes its outputs into it.

    python docs/run_notebook.py

Needs `pip install '.[docs]'`.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("layer.ipynb")


def run(path: Path = NOTEBOOK) -> nbformat.NotebookNode:
    """Returns the notebook with its outputs; raises if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times that differ in every run
        if cell.cell_type == "code":  # TensorFlow prints messages about the machine to stderr
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    nbformat.write(run(), NOTEBOOK)
