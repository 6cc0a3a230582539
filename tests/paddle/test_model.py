"""paddle.Model over static programs, summary and flops (equal to Paddle 2.6.2's), metrics,
DataParallel.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError

nn = paddle.nn
SPEC = paddle.static.InputSpec
pytestmark = pytest.mark.usefixtures("fresh_programs")


def lenet():
    return nn.Sequential(
        nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.BatchNorm2D(6), nn.Conv2D(6, 16, 5, bias_attr=False),
        nn.LeakyReLU(), nn.AvgPool2D(2, 2), nn.Flatten(), nn.Linear(400, 12), nn.Linear(12, 10),
    )  # fmt: skip


def test_summary_and_flops_are_those_of_2_6_2(capsys):
    net = lenet()
    ops = len(fluid.default_main_program().global_block().ops)
    assert paddle.summary(net, (None, 1, 28, 28)) == {
        "total_params": 7426,
        "trainable_params": 7414,
    }
    told = capsys.readouterr().out
    for row in (
        "Conv2D-2 6, 14, 14 16, 10, 10 2,400",
        "BatchNorm2D-1 14, 14 14, 14 24",
        "Linear-1 1, 400 1, 12 4,812",
    ):
        line = next(line for line in told.splitlines() if row.split()[0] in line)
        assert all(part in line for part in row.split()[1:]), line
    assert paddle.summary(net, input=np.ones((1, 1, 28, 28), "float32"))["total_params"] == 7426
    assert (
        paddle.flops(net, [2, 1, 28, 28]) == 592624
        and paddle.flops(net, [1, 1, 28, 28]) == 592624 // 2
    )
    custom = {nn.ReLU: lambda layer, inputs, output: 7}
    assert paddle.flops(net, [2, 1, 28, 28], custom, print_detail=True) == 592631
    assert "592631" in capsys.readouterr().out and net[0].training
    # nothing was appended to the user's program
    assert len(fluid.default_main_program().global_block().ops) == ops
    x = paddle.static.data("x", [None, 1, 28, 28])
    y = paddle.static.nn.batch_norm(paddle.static.nn.conv2d(x, 6, 3, padding=1, act="relu"))
    y = paddle.static.nn.fc(nn.functional.avg_pool2d(y, 2, 2), 10)
    _ = y * y
    assert paddle.flops(fluid.default_main_program(), [1, 1, 28, 28]) == 74108
    for call, error, told in (
        (lambda: paddle.summary(3), FluidTypeError, "takes a layer, not int"),
        (lambda: paddle.summary(net), FluidValueError, "needs input_size"),
        (lambda: paddle.flops(3, [1]), FluidTypeError, "a layer or a program, not int"),
        (
            lambda: paddle.summary(net, (1, 1, 28, 28), ["float32"] * 2),
            FluidValueError,
            "1 inputs and 2 dtypes",
        ),
    ):
        with pytest.raises(error, match=told):
            call()


X = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]], "float32") + 0.3).astype("float32")


class Seen:
    def __init__(self):
        self.calls = []

    def set_model(self, model):
        self.model = model

    def on_epoch_end(self, epoch, logs):
        self.calls.append((epoch, logs["loss"][0]))
        self.model.stop_training = epoch == 2

    def on_train_batch_end(self, step, logs):
        self.calls.append(step)


def by_hand(w, b, steps, rate=0.1):
    """Weights, bias and losses of gradient descent on the mean square error over batches of 4, in
    their order.
    """
    losses = []
    for k in range(steps):
        x, y = X[k % 3 * 4 : k % 3 * 4 + 4], Y[k % 3 * 4 : k % 3 * 4 + 4]
        d = x @ w + b - y
        losses.append(float((d**2).mean()))
        w, b = w - rate * 2 * x.T @ d / 4, b - rate * 2 * d.mean(0)
    return w, b, losses


def test_a_model_trains_as_by_hand_and_keeps_its_values(tmp_path, capsys):
    net = nn.Linear(3, 1)
    model = paddle.Model(net, [SPEC([None, 3], "float32", "x")], SPEC([None, 1], "float32", "y"))
    model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), nn.MSELoss())
    first = {
        n: np.array(fluid.global_scope().find_var(v.name).value)
        for n, v in net.state_dict().items()
    }
    seen = Seen()
    model.fit(list(zip(X, Y, strict=True)), batch_size=4, epochs=5, shuffle=False, verbose=2, log_freq=2, callbacks=seen,
              save_dir=str(tmp_path / "kept"))  # fmt: skip
    w, b, losses = by_hand(first["weight"], first["bias"], 9)
    # stopped after three epochs
    assert [c for c in seen.calls if isinstance(c, int)] == [0, 1, 2] * 3
    np.testing.assert_allclose(
        [c[1] for c in seen.calls if isinstance(c, tuple)], losses[2::3], rtol=1e-4
    )
    out = model.predict(X, batch_size=5, stack_outputs=True)[0]
    np.testing.assert_allclose(out, X @ w + b, rtol=1e-4, atol=1e-5)
    assert "epoch 1/5, step 2 - loss:" in capsys.readouterr().out
    logs = model.evaluate(iter([(X, Y)]), verbose=0)
    np.testing.assert_allclose(logs["loss"][0], ((X @ w + b - Y) ** 2).mean(), rtol=1e-4)
    model.load(str(tmp_path / "kept" / "0"))
    np.testing.assert_allclose(
        model.predict_batch(X)[0],
        X @ by_hand(first["weight"], first["bias"], 3)[0] + net_bias(net),
        rtol=1e-4,
        atol=1e-5,
    )
    model.save(str(tmp_path / "served"), training=False)
    wanted = model.predict_batch([X])[0]
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(
            str(tmp_path / "served"), fluid.Executor()
        )
        assert feeds == ["x"]
        np.testing.assert_allclose(
            fluid.Executor().run(program, feed={"x": X}, fetch_list=fetches)[0], wanted, rtol=1e-6
        )
    assert model.summary()["total_params"] == 4 and len(model.parameters()) == 2


def net_bias(net):
    return np.array(fluid.global_scope().find_var(net.bias.name).value)


def test_a_model_with_metrics_goes_on_with_its_optimizer(tmp_path):
    def made():
        net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
        model = paddle.Model(net, SPEC([None, 3]), SPEC([None, 1], "int64"))
        model.prepare(
            paddle.optimizer.Adam(0.1, parameters=net.parameters()),
            nn.CrossEntropyLoss(),
            paddle.metric.Accuracy(),
        )
        return model

    label = (Y > 0).astype("int64")
    with fluid.unique_name.guard():
        model = made()
    for _ in range(3):
        model.train_batch([X], [label])
    model.save(str(tmp_path / "a"))
    losses, shares = model.eval_batch([X], [label])
    scores = model.predict_batch([X])[0]
    assert shares == [float((scores.argmax(1) == label[:, 0]).mean())]
    picked = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    np.testing.assert_allclose(losses[0], -np.take_along_axis(picked, label, 1).mean(), rtol=1e-5)
    logs = model.evaluate(iter([(X[:5], label[:5]), (X[5:], label[5:])]), verbose=0)
    np.testing.assert_allclose(logs["acc"], shares[0], rtol=1e-6)
    with (
        fluid.scope_guard(fluid.Scope()),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
    ):
        other = made()
        other.load(str(tmp_path / "a"))
        np.testing.assert_array_equal(other.predict_batch([X])[0], scores)
        scope = fluid.global_scope()
        powers = [
            np.array(scope.find_var(n).value) for n in scope.local_var_names() if "beta1_pow" in n
        ]
        np.testing.assert_allclose(powers, [[0.9**4]] * 2, rtol=1e-6)  # three steps were made
        paddle.save({"0.weight": np.ones((2, 2), "float32")}, tmp_path / "b.pdparams")
        other.load(str(tmp_path / "b"), skip_mismatch=True)
        np.testing.assert_array_equal(other.predict_batch([X])[0], scores)
        with pytest.raises(FluidValueError, match=r"'0.weight' has shape \[3, 2\]"):
            other.load(str(tmp_path / "b"))


def test_bad_models():
    net = nn.Linear(3, 1)
    model = paddle.Model(net, SPEC([None, 3]), SPEC([None, 1]))
    for call, error, told in (
        (lambda: paddle.Model(3), FluidTypeError, "takes a layer, not int"),
        (lambda: paddle.Model(net), FluidValueError, "needs inputs in static mode"),
        (lambda: model.prepare(loss=3), FluidTypeError, "a loss that can be called"),
        (lambda: model.prepare(metrics=3), FluidTypeError, "metrics of paddle.metric, not int"),
        (lambda: model.prepare(amp_configs="O1"), UnsupportedError, "mixed precision"),
        (lambda: model.train_batch(X, Y), FluidValueError, "has an optimizer and a loss"),
        (lambda: model.train_batch(X, Y, False), UnsupportedError, "make the batch larger"),
        (
            lambda: model.fit([], accumulate_grad_batches=2),
            UnsupportedError,
            "make the batch larger",
        ),
        (lambda: model.eval_batch(X), FluidValueError, "1 fields, but eval takes input_0, label_0"),
        (lambda: model.predict(3), FluidTypeError, "data is a data set, or gives batches"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_metrics():
    metric = paddle.metric
    top = metric.Accuracy((1, 2))
    x, y = paddle.static.data("x", [None, 3]), paddle.static.data("y", [None, 1], "int64")
    scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], "float32")
    feed = {"x": scores, "y": np.array([[1], [1], [0]])}
    found = fluid.Executor().run(
        feed=feed, fetch_list=[top.compute(x, y), metric.accuracy(x, y, 2)]
    )
    np.testing.assert_allclose(top.update(found[0]), [1 / 3, 2 / 3])
    np.testing.assert_allclose(found[1], [2 / 3])
    top.update(np.array([[0.0, 1.0]]))
    assert top.accumulate() == [0.25, 0.75] and top.name() == ["acc_top1", "acc_top2"]
    top.reset()
    assert top.accumulate() == [0.0, 0.0]
    said, true = np.array([0.1, 0.5, 0.6, 0.7]), np.array([0, 1, 1, 1])
    for kind, wanted in ((metric.Precision, 2 / 3), (metric.Recall, 1.0)):
        one = kind()
        assert one.accumulate() == 0.0
        one.update(said, np.array([0, 1, 0, 1]))
        np.testing.assert_allclose(one.accumulate(), wanted)
    area = metric.Auc()
    area.update(np.stack([1 - said, said], 1), true[:, None])
    assert (
        area.accumulate() == 1.0 and area.name() == "auc" and issubclass(metric.Auc, metric.Metric)
    )
    with pytest.raises(FluidValueError, match="as many labels as predictions, not 4 and 3"):
        metric.Recall().update(said[:3], true)


def test_data_parallel_is_the_layer_inside():
    net = nn.Linear(3, 2)
    outer = paddle.DataParallel(net)
    x = paddle.static.data("x", [None, 3])
    both = [net(x), outer(x)]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    one, other = exe.run(feed={"x": X}, fetch_list=both)
    np.testing.assert_array_equal(one, other)
    assert (
        list(outer.state_dict()) == ["weight", "bias"]
        and outer.scale_loss(both[0]) is both[0]
        and len(outer.parameters()) == 2
    )
    with outer.no_sync():
        assert outer.apply_collective_grads() is None
