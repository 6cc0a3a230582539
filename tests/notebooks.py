"""Notebooks run in a real kernel, and what their cells showed: ``python -m tests.notebooks`` writes
it into them (make notebooks), or into those that it is given.

The tests compare what is committed with what the cells show now. What a machine or a compiler
decides is left out of that comparison: numbers count as equal, and the looks of HTML and the pixels
of figures do not count.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from ipykernel.kernelspec import make_ipkernel_cmd
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from traitlets.config import Config

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_LOOKS = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)


class _Here(AsyncKernelManager):
    """A kernel of this interpreter, whatever kernels the machine has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(argv=make_ipkernel_cmd(), display_name="Python 3", language="python")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def outputs(book: Any) -> list[list[Any]]:
    """Those of every code cell."""
    return [c.outputs for c in book.cells if c.cell_type == "code"]


def run(book: Any, **options: Any) -> None:
    """Run the cells in order in a new kernel that works in notebooks/; they get their outputs, but
    no progress of long work: what is shown of it depends on how long the work takes.

    options: more for NotebookClient.
    """
    with tempfile.TemporaryDirectory() as own:  # nothing of the user's IPython
        env = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
        env |= {"IPYTHONDIR": own, "PYTHONPATH": str(ROOT), "FLAGS_progress": "off"}
        client = NotebookClient(
            book,
            kernel_manager_class=_Here,  # it ends with the run
            config=Config(_Here={"ip": "127.0.0.1", "connection_file": f"{own}/kernel.json"}),
            timeout=600,
            record_timing=False,
            resources={"metadata": {"path": str(ROOT / "notebooks")}},
            **({"coalesce_streams": True} | options),
        )
        client.execute(env=env)


def told(shown: list[list[Any]]) -> list[list[str]]:
    """What outputs say, cell by cell, without numbers and looks: to be compared."""
    texts = [
        [t for out in cell for t in (out.get("text"), *_texts(out.get("data", {}))) if t]
        for cell in shown
    ]
    return [[_masked(t) for t in cell] for cell in texts]


def _texts(data: dict[str, Any]) -> list[str]:
    return [value for kind, value in sorted(data.items()) if not kind.startswith("image/")]


def _masked(text: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub("#", _LOOKS.sub("", text)))


if __name__ == "__main__":
    for path in [ROOT / name for name in sys.argv[1:]] or NOTEBOOKS:
        book = read(path)
        metadata = dict(book.metadata)  # the kernel would add its version of Python
        run(book)
        book.metadata = nbformat.from_dict(metadata)
        nbformat.write(book, path)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
