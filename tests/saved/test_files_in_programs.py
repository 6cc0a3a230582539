"""load, save and their combined forms as ops of programs: Paddle's files, LoD included, and what
does not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import (
    EnforceNotMet,
    FluidError,
    FluidValueError,
    LoadError,
    NotOneStep,
    ParseError,
    UnsupportedError,
)

ROWS = np.arange(6, dtype="float32").reshape(2, 3)
# What 1.8.5 writes for ROWS with save_as_fp16.
HALVES = "00000000000000000000000000000000060000000804100210030000003c0040004200440045"


def run(build: Any, feed: Any = None, scope: Any = None) -> list[Any]:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        fetches = build(main.global_block())
    with fluid.scope_guard(scope or fluid.Scope()):
        return fluid.Executor(fluid.CPUPlace()).run(
            main, feed=feed, fetch_list=fetches, return_numpy=False
        )


def files(block: Any, kind: str, path: Path, variables: list[Any], **attrs: Any) -> None:
    slots = ({"X": variables}, {}) if kind.startswith("save") else ({}, {"Out": variables})
    block.append_op(kind, *slots, {"file_path": str(path), **attrs})


def test_what_is_saved_is_loaded_in_one_program(tmp_path: Path) -> None:
    """Persistable variables get values and LoD; ops behind them see both; folders are made."""
    scope = fluid.Scope()

    def build(block: Any) -> list[Any]:
        x = fluid.data("x", [None, 3], "float32", lod_level=1)
        files(block, "save", tmp_path / "a" / "x", [x])
        files(block, "save_combine", tmp_path / "both", [x, layers.scale(x, 2.0)])
        files(block, "save", tmp_path / "half", [layers.scale(x, 1.0)], save_as_fp16=True)
        kept = block.create_var(
            name="kept", dtype="float32", shape=[-1, 3], persistable=True, lod_level=1
        )
        files(block, "load", tmp_path / "a" / "x", [kept])
        parts = [
            block.create_var(name=f"part{i}", dtype="float32", shape=[-1, 3], lod_level=1)
            for i in range(2)
        ]
        files(block, "load_combine", tmp_path / "both", parts)
        some = block.create_var(name="some", dtype="float32", shape=[2])
        half = block.create_var(name="half", dtype="float16", shape=[-1, 3])
        files(block, "load", tmp_path / "a" / "x", [some], seek=1, shape=[2])
        files(block, "load", tmp_path / "a" / "x", [half], load_as_fp16=True)
        return [layers.sequence_pool(kept, "sum"), layers.scale(parts[1], 1.0), some, half]

    total, twice, some, half = run(
        build, {"x": fluid.create_lod_tensor(ROWS, [[1, 1]], fluid.CPUPlace())}, scope
    )
    np.testing.assert_array_equal(total, ROWS)
    np.testing.assert_array_equal(twice, 2 * ROWS)
    assert twice.lod() == [[0, 1, 2]] and np.array(some).tolist() == [1, 2]
    assert np.array(half).dtype == "float16" and np.array_equal(half, ROWS)
    kept = scope.find_var("kept").get_tensor()
    assert kept.lod() == [[0, 1, 2]] and np.array_equal(kept, ROWS)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a", "both", "half", "x"]


def test_bytes_are_those_of_paddle_and_a_layer_reads_them(tmp_path: Path) -> None:
    run(
        lambda block: files(
            block, "save", tmp_path / "x", [fluid.data("x", [2, 3])], save_as_fp16=True
        ),
        {"x": ROWS},
    )
    assert (tmp_path / "x").read_bytes().hex() == HALVES

    def build(block: Any) -> list[Any]:
        out = layers.create_tensor("float16")
        layers.load(out, str(tmp_path / "x"))
        return [out]

    np.testing.assert_array_equal(run(build)[0], ROWS.astype("float16"))


REFUSED: dict[str, tuple[type[FluidError], str]] = {
    "missing": (FluidValueError, "cannot read"),
    "shape": (LoadError, r"has \[2, 3\] of float32 for 'out', which is declared as \[3, 3\]"),
    "dtype": (LoadError, "declared as .* of float64"),
    "seek": (LoadError, "takes 4 elements from number 3 on, but .* has 6"),
    "fewer": (ParseError, "bytes follow"),
    "path": (FluidValueError, "file_path"),
    "memory": (UnsupportedError, "save_to_memory"),
    "overwrite": (EnforceNotMet, "does not overwrite"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_does_not_fit_is_told_and_leaves_all_as_it_was(wrong: str, tmp_path: Path) -> None:
    """The sentence, the op and the line; the scope and the file that is there stay."""
    path, scope = tmp_path / "x", fluid.Scope()
    run(lambda block: files(block, "save_combine", path, [fluid.data("x", [2, 3])]), {"x": ROWS})
    before, (error, sentence) = path.read_bytes(), REFUSED[wrong]
    scope.var("out").value = np.zeros(1, "float32")

    def build(block: Any) -> None:
        if wrong in ("memory", "overwrite"):
            attrs = {"memory": {"save_to_memory": True}, "overwrite": {"overwrite": False}}[wrong]
            return files(
                block, "save_combine", path, [layers.fill_constant([1], "float32", 1.0)], **attrs
            )
        dtype = "float64" if wrong == "dtype" else "float32"
        out = block.create_var(
            name="out", dtype=dtype, shape=[3, 3] if wrong == "shape" else [-1, 3], persistable=True
        )
        names = {"missing": tmp_path / "none", "path": ""}
        if wrong == "fewer":
            run(
                lambda other: files(
                    other, "save_combine", tmp_path / "two", [fluid.data(n, [2, 3]) for n in "ab"]
                ),
                {"a": ROWS, "b": ROWS},
            )
            return files(block, "load_combine", tmp_path / "two", [out])
        return files(
            block,
            "load",
            names.get(wrong, path),
            [out],
            **({"seek": 3, "shape": [4]} if wrong == "seek" else {}),
        )

    with pytest.raises(error, match=sentence) as raised:
        run(build, scope=scope)
    assert "test_files_in_programs.py" in "".join(
        [str(raised.value), *getattr(raised.value, "__notes__", ())]
    )
    assert path.read_bytes() == before and scope.find_var("out").value.tolist() == [0]


def test_a_compiled_step_alone_cannot(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        files(main.global_block(), "save", tmp_path / "x", [fluid.data("x", [2, 3])])
    with pytest.raises(NotOneStep, match="op 'save' is about a file"):
        fluid.step_fn(main, [])({}, {"x": ROWS})
    assert not list(tmp_path.iterdir())
