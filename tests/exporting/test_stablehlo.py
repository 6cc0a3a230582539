"""StableHLO: written, read in a fresh process and in another jax, and what is said of spoiled files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FeedError, ParseError
from fluidjax.exporting import ExportError

pytest.importorskip("flatbuffers", reason="pip install 'fluidjax[export]'")


@pytest.fixture(scope="module")
def net() -> tuple[fluid.Program, fluid.Scope, Any]:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 8, 8])
        h = layers.batch_norm(layers.conv2d(x, 4, 3), act="relu")
        out = layers.fc(h, 5, act="softmax")
    fluid.Executor().run(startup, scope=scope)
    return main, scope, out


def ours(net: Any, x: np.ndarray) -> np.ndarray:
    main, scope, out = net
    test = main.clone(for_test=True)
    found: np.ndarray = fluid.Executor().run(test, feed={"x": x}, fetch_list=[out.name], scope=scope)[0]  # fmt: skip
    return found


@pytest.mark.parametrize("state", ["baked", "arguments"])
def test_every_batch(net: Any, state: str, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "m.hlo"
    report = fluid.export(main, path, "stablehlo", fetches=[out], scope=scope, state=state)
    assert report.inputs == ("x float32[batch, 3, 8, 8]",)
    loaded = fluid.load_exported(path)
    for batch in (1, 7):
        x = np.random.RandomState(batch).standard_normal((batch, 3, 8, 8)).astype("float32")
        np.testing.assert_allclose(loaded({"x": x})[out.name], ours(net, x), rtol=1e-5, atol=1e-6)
    assert ("fc_0.w_0" in loaded.state) == (state == "arguments")


def test_another_state(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "m.hlo"
    fluid.export(main, path, "stablehlo", fetches=[out], scope=scope, state="arguments")
    loaded = fluid.load_exported(path)
    zeros = {n: np.zeros_like(v) for n, v in loaded.state.items()}
    made = loaded({"x": np.ones((2, 3, 8, 8), "float32")}, zeros)[out.name]
    np.testing.assert_allclose(made, np.full((2, 5), 0.2), rtol=1e-6)


def test_jax_alone_reads_it(net: Any, tmp_path: Path) -> None:
    """In a process that never imports this package."""
    main, scope, out = net
    path, given, made = (tmp_path / n for n in ("m.hlo", "x.npy", "y.npy"))
    fluid.export(main, path, "stablehlo", fetches=[out], scope=scope, platforms=["cpu"])
    x = np.random.RandomState(0).standard_normal((3, 3, 8, 8)).astype("float32")
    np.save(given, x)
    script = (
        "import sys, jax, numpy\n"
        "code = bytearray(open(sys.argv[1], 'rb').read())\n"
        "made = jax.export.deserialize(code).call(numpy.load(sys.argv[2]))\n"
        "numpy.save(sys.argv[3], made[0])\n"
        "assert 'fluidjax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, path, given, made], check=True, cwd=tmp_path, timeout=300)  # fmt: skip
    np.testing.assert_allclose(np.load(made), ours(net, x), rtol=1e-5, atol=1e-6)


def test_a_traced_function(tmp_path: Path) -> None:
    traced = fluid.trace(lambda x: jnp.tanh(x) @ x.T, jax.ShapeDtypeStruct((4, 3), jnp.float32))
    path = tmp_path / "f.hlo"
    fluid.export(traced, path, "stablehlo")
    loaded = fluid.load_exported(path)
    x = np.random.RandomState(0).standard_normal((4, 3)).astype("float32")
    (made,) = loaded({loaded.inputs[0]["name"]: x}).values()
    np.testing.assert_allclose(made, np.tanh(x) @ x.T, rtol=1e-5)


@pytest.mark.parametrize("state", ["baked", "arguments"])
def test_random_keys_in_the_state_and_among_the_inputs(state: str, tmp_path: Path) -> None:
    def draw(params: Any, x: Any, key: Any) -> Any:
        noise = jax.random.normal(jax.random.fold_in(params["key"], 1), x.shape)
        own, other = jax.random.split(key)
        return x * params["w"] + noise + jax.random.uniform(own, x.shape), other

    params = {"w": jnp.float32(2), "key": jax.random.key(3)}
    x, key, path = jnp.ones(3), jax.random.key(5), tmp_path / "f.hlo"
    traced = fluid.trace(draw, params, x, key, state=0)
    fluid.export(traced, path, "stablehlo", platforms=("cpu",), state=state)
    loaded = fluid.load_exported(path)
    found, expected = loaded({"x": x, "key": key}), jax.jit(draw)(params, x, key)
    y, other = (found[n] for n in traced.fetches)
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_array_equal(jax.random.key_data(other), jax.random.key_data(expected[1]))
    for wrong in (jax.random.key_data(key), jax.random.key(5, impl="rbg"), jax.random.split(key)):
        with pytest.raises(FeedError, match=r"it takes key key<fry>\[\]"):
            loaded({"x": x, "key": wrong})


@pytest.mark.parametrize(
    ("feed", "said"),
    [
        ({}, "missing"),
        ({"y": np.zeros((1, 3, 8, 8), "float32")}, "'y'"),
        ({"x": np.zeros((1, 3, 8, 9), "float32")}, "it takes x float32[batch, 3, 8, 8]"),
        ({"x": np.zeros((1, 3, 8, 8), "float64")}, "float64"),
    ],
)
def test_wrong_feeds(net: Any, feed: dict[str, Any], said: str, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "m.hlo"
    fluid.export(main, path, "stablehlo", fetches=[out], scope=scope)
    with pytest.raises(FeedError) as error:
        fluid.load_exported(path)(feed)
    assert said in str(error.value)


def test_spoiled_files(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    path = tmp_path / "m.hlo"
    fluid.export(main, path, "stablehlo", fetches=[out], scope=scope, state="arguments")
    beside, code = tmp_path / "m.hlo.json", path.read_bytes()
    told = beside.read_text()
    rng = np.random.RandomState(0)
    for _ in range(20):
        spoiled = bytearray(code)
        spoiled[rng.randint(len(spoiled))] ^= 1 << rng.randint(8)
        path.write_bytes(spoiled)
        with pytest.raises(ParseError, match="checksum"):
            fluid.load_exported(path)
    path.write_bytes(code)
    for change in (
        {"version": 2},
        {"inputs": 3},
        {"inputs": []},
        {"state": [{"name": "fc_0.w_0", "dtype": "float32", "shape": [-1]}]},
        {"format": "pickle"},
    ):
        beside.write_text(json.dumps({**json.loads(told), **change}))
        with pytest.raises(ParseError):
            fluid.load_exported(path)
    for text in ("", "[" * 100_000, told[: len(told) // 2]):
        beside.write_text(text)
        with pytest.raises(ParseError):
            fluid.load_exported(path)
    beside.write_text(told)
    (tmp_path / "m.hlo.state").write_bytes(b"no tensors")
    with pytest.raises(fluid.FluidError):
        fluid.load_exported(path)


def test_what_calls_python_is_refused(tmp_path: Path) -> None:
    traced = fluid.trace(
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), jnp.float32), x),
        jax.ShapeDtypeStruct((3,), jnp.float32),
        strict=False,
    )
    with pytest.raises(ExportError):
        fluid.export(traced, tmp_path / "f.hlo", "stablehlo")
    assert not list(tmp_path.iterdir())


def test_paddles_own_files_and_text(net: Any, tmp_path: Path) -> None:
    main, scope, out = net
    fluid.export(main, tmp_path / "folder", "fluid", fetches=[out], scope=scope)
    fluid.export(main, tmp_path / "p.txt", "text", fetches=[out], scope=scope)
    assert "conv2d" in (tmp_path / "p.txt").read_text()
    x = np.ones((2, 3, 8, 8), "float32")
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path / "folder"), exe)
        (made,) = exe.run(program, feed={feeds[0]: x}, fetch_list=targets)
    np.testing.assert_allclose(made, ours(net, x), rtol=1e-6)
    traced = fluid.trace(jnp.sin, jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(ExportError, match="Paddle has no such op"):
        fluid.export(traced, tmp_path / "g", "fluid")
