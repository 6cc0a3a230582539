"""What the real Paddle 1.8.5 saved, in each of its formats, loads here and computes the same
(tests/tools/record_saved.py).
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.saved import stream
from fluidjax.saved.files import read_file

DATA = Path(__file__).parents[1] / "data/saved"
REF = np.load(DATA / "ref.npz")
MODELS = {"separate": {}, "combined": {"model_filename": "model", "params_filename": "params"}}


def load(name: str) -> tuple[fluid.Executor, list]:
    exe = fluid.Executor()
    return exe, fluid.io.load_inference_model(str(DATA / name), exe, **MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_inference_models(name: str) -> None:
    with fluid.scope_guard(fluid.Scope()):
        exe, (program, feeds, targets) = load(name)
        assert feeds == ["x"] and len(targets) == 1
        (out,) = exe.run(program, feed={"x": REF["x"]}, fetch_list=targets)
    np.testing.assert_allclose(out, REF["y"], rtol=1e-5, atol=1e-7)


SIGNATURES = json.loads((DATA / "signatures.json").read_text())
# what we and Paddle 2 add, always last
OURS = {"partial": False, "trainable": False, "protocol": 4}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    found = fluid
    for part in name.split("."):
        found = getattr(found, part)
    parameters = [
        [p.name, "<required>" if p.default is p.empty else p.default]
        for p in inspect.signature(found).parameters.values()
    ]
    known = len(SIGNATURES[name])
    assert parameters[:known] == SIGNATURES[name]
    assert all(OURS.get(n, ...) == value for n, value in parameters[known:])
    assert inspect.getdoc(found)


def test_a_loaded_program_is_saved_as_it_was(tmp_path: Path) -> None:
    """Saved again, the files of values are the same bytes, and the program the same ops."""
    with fluid.scope_guard(fluid.Scope()):
        exe, (program, _, _) = load("separate")
        fluid.io.save_persistables(exe, str(tmp_path), program)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (DATA / "separate" / file.name).read_bytes(), file.name
    assert len(list(tmp_path.iterdir())) == 8


def test_combined_file_and_prefix_hold_the_same() -> None:
    program = fluid.Program.parse_from_string((DATA / "prefix.pdmodel").read_bytes())
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(fluid.Executor(), str(DATA / "persistables"), program, "all")
        values = {
            v.name: fluid.global_scope().get(v.name)
            for v in fluid.io.get_program_persistable_vars(program)
        }
    state = fluid.io.load_program_state(str(DATA / "prefix"))
    assert set(state) == set(values) and len(values) == 33
    for name, value in values.items():
        assert (state[name] == value).all() and state[name].dtype == value.dtype, name


def test_training_goes_on_from_a_prefix() -> None:
    program = fluid.Program.parse_from_string((DATA / "prefix.pdmodel").read_bytes())
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        difference = fluid.load(program, str(DATA / "prefix"), exe)
        assert difference is None
        feed = {"x": REF["x"], "label": np.zeros((4, 1), "int64")}
        before = fluid.global_scope().get("fc_0.w_0")
        exe.run(program, feed=feed)
        assert (fluid.global_scope().get("fc_0.w_0") != before).any()


def test_ragged_tensors_keep_their_offsets() -> None:
    data = read_file(DATA / "lod/ragged")
    tensor = stream.read_one(data, "ragged")
    assert tensor.lod == ((0, 2, 3), (0, 2, 2, 5))
    assert (tensor.array == np.arange(10, dtype="float32").reshape(5, 2)).all()
    assert b"".join(bytes(p) for p in stream.write(tensor)) == data


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int16",
        "int32",
        "int64",
        "bool",
    ],
)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 3, 4)])
def test_streams_of_every_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)
    data = b"".join(bytes(p) for p in stream.write(stream.Tensor(array)))
    back = stream.read_one(data, "x").array
    assert back.dtype == array.dtype and back.shape == shape and (back == array).all()
