"""The user's line, in files and in a notebook's cells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax.base.loc import line_of


def test_a_file_is_named_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert line_of(str(tmp_path / "nets" / "train.py"), 7) == "nets/train.py:7"
    assert line_of("/elsewhere/train.py", 7) == "/elsewhere/train.py:7"
    assert line_of(fluid.__file__, 7) is None


BUILD = """import jax.numpy as jnp
import fluidjax as fluid
x = fluid.data("x", [2, 3])
y = fluid.layers.fc(x, 4)
loss = fluid.layers.mean(y)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())"""
AGAIN = (
    "z = fluid.layers.fc(x, 4)\nprint(fluid.default_main_program().global_block().ops[-1].desc.loc)"
)
SHOWN = """import numpy as np
print([op.desc.loc for op in fluid.default_main_program().global_block().ops])
feed = {"x": np.ones((2, 3), "float32")}
print(fluid.default_main_program().memory_report(fetch_list=[loss]))
print(fluid.default_main_program().profile(feed, fetch_list=[loss]))
def forward(v):
    return jnp.tanh(v) * 2
print([op.desc.loc for op in fluid.trace(forward, jnp.ones(2)).main.global_block().ops])
fluid.default_main_program()"""
DOUBTFUL = "if loss > 0:\n    pass"
WRONG = "fluid.layers.relu(y)\nfluid.layers.fc(x, size=-1)"


@pytest.mark.slow
def test_a_cell_is_named_by_its_number_and_its_line() -> None:
    pytest.importorskip("nbclient", reason="the package nbclient is not installed")
    pytest.importorskip("ipykernel", reason="the package ipykernel is not installed")
    from nbformat.v4 import new_code_cell, new_notebook

    from tests.notebooks import outputs, run

    cells = (BUILD, AGAIN, AGAIN, SHOWN, DOUBTFUL, WRONG)
    book = new_notebook(cells=[new_code_cell(c) for c in cells])
    run(book, allow_errors=True)
    _, first, second, shown, doubtful, wrong = outputs(book)
    assert first[0].text.strip() == "cell 2, line 1"
    assert second[0].text.strip() == "cell 3, line 1"  # the same text, run again
    text = "".join(str(o.get("text", "")) + str(o.get("data", "")) for o in shown)
    assert "cell 1, line 4" in text.splitlines()[0] and "cell 4, line 7" in text
    assert text.count("cell 1, line 4") > 4 and "In[" not in text
    assert wrong[-1].evalue.endswith("(at cell 6, line 2)")
    warning = "".join(o.get("text", "") for o in doubtful)
    assert warning.startswith("cell 5:1: UserWarning") and "condition at cell 5, line 1;" in warning
    everything = text + warning + wrong[-1].evalue
    assert not re.search(r"ipykernel_\d|ipython-input", everything)


def test_a_warning_is_at_the_users_line() -> None:
    x = fluid.data("for_a_warning", [1])
    with pytest.warns(UserWarning, match="Python condition") as found:
        if x > 0:
            pass
    assert [w.filename for w in found] == [__file__]
