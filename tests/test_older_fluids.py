"""Names that Fluid had before 1.8 or got after it: AsyncExecutor, contrib.Trainer and Inferencer,
XPUPlace, sparse_embedding.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, UnsupportedError

DESC = """name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
    slots { name: "words" type: "uint64" is_dense: false is_used: false }
    slots { name: "skipped" type: "float" is_dense: false is_used: false }
    slots { name: "label" type: "uint64" is_dense: false is_used: false }
}
"""
LINES = [([1, 2], 1), ([3], 0), ([2, 2, 0], 1), ([4, 1], 0), ([0], 1)]


@pytest.fixture
def folder(tmp_path: Any, monkeypatch: Any) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.proto").write_text(DESC)
    rows = [f"{len(w)} {' '.join(map(str, w))} 2 0.5 0.25 1 {y}\n" for w, y in LINES]
    (tmp_path / "a.txt").write_text("".join(rows[:3]))
    (tmp_path / "b.txt").write_text("".join(rows[3:]))
    return tmp_path


def counted() -> Any:
    """A net whose loss is linear in its table, of words and labels; and what a pass of SGD leaves
    of the table by hand.
    """
    words, label = (
        layers.data("words", [1], dtype="int64", lod_level=1),
        layers.data("label", [1], dtype="int64"),
    )
    table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.0))
    pooled = layers.sequence_pool(layers.embedding(words, [5, 1], param_attr=table), "sum")
    loss = layers.mean(pooled * layers.cast(label, "float32"))
    fluid.optimizer.SGD(1.0).minimize(loss)
    left = np.zeros(5)
    for at in (0, 2, 4):  # batches go over the ends of files
        batch = LINES[at : at + 2]
        for ids, y in batch:
            np.subtract.at(left, ids, y / len(batch))
    return loss, left


def test_an_async_executor_trains_over_files(folder: Any, capfd: Any) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        loss, left = counted()
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        feed = fluid.DataFeedDesc("data.proto")
        executor = fluid.AsyncExecutor(fluid.CPUPlace())
        with pytest.raises(FluidValueError, match="uses none of its slots"):
            executor.run(None, feed, "a.txt", 1, loss)
        feed.set_use_slots(["words", "label"])
        assert (
            executor.run(fluid.default_main_program(), feed, ["a.txt", "b.txt"], 2, [loss]) is None
        )
        assert capfd.readouterr().out == ""
        np.testing.assert_allclose(
            np.array(fluid.global_scope().find_var("table").get_tensor()).ravel(), left, rtol=1e-6
        )
        executor.run(None, feed, "b.txt", 1, loss.name, debug=True)
        assert capfd.readouterr().out.count(f"{loss.name}\t{loss.name}") == 1
        (folder / "none.txt").write_text("")
        with pytest.warns(RuntimeWarning, match="the pass had no batch"):
            executor.run(None, feed, "none.txt", 1, loss)
        for wrong, error, told in (
            ((None, feed, "c.txt", 1, loss), FluidValueError, "'c.txt' cannot be read"),
            ((None, feed, "a.txt", 0, loss), FluidValueError, "thread_num is a positive number"),
            (
                (None, "data.proto", "a.txt", 1, loss),
                FluidTypeError,
                "takes a DataFeedDesc as data_feed, not str",
            ),
            ((None, feed, "a.txt", 1, "losss"), FluidError, "losss"),
            (
                (None, feed, "a.txt", 1, loss, "mpi"),
                UnsupportedError,
                "the mode 'mpi' belongs to pslib",
            ),
        ):
            with pytest.raises(error, match=told):
                executor.run(*wrong)
        with pytest.raises(AttributeError, match="init_server belongs to pslib"):
            executor.init_server()


def line() -> Any:
    x, y = layers.data("x", [1]), layers.data("y", [1])
    out = layers.fc(x, 1, param_attr=fluid.initializer.Constant(0.0), bias_attr=False)
    return [layers.mean(layers.square_error_cost(out, y)), layers.reduce_max(out)]


def predicted() -> Any:
    return layers.fc(layers.data("x", [1]), 1, bias_attr=False)


def samples() -> Any:
    yield [(1.0, 2.0), (2.0, 4.0)]
    yield [(3.0, 6.0)]


def by_hand(steps: int, w: float = 0.0) -> list[tuple[float, float]]:
    """Losses before, and weights after, each step of SGD(0.01) on the square error."""
    found = []
    batches = list(samples())
    for step in range(steps):
        x, y = np.array(batches[step % 2]).T
        found.append(
            (float(np.mean((w * x - y) ** 2)), w := w - 0.01 * float(np.mean(2 * (w * x - y) * x)))
        )
    return found


def weight(trainer: Any) -> float:
    return float(np.array(trainer.scope.find_var("fc_0.w_0").get_tensor()).item())


@pytest.mark.parametrize("order", [["x", "y"], {"y": 1, "x": 0}, None])
def test_a_trainer_tells_what_happens(order: Any, folder: Any) -> None:
    told: list[Any] = []

    def handler(event: Any) -> None:
        told.append(event)
        if isinstance(event, fluid.contrib.BeginStepEvent) and event.step == 1:
            event.fetch_metrics = False

    trainer = fluid.contrib.Trainer(line, lambda: fluid.optimizer.SGD(0.01), place=fluid.CPUPlace())
    trainer.train(2, handler, samples, order)
    # as in 0.14
    assert (
        fluid.Trainer is fluid.contrib.Trainer
        and fluid.EndStepEvent is fluid.contrib.trainer.EndStepEvent
    )
    names = [type(e).__name__ for e in told]
    assert (
        names
        == (["BeginEpochEvent"] + ["BeginStepEvent", "EndStepEvent"] * 2 + ["EndEpochEvent"]) * 2
    )
    ends = [e for e in told if isinstance(e, fluid.contrib.EndStepEvent)]
    assert [(e.epoch, e.step, len(e.metrics)) for e in ends] == [
        (0, 0, 2),
        (0, 1, 0),
        (1, 0, 2),
        (1, 1, 0),
    ]
    wanted = by_hand(4)
    assert [e.metrics[0].item() for e in ends[::2]] == pytest.approx(
        [wanted[0][0], wanted[2][0]], rel=1e-5
    )
    assert weight(trainer) == pytest.approx(wanted[3][1], rel=1e-5)
    w = weight(trainer)
    errors = [np.mean([(w * x - y) ** 2 for x, y in batch]) for batch in samples()]
    assert trainer.test(samples, order) == pytest.approx(
        [np.mean(errors), (2 * w + 3 * w) / 2], rel=1e-5
    )
    trainer.save_params("saved")
    trainer.save_inference_model("model", ["x"], [1])
    inferencer = fluid.contrib.Inferencer(predicted, "saved", fluid.CPUPlace())
    (found,) = inferencer.infer({"x": np.array([[2.0], [5.0]], "float32")})
    np.testing.assert_allclose(found, [[2 * w], [5 * w]], rtol=1e-6)
    with pytest.raises(FluidTypeError, match="takes a dict"):
        inferencer.infer([1.0])  # type: ignore[arg-type]


def test_a_trainer_goes_on_from_its_checkpoint(folder: Any, monkeypatch: Any) -> None:
    config = fluid.contrib.CheckpointConfig("checks", max_num_checkpoints=2, step_interval=1)

    def stopping(event: Any) -> None:
        if isinstance(event, fluid.contrib.EndStepEvent) and (event.epoch, event.step) == (1, 0):
            trainer.stop()

    trainer = fluid.contrib.Trainer(
        line, lambda: fluid.optimizer.SGD(0.01), place=fluid.CPUPlace(), checkpoint_config=config
    )
    trainer.train(3, stopping, samples, ["x", "y"])
    assert sorted(p.name for p in (folder / "checks").iterdir()) == ["checkpoint_1", "checkpoint_2"]
    assert weight(trainer) == pytest.approx(by_hand(3)[-1][1], rel=1e-5)
    seen: list[Any] = []
    trainer = fluid.contrib.Trainer(
        line, lambda: fluid.optimizer.SGD(0.01), place=fluid.CPUPlace(), checkpoint_config=config
    )
    trainer.train(3, seen.append, samples, ["x", "y"])
    assert [(e.epoch, e.step) for e in seen if isinstance(e, fluid.contrib.EndStepEvent)] == [
        (1, 1),
        (2, 0),
        (2, 1),
    ]
    assert weight(trainer) == pytest.approx(by_hand(6)[-1][1], rel=1e-5)
    assert not list((folder / "checks").iterdir())  # it is done

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("fluidjax.contrib.trainer.os.replace", full)
        again = fluid.contrib.Trainer(
            line,
            lambda: fluid.optimizer.SGD(0.01),
            place=fluid.CPUPlace(),
            checkpoint_config=config,
        )
        with pytest.raises(OSError, match="No space"):
            again.train(1, lambda event: None, samples, ["x", "y"])
    assert not list((folder / "checks").iterdir())  # no half of one is left
    (folder / "checks" / "checkpoint_0").mkdir()
    for text in (None, "{", json.dumps({"epoch": 1}), "[]"):
        if text is not None:
            (folder / "checks" / "checkpoint_0" / "trainer.json").write_text(text)
        with pytest.raises(FluidError, match=r"trainer\.json"):
            fluid.contrib.Trainer(
                line,
                lambda: fluid.optimizer.SGD(0.01),
                place=fluid.CPUPlace(),
                checkpoint_config=config,
            )


def test_a_trainer_on_several_devices(monkeypatch: Any) -> None:
    """Two devices take a batch each, and update by the mean of their gradients."""
    monkeypatch.setenv("CPU_NUM", "2")
    trainer = fluid.contrib.Trainer(
        line, lambda: fluid.optimizer.SGD(0.01), place=fluid.CPUPlace(), parallel=True
    )
    trainer.train(1, lambda event: None, samples, ["x", "y"])
    grads = [np.mean([-2 * y * x for x, y in batch]) for batch in samples()]
    assert weight(trainer) == pytest.approx(-0.01 * np.mean(grads), rel=1e-5)


def test_trainers_refuse(monkeypatch: Any) -> None:
    sgd = lambda: fluid.optimizer.SGD(0.01)  # noqa: E731
    with pytest.raises(FluidTypeError, match="optimizer_func returns an optimizer, not int"):
        fluid.contrib.Trainer(line, lambda: 1, place=fluid.CPUPlace())  # type: ignore[arg-type, return-value]
    with pytest.raises(FluidTypeError, match="is a CheckpointConfig, not str"):
        fluid.contrib.Trainer(line, sgd, place=fluid.CPUPlace(), checkpoint_config="checks")  # type: ignore[arg-type]
    with pytest.raises(FluidValueError, match="step_interval is a whole number from 1 on, not 0"):
        fluid.contrib.CheckpointConfig(step_interval=0)
    trainer = fluid.contrib.Trainer(line, sgd, place=fluid.CPUPlace())
    with pytest.raises(FluidValueError, match="another position"):
        trainer.test(samples, {"x": 0, "y": 2})
    with pytest.raises(FluidValueError, match="no batch"):
        trainer.test(lambda: iter(()), ["x", "y"])
    monkeypatch.setenv("PADDLE_TRAINING_ROLE", "TRAINER")
    with pytest.raises(UnsupportedError, match="DistributeTranspiler"):
        fluid.contrib.Trainer(line, sgd)


def test_layers_of_paddle_2() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        ids = layers.data("ids", [1], dtype="int64")
        numbers = fluid.initializer.NumpyArrayInitializer(
            np.arange(8, dtype="float32").reshape(4, 2)
        )
        attr = fluid.ParamAttr(name="table", initializer=numbers)
        out = fluid.contrib.layers.sparse_embedding(ids, [4, 2], padding_idx=1, param_attr=attr)
        chosen = fluid.contrib.layers.index_sample(out, layers.data("at", [1], dtype="int64"))
        optimizer = fluid.optimizer.SGD(1.0)
        assert [(p.name, g.name) for p, g in optimizer._backward(layers.mean(out))] == [
            ("table", "table@GRAD")
        ]
        assert (
            fluid.get_var("table") is fluid.default_main_program().global_block().var("table")
            and fluid.get_var("ids").name == "ids"
        )
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        feed = {"ids": np.array([[3], [1]]), "at": np.array([[0], [1]])}
        found = exe.run(feed=feed, fetch_list=[out, chosen, "table@GRAD"], return_numpy=False)
        assert np.array(found[0]).tolist() == [[6, 7], [0, 0]] and np.array(found[1]).tolist() == [
            [6],
            [0],
        ]
        with pytest.raises(UnsupportedError, match="entry is not supported"):
            fluid.contrib.layers.sparse_embedding(ids, [4, 2], entry=1)


def test_a_place_that_is_not_there() -> None:
    assert str(fluid.XPUPlace(1)) == "XPUPlace(1)" and fluid.core.XPUPlace is fluid.XPUPlace
    with pytest.raises(FluidValueError, match=r"XPUPlace\(0\): JAX sees no XPUs; use CPUPlace"):
        fluid.Executor(fluid.XPUPlace(0))
