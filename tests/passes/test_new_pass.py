"""The documents' new pass, carried out to the letter: two files, and pipelines and the command line
know it.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax import cli, passes
from fluidjax.errors import PassError
from tests.documents import examples

NAME = "drop_casts"
PASS, TEST = examples("adding-passes.md", "## To add a pass")


@pytest.fixture(scope="module", autouse=True)
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The file, in a folder that belongs to the package for as long as this module is tested."""
    folder, before = tmp_path_factory.mktemp("passes"), dict(passes.PASSES)
    (folder / f"{NAME}.py").write_text(PASS)
    passes.__path__.append(str(folder))
    importlib.import_module(f"{passes.__name__}.{NAME}")
    yield
    passes.__path__.remove(str(folder))
    del sys.modules[f"{passes.__name__}.{NAME}"]
    passes.PASSES.clear()
    passes.PASSES.update(before)


def test_modules_are_found_by_themselves() -> None:
    """What the package imports: each file and folder of its folder, and the new one."""
    folder = Path(passes.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    files |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert {m.name for m in pkgutil.iter_modules(passes.__path__)} == files | {NAME}
    assert all(f"{passes.__name__}.{name}" in sys.modules for name in files)


def test_the_documents_test_of_it() -> None:
    names: dict[str, object] = {"__name__": f"test_{NAME}"}
    exec(compile(TEST, f"test_{NAME}.py", "exec", dont_inherit=True), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        assert callable(test)
        test()


def test_pipelines_and_the_command_line_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.name for one in passes.parse(f"dce, {NAME}").passes] == ["dce", NAME]
    assert cli.main(["passes", NAME]) == 0
    assert "Turn a cast" in capsys.readouterr().out


def test_changing_the_forward_op_alone_is_refused() -> None:
    """What the page says of a training program, with the pass of the page cut down to the forward
    op.
    """
    code = examples("own-passes.md", "## A pass")[0].partition("with fluid.")[0]
    cut = (
        code.replace(', "relu6_grad": "relu_grad"', "")
        .replace("Relu6ToRelu", "Half")
        .replace("relu6_to_relu", "half")
    )
    assert cut != code
    names: dict[str, object] = {"__name__": "script"}
    exec(compile(cut, "script.py", "exec", dont_inherit=True), names)
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        loss = fluid.layers.mean(fluid.layers.relu6(fluid.layers.fc(x, 3)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(PassError, match="relu6_grad"):
        passes.run("half", main.desc, keep=[loss.name])
