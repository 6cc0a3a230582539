"""Saving and loading through fluid.io: every function, strictness, and that nothing is lost when
something goes wrong.
"""

from __future__ import annotations

import builtins
import io
import os
import signal
import threading
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import (
    EnforceNotMet,
    FluidTypeError,
    FluidValueError,
    LoadError,
    ParseError,
    UnsupportedError,
)
from fluidjax.saved import files
from tests.nets import fresh


class Net:
    """A small trained network in a scope of its own."""

    def __init__(self) -> None:
        with fresh(5) as (self.main, self.startup):
            x = fluid.data("x", [None, 4])
            self.out = layers.fc(layers.batch_norm(layers.fc(x, 3, act="relu")), 2, act="softmax")
            self.test = self.main.clone(for_test=True)
            fluid.optimizer.Adam(0.1).minimize(layers.mean(layers.square(self.out)))
        self.scope = fluid.Scope()
        self.exe = fluid.Executor()
        self.feed = {"x": np.random.RandomState(0).standard_normal((3, 4)).astype("float32")}
        self.exe.run(self.startup, scope=self.scope)
        for _ in range(2):
            self.exe.run(self.main, feed=self.feed, scope=self.scope)

    def predict(self, scope: fluid.Scope) -> np.ndarray:
        return fluid.Executor().run(
            self.test, feed=self.feed, fetch_list=[self.out.name], scope=scope
        )[0]

    def values(self, scope: fluid.Scope | None = None) -> dict[str, np.ndarray]:
        scope = scope or self.scope
        return {n: scope.get(n) for n in scope.local_var_names()}


@pytest.fixture
def net() -> Net:
    return Net()


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.mark.parametrize("how", ["separate", "combined", "prefix", "safetensors", "state"])
def test_every_way_gives_the_same_values(net: Net, how: str, tmp_path: Path) -> None:
    fresh_scope, path = fluid.Scope(), str(tmp_path / "m")
    with fluid.scope_guard(net.scope):
        if how in ("separate", "combined"):
            fluid.io.save_persistables(
                net.exe, path, net.main, "all" if how == "combined" else None
            )
        elif how == "safetensors":
            fluid.io.save_safetensors(path, net.main)
        else:
            fluid.save(net.main, path)
    with fluid.scope_guard(fresh_scope):
        if how in ("separate", "combined"):
            fluid.io.load_persistables(
                net.exe, path, net.main, "all" if how == "combined" else None
            )
        elif how == "safetensors":
            fluid.io.load_safetensors(path, net.main)
        elif how == "prefix":
            fluid.load(net.main, path, net.exe)
        else:
            net.exe.run(net.startup)
            fluid.io.set_program_state(net.main, fluid.io.load_program_state(path))
    old, new = net.values(), net.values(fresh_scope)
    assert set(old) == set(new)
    assert all((old[n] == new[n]).all() and old[n].dtype == new[n].dtype for n in old)
    assert (net.predict(fresh_scope) == net.predict(net.scope)).all()


def test_inference_model_leaves_the_program_alone(net: Net, tmp_path: Path) -> None:
    before = net.main.desc
    with fluid.scope_guard(net.scope), fluid.unique_name.guard():
        names = [
            fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.main)
            for _ in range(2)
        ]
    assert net.main.desc == before and names == [
        ["save_infer_model/scale_0.tmp_0"],
        ["save_infer_model/scale_0.tmp_1"],
    ]
    program = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
    kinds = [op.type for op in program.global_block().ops]
    assert kinds == [
        "feed",
        "mul",
        "elementwise_add",
        "relu",
        "batch_norm",
        "mul",
        "elementwise_add",
        "softmax",
        "scale",
        "fetch",
    ]
    with fluid.scope_guard(fluid.Scope()):
        loaded, feeds, targets = fluid.io.load_inference_model(str(tmp_path), net.exe)
        (out,) = net.exe.run(loaded, feed={feeds[0]: net.feed["x"]}, fetch_list=targets)
    assert (out == net.predict(net.scope)).all()


def test_paddle_static_prefix_and_memory(net: Net, tmp_path: Path) -> None:
    from fluidjax.paddle import static

    prefix = str(tmp_path / "deep/model")
    with fluid.scope_guard(net.scope):
        static.save_inference_model(
            prefix, [net.main.global_block().var("x")], [net.out], net.exe, program=net.main
        )
    expected = net.predict(net.scope)
    blobs = [(tmp_path / f"deep/model.{e}").read_bytes() for e in ("pdmodel", "pdiparams")]
    for load in (
        lambda: static.load_inference_model(prefix, net.exe),
        # finds the one .pdmodel
        lambda: fluid.io.load_inference_model(str(tmp_path / "deep"), net.exe),
        lambda: fluid.io.load_inference_model(None, net.exe, *blobs),
    ):
        with fluid.scope_guard(fluid.Scope()):
            program, _, targets = load()
            assert (net.exe.run(program, feed=net.feed, fetch_list=targets)[0] == expected).all()


def test_save_vars_chooses(net: Net, tmp_path: Path) -> None:
    with fluid.scope_guard(net.scope):
        fluid.io.save_vars(
            net.exe, str(tmp_path / "a"), net.main, predicate=lambda v: v.name == "fc_0.w_0"
        )
        fluid.io.save_vars(
            net.exe, str(tmp_path / "b"), net.main, vars=[net.main.global_block().var("fc_0.b_0")]
        )
        fluid.io.save_params(net.exe, str(tmp_path / "c"), net.main)
        data = fluid.io.save_vars(net.exe, None, net.main, predicate=fluid.io.is_parameter)
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["fc_0.w_0"]
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["fc_0.b_0"]
    assert len(list((tmp_path / "c").iterdir())) == len(net.main.all_parameters()) == 8
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(net.exe, None, net.main, predicate=fluid.io.is_parameter, filename=data)
        assert (fluid.global_scope().get("fc_0.w_0") == net.scope.get("fc_0.w_0")).all()
        assert (
            fluid.io.get_parameter_value_by_name("fc_0.b_0", net.exe, net.main)
            == net.scope.get("fc_0.b_0")
        ).all()
    with pytest.warns(UserWarning, match="nothing is saved"):
        fluid.io.save_vars(net.exe, str(tmp_path / "d"), fluid.Program(), predicate=lambda v: True)


def changed(net: Net) -> fluid.Program:
    """A program like the net's, with one parameter of another shape, one missing and one more."""
    with fresh() as (main, _):
        block = main.global_block()
        for p in net.main.all_parameters():
            if p.name == "fc_1.b_0":
                continue
            shape = [9, 3] if p.name == "fc_0.w_0" else list(p.shape)
            block.create_parameter(
                name=p.name, shape=shape, dtype="float64" if p.name == "fc_1.w_0" else "float32"
            )
        block.create_parameter(name="extra", shape=[2], dtype="float32")
    return main


def test_difference_names_everything(net: Net, tmp_path: Path) -> None:
    with fluid.scope_guard(net.scope):
        fluid.io.save_safetensors(str(tmp_path / "s"), net.test)
    scope, program = fluid.Scope(), changed(net)
    with fluid.scope_guard(scope), pytest.raises(LoadError) as caught:
        fluid.io.load_safetensors(str(tmp_path / "s"), program)
    text = str(caught.value)
    assert (
        "missing in the file (1):\n    extra" in text
        and "unexpected in the file (1):\n    fc_1.b_0" in text
    )
    assert "fc_0.w_0  [9, 3]  [4, 3]" in text and "fc_1.w_0  float64  float32" in text
    assert scope.local_var_names() == []
    with fluid.scope_guard(scope):
        difference = fluid.io.load_safetensors(str(tmp_path / "s"), program, partial=True)
    assert difference.missing == ("extra",) and set(difference.shapes) == {"fc_0.w_0"}
    assert set(scope.local_var_names()) == {p.name for p in program.all_parameters()} - {
        "extra",
        "fc_0.w_0",
        "fc_1.w_0",
    }


def test_a_partly_loaded_model_says_what_it_lacks(net: Net, tmp_path: Path) -> None:
    with fluid.scope_guard(net.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.main)
    (tmp_path / "fc_0.w_0").unlink()
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        with pytest.raises(LoadError, match=r"missing in the file \(1\):\n    fc_0\.w_0"):
            fluid.io.load_inference_model(str(tmp_path), net.exe)
        assert scope.local_var_names() == []
        with pytest.warns(
            UserWarning,
            match=r"left out what does not fit:\n  missing in the file \(1\):\n    fc_0\.w_0",
        ):
            fluid.io.load_inference_model(str(tmp_path), net.exe, partial=True)
    assert "fc_1.w_0" in scope.local_var_names() and "fc_0.w_0" not in scope.local_var_names()


def test_a_test_program_takes_the_parameters_of_a_training_program(
    net: Net, tmp_path: Path
) -> None:
    """It has no optimizer state, so .pdopt does not concern it, as in Fluid; a training program
    needs that file.
    """
    path = str(tmp_path / "m")
    with fluid.scope_guard(net.scope):
        fluid.save(net.main, path)
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        assert fluid.load(net.test, path) is None
        assert set(scope.local_var_names()) == {p.name for p in net.main.all_parameters()}
        assert (net.predict(scope) == net.predict(net.scope)).all()
        (tmp_path / "m.pdopt").unlink()
        assert fluid.load(net.test, path) is None
        with pytest.raises(FluidValueError, match=r"cannot read .*m\.pdopt"):
            fluid.load(net.main, path)
        difference = fluid.load(net.main, path, partial=True)
    assert "fc_0.w_0_moment1_0" in difference.missing and "fc_0.w_0" not in difference.missing


@pytest.mark.parametrize("filename", [None, "all"])
def test_values_are_read_straight_into_their_arrays(filename: str | None, tmp_path: Path) -> None:
    program, scope, size = fluid.Program(), fluid.Scope(), 1 << 20
    for name in "ab":
        program.global_block().create_parameter(name=name, shape=[size], dtype="float32")
        scope.var(name).set(np.arange(size, dtype="float32"))
    with fluid.scope_guard(scope):
        fluid.io.save_params(None, str(tmp_path), program, filename)
        tracemalloc.start()
        try:
            fluid.io.load_params(None, str(tmp_path), program, filename)
            assert tracemalloc.get_traced_memory()[1] < 1.05 * 8 * size
        finally:
            tracemalloc.stop()
        assert (scope.get("b") == np.arange(size)).all()


def test_set_program_state(net: Net) -> None:
    state = net.values()
    with fluid.scope_guard(fluid.Scope()):
        with pytest.raises(EnforceNotMet, match="run startup program"):
            fluid.io.set_program_state(net.main, state)
        net.exe.run(net.startup)
        before = fluid.global_scope().get("fc_0.w_0")
        with pytest.raises(LoadError, match=r"fc_0.w_0  \[4, 3\]  \[3, 4\]"):
            fluid.io.set_program_state(net.main, {**state, "fc_0.w_0": state["fc_0.w_0"].T})
        assert (fluid.global_scope().get("fc_0.w_0") == before).all()
        with pytest.warns(UserWarning, match="left out: .*unknown"):
            fluid.io.set_program_state(net.main, {**state, "unknown": np.ones(2)})
        assert (net.predict(fluid.global_scope()) == net.predict(net.scope)).all()


def test_new_layers_do_not_take_names_of_a_loaded_program(net: Net, tmp_path: Path) -> None:
    """The generator of names starts anew in another process; what it makes must not meet what was
    loaded.
    """
    with fluid.scope_guard(net.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.main)
    with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        program, _, targets = fluid.io.load_inference_model(str(tmp_path), net.exe)
        before = set(program.global_block().vars)
        startup = fluid.Program()
        with fluid.program_guard(program, startup):
            out = layers.fc(targets[0], 3)
        assert {v.name for v in startup.list_vars()}.isdisjoint(before) and out.name not in before
        net.exe.run(startup)
        got = net.exe.run(program, feed=net.feed, fetch_list=[targets[0], out])
    assert (got[0] == net.predict(net.scope)).all() and got[1].shape == (3, 3)


class Full(io.RawIOBase):
    """A file on a disk that gets full after some bytes."""

    def __init__(self, real: Any, room: list[int], error: type[BaseException]) -> None:
        self.real, self.room, self.error = real, room, error

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.room[0] -= len(data)
        if self.room[0] < 0:
            raise (
                self.error(28, "No space left on device") if self.error is OSError else self.error()
            )
        return self.real.write(data)

    def fileno(self) -> int:
        return self.real.fileno()

    def flush(self) -> None:
        if not self.real.closed:
            self.real.flush()

    def close(self) -> None:
        self.real.close()
        super().close()


@pytest.mark.first(5)
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("how", ["separate", "combined", "prefix", "safetensors", "inference"])
def test_a_failed_save_leaves_the_old_files(
    net: Net, how: str, error: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save() -> None:
        if how == "inference":
            fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.main)
        elif how == "prefix":
            fluid.save(net.main, str(tmp_path / "m"))
        elif how == "safetensors":
            fluid.io.save_safetensors(str(tmp_path / "m"), net.main)
        else:
            fluid.io.save_persistables(
                net.exe, str(tmp_path), net.main, "all" if how == "combined" else None
            )

    with fluid.scope_guard(net.scope):
        save()
        old = folder_bytes(tmp_path)
        net.exe.run(net.main, feed=net.feed)
        total = sum(map(len, old.values()))
        for share in (0, 0.3, 0.6, 0.95):
            room = [int(total * share)]
            with monkeypatch.context() as patched:
                patched.setattr(
                    files,
                    "open",
                    lambda *a, room=room: Full(builtins.open(*a), room, error),  # noqa: SIM115
                    raising=False,
                )
                with pytest.raises(error):
                    save()
            assert folder_bytes(tmp_path) == old
        save()
        assert folder_bytes(tmp_path) != old


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals go to the main thread",
)
def test_ctrl_c_among_the_renames_comes_after_them(
    net: Net, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the new files beside half of the old ones would be a model that never was."""
    replace, seen = os.replace, []

    def interrupted(old: str, new: str) -> None:
        replace(old, new)
        seen.append(new)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(files.os, "replace", interrupted)
    # a shell's background jobs ignore Ctrl-C
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with fluid.scope_guard(net.scope), pytest.raises(KeyboardInterrupt):
            fluid.save(net.main, str(tmp_path / "m"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) == 3 and sorted(p.name for p in tmp_path.iterdir()) == [
        "m.pdmodel",
        "m.pdopt",
        "m.pdparams",
    ]
    monkeypatch.undo()
    with fluid.scope_guard(fluid.Scope()):
        assert fluid.load(net.main, str(tmp_path / "m")) is None


def test_a_folder_in_a_files_place(net: Net, tmp_path: Path) -> None:
    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.exe, str(tmp_path), net.main)
        (tmp_path / "fc_1.w_0").unlink()
        (tmp_path / "fc_1.w_0").mkdir()
        old = folder_bytes(tmp_path)
        net.exe.run(net.main, feed=net.feed)
        with pytest.raises(FluidValueError, match=r"fc_1\.w_0': a folder has this name"):
            fluid.io.save_persistables(net.exe, str(tmp_path), net.main)
    assert folder_bytes(tmp_path) == old


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "a\\b", "x\0y", "..", "a//b", "C:/x"])
def test_names_that_leave_the_folder(name: str, tmp_path: Path) -> None:
    program = fluid.Program()
    program.global_block().create_var(name=name, shape=[1], dtype="float32", persistable=True)
    scope = fluid.Scope()
    scope.var(name).set(np.ones(1, "float32"))
    with fluid.scope_guard(scope):
        with pytest.raises(FluidValueError, match="cannot be a file below a folder"):
            fluid.io.save_persistables(None, str(tmp_path / "m"), program)
        with pytest.raises(FluidValueError, match="cannot be a file below a folder"):
            (tmp_path / "m").mkdir(exist_ok=True)
            fluid.io.load_persistables(None, str(tmp_path / "m"), program)
        # in one file any name is fine
        fluid.io.save_persistables(None, str(tmp_path / "m"), program, "all")
        fluid.io.load_persistables(None, str(tmp_path / "m"), program, "all")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["all", "m"]


def test_unknown_ops_load_and_print_and_are_named_together(net: Net, tmp_path: Path) -> None:
    with fluid.scope_guard(net.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [net.out], net.exe, net.main)
    data = (
        (tmp_path / "__model__")
        .read_bytes()
        .replace(b"relu", b"ruel")
        .replace(b"softmax", b"sxftmax")
    )
    (tmp_path / "__model__").write_bytes(data)
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(str(tmp_path), net.exe)
        assert "ruel" in str(program)
        with pytest.raises(
            UnsupportedError, match="2 op types that are not supported: ruel, sxftmax"
        ):
            net.exe.run(program, feed=net.feed, fetch_list=targets)
        with pytest.raises(UnsupportedError, match="ruel, sxftmax"):
            fluid.step_fn(program, targets)


def test_errors_name_files(net: Net, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cases: list[tuple[Any, str]] = [
        (
            lambda: fluid.io.load_inference_model(str(tmp_path / "no"), None),
            "There is no directory named",
        ),
        (
            lambda: fluid.io.load_inference_model(str(tmp_path / "empty"), None),
            "holds nothing; name model_filename",
        ),
        (lambda: fluid.io.load_inference_model(None, None), "cannot be None"),
        (lambda: fluid.load(net.main, str(tmp_path / "no")), "there is neither"),
        (lambda: fluid.io.load_program_state(str(tmp_path / "no")), "there is neither"),
        (lambda: fluid.save(net.main, str(tmp_path) + "/"), "dirname/file_prefix"),
        (
            lambda: fluid.io.save_inference_model(str(tmp_path), ["x"], [], None, net.main),
            "'target_vars' should be",
        ),
        (
            lambda: fluid.io.save_inference_model(str(tmp_path), [3], [net.out], None, net.main),
            "'feed_var_names' should be",
        ),
        (
            lambda: fluid.io.save_inference_model(
                str(tmp_path), ["x", "z"], [net.out], None, net.main
            ),
            "'z'",
        ),
        (
            lambda: fluid.io.load_persistables(None, str(tmp_path / "empty"), net.main, "all"),
            "cannot read .*all",
        ),
    ]
    for call, text in cases:
        with fluid.scope_guard(net.scope), pytest.raises(FluidValueError, match=text):
            call()
    unmade = pytest.raises(
        EnforceNotMet, match=r"nothing to save for 'batch_norm_0\.b_0', .*run the startup"
    )
    with fluid.scope_guard(fluid.Scope()), unmade:
        fluid.io.save_persistables(None, str(tmp_path / "n"), net.test)
    with pytest.raises(FluidTypeError, match="main_program is a Program"):
        fluid.io.save_persistables(None, str(tmp_path / "n"), "main")
    assert not (tmp_path / "n").exists()
    (tmp_path / "empty/__model__").write_bytes(b"garbage")
    with pytest.raises(ParseError, match=r"empty/__model__: "):
        fluid.io.load_inference_model(str(tmp_path / "empty"), None)


@pytest.mark.slow
def test_trained_digits(tmp_path: Path) -> None:
    """A network trained on handwritten digits: saved, loaded and fused, it predicts the same on
    every test image.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    y = labels.reshape(-1, 1).astype("int64")
    with fresh(1) as (main, startup):
        image, label = fluid.data("x", [None, 1, 8, 8]), fluid.data("y", [None, 1], dtype="int64")
        h = layers.pool2d(
            layers.batch_norm(layers.conv2d(image, 16, 3, padding=1), act="relu"), 2, pool_stride=2
        )
        h = layers.batch_norm(layers.conv2d(h, 32, 3, padding=1), act="relu")
        out = layers.fc(h, 10, act="softmax")
        loss = layers.mean(layers.cross_entropy(out, label))
        fluid.optimizer.Adam(3e-3).minimize(loss)
    scope, exe = fluid.Scope(), fluid.Executor()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for epoch in range(3):
            order = np.random.RandomState(epoch).permutation(1500)
            for at in range(0, 1472, 64):
                batch = order[at : at + 64]
                exe.run(main, feed={"x": x[batch], "y": y[batch]}, return_numpy=False)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, main)
        (expected,) = exe.run(
            main.clone(for_test=True), feed={"x": x[1500:], "y": y[1500:]}, fetch_list=[out]
        )
    assert (expected.argmax(1) == labels[1500:]).mean() > 0.9
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(str(tmp_path), exe)
        (loaded,) = exe.run(program, feed={"x": x[1500:]}, fetch_list=targets)
        assert (loaded == expected).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing may be refused
            fluid.InferenceTranspiler().transpile(program, fluid.CPUPlace())
        assert not any(op.type == "batch_norm" for op in program.global_block().ops)
        (fused,) = exe.run(program, feed={"x": x[1500:]}, fetch_list=targets)
    assert (fused.argmax(1) == expected.argmax(1)).all()
    np.testing.assert_allclose(fused, expected, atol=1e-5)


def test_what_picks_nothing_reads_nothing() -> None:
    """As in 1.8.5, though the folder is missing; a file that is named must be there."""
    with fresh() as (main, _):
        fluid.layers.fc(fluid.layers.data("x", [2]), 1)
    exe = fluid.Executor()
    fluid.io.load_vars(exe, "nowhere", main, predicate=lambda var: False)
    fluid.io.load_vars(exe, "nowhere", main, vars=[])
    for more in ({"vars": [], "filename": "all"}, {"predicate": lambda var: True}):
        with pytest.raises(FluidValueError, match="There is no directory named 'nowhere'"):
            fluid.io.load_vars(exe, "nowhere", main, **more)
