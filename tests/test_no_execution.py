"""Nothing in the package runs what a file says, but where the user asks for it: no pickles, no
shells, no code from text.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PACKAGE = Path(__file__).parents[1] / "fluidjax"
# where such a call stands, and why it may
ALLOWED = {
    (
        "loaders/processes.py",
        "pickle.loads",
    ): "what our own forked workers send over their own pipes",
    ("cli/run.py", "runpy.run_path"): "fluidjax run runs the user's script",
}
NAMES = {
    "eval", "exec", "compile", "os.system", "os.popen", "pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.loads", "marshal.load",
    "yaml.load", "shelve.open", "runpy.run_path",
}  # fmt: skip


def calls(path):
    """The dotted name of what each call calls, and "shell=True"."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)
            if any(k.arg == "shell" for k in node.keywords):
                yield "shell="
            if any(
                k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in node.keywords
            ):
                yield "allow_pickle="


def test_no_module_runs_what_it_reads():
    quick = (
        "eval(",
        "exec(",
        "compile(",
        "os.system",
        "popen",
        "pickle",
        "marshal",
        ".load(",
        "shelve",
        "runpy",
        "shell=",
    )
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if any(word in path.read_text() for word in quick):
            found |= {
                (str(path.relative_to(PACKAGE)), name)
                for name in calls(path)
                if name in NAMES or name.endswith("=")
            }
    assert found == set(ALLOWED)
