"""paddle.nn.Layer: what it owns, by which names, its hooks, its values; training and predicting
with layers.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError

nn = paddle.nn
pytestmark = pytest.mark.usefixtures("fresh_programs")


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.ReLU())
        self.heads = nn.LayerList([nn.Linear(5, 2), nn.Linear(5, 2, bias_attr=False)])
        self.norm = nn.BatchNorm1D(2)
        self.scale = self.create_parameter([1], default_initializer=fluid.initializer.Constant(2.0))

    def forward(self, x):
        hidden = self.body(x)
        return self.norm(self.heads[0](hidden) + self.heads[1](hidden)) * self.scale


def test_what_a_layer_owns():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "scale", "body.0.weight", "body.0.bias", "heads.0.weight", "heads.0.bias", "heads.1.weight", "norm.weight", "norm.bias",
        "norm._mean", "norm._variance",
    ]  # fmt: skip
    assert net.heads[1].bias is None and list(net.state_dict()) == [
        n for n, _ in net.named_parameters()
    ]
    assert [p.name for p in net.body.parameters()] == [
        "linear_0.w_0",
        "linear_0.b_0",
    ] and net.full_name() == "net_0"
    assert [n for n, _ in net.named_sublayers()] == [
        "body",
        "body.0",
        "body.1",
        "body.2",
        "heads",
        "heads.0",
        "heads.1",
        "norm",
    ]
    assert [n for n, _ in net.named_children()] == ["body", "heads", "norm"] and len(
        net.sublayers(include_self=True)
    ) == 9
    net.tied = net.body[0].weight
    assert sum(p is net.tied for p in net.parameters()) == 1
    assert (
        repr(nn.Sequential(nn.Linear(2, 3)))
        == "Sequential(\n  (0): Linear(in_features=2, out_features=3)\n)"
    )
    seen = []
    assert (
        net.apply(lambda layer: seen.append(layer.full_name())) is net
        and seen[-1] == "net_0"
        and len(seen) == 9
    )
    net.eval()
    assert not any(layer.training for layer in net.sublayers(include_self=True))
    net.train()
    assert net.body[1].training


def test_attributes_replace_each_other():
    net = Net()
    net.body = nn.ReLU()
    assert "body.0" not in dict(net.named_sublayers()) and isinstance(net.body, nn.ReLU)
    net.body = 3
    assert net.body == 3 and "body" not in dict(net.named_sublayers())
    del net.heads
    assert not hasattr(net, "heads")
    net.scale = None
    assert "scale" not in dict(net.named_parameters()) and net.scale is None
    kept, passing = (paddle.full([2], 1.0) for _ in range(2))
    net.register_buffer("kept", kept)
    net.register_buffer("passing", passing, persistable=False)
    assert (
        [n for n, _ in net.named_buffers()] == ["kept", "passing"]
        and net.kept is kept
        and kept.persistable
    )
    assert "kept" in net.state_dict() and "passing" not in net.state_dict()
    assert net.to_static_state_dict()["passing"] is passing
    made = net.create_variable("made", persistable=True)
    assert made.name == "net_0_made_0" and made.persistable and made.desc.dtype == "float32"


def test_lists():
    linear = [nn.Linear(2, 2) for _ in range(3)]
    layers = nn.LayerList(linear[:1])
    layers.append(linear[2]).extend([nn.Tanh()])
    layers.insert(1, linear[1])
    assert (
        list(layers)[:3] == linear and len(layers[1:]) == 3 and layers[-1].full_name() == "tanh_0"
    )
    del layers[0]
    layers[0] = linear[0]
    assert layers[0] is linear[0] and [n for n, _ in layers.named_children()] == ["0", "1", "2"]
    held = nn.ParameterList([linear[0].weight])
    held.append(linear[1].weight)
    assert [n for n, _ in held.named_parameters()] == ["0", "1"] and held[1] is linear[1].weight
    named = nn.Sequential(("a", nn.Linear(2, 2)), ("b", nn.Tanh()))
    named["b"] = nn.ReLU()
    assert (
        isinstance(named[1], nn.ReLU)
        and len(named) == 2
        and isinstance(named[:1], nn.Sequential)
        and named["a"] is named.a
    )
    del named["a"]
    assert len(named) == 1


def test_hooks():
    layer, x = nn.ReLU(), paddle.static.data("x", [2])
    before = layer.register_forward_pre_hook(lambda owner, inputs: paddle.scale(inputs[0], -1.0))
    layer.register_forward_post_hook(lambda owner, inputs, out: paddle.scale(out, 3.0))
    both = layer(x)
    before.remove()
    got = fluid.Executor().run(
        feed={"x": np.array([1, -2], "float32")}, fetch_list=[both, layer(x)]
    )
    np.testing.assert_array_equal(got, [[0, 6], [3, 0]])


def test_a_net_of_layers_learns_and_its_values_are_saved(tmp_path):
    paddle.seed(7)
    net = Net()
    x, y = paddle.static.data("x", [None, 4]), paddle.static.data("y", [None], "int64")
    loss = nn.CrossEntropyLoss()(net(x), y)
    net.eval()
    out = net(x)  # the same parameters, predicting
    paddle.optimizer.Momentum(0.1, parameters=net.parameters()).minimize(loss)
    exe, rng = fluid.Executor(), np.random.default_rng(0)
    exe.run(fluid.default_startup_program())
    feed = {"x": rng.normal(size=(16, 4)).astype("float32"), "y": np.arange(16) % 2}
    feed["x"][:, 0] += 3 * feed["y"]
    losses = [float(exe.run(feed=feed, fetch_list=[loss])[0][0]) for _ in range(40)]
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    test = fluid.default_main_program().clone(for_test=True)._prune([out])
    first = exe.run(test, feed={"x": feed["x"]}, fetch_list=[out])[0]
    assert (first.argmax(1) == feed["y"]).mean() > 0.8
    paddle.save(net.state_dict(), tmp_path / "net.pdparams")
    saved = paddle.load(tmp_path / "net.pdparams")
    zeros = {n: np.zeros_like(v) for n, v in saved.items()}
    assert net.set_state_dict(zeros) == ([], [])
    assert not exe.run(test, feed={"x": feed["x"]}, fetch_list=[out])[0].any()
    lacking, unknown = net.set_state_dict(
        {**{n: v for n, v in saved.items() if n != "scale"}, "other": np.ones(1)}
    )
    assert (lacking, unknown) == (["scale"], ["other"])
    net.set_dict({net.scale.name: saved["scale"]}, use_structured_name=False)
    np.testing.assert_array_equal(exe.run(test, feed={"x": feed["x"]}, fetch_list=[out])[0], first)
    with pytest.raises(FluidValueError, match=r"'scale' has shape \[1\], but its value has \[2\]"):
        net.set_state_dict({"body.0.bias": np.ones(5), "scale": np.ones(2)})
    np.testing.assert_array_equal(exe.run(test, feed={"x": feed["x"]}, fetch_list=[out])[0], first)


def test_batch_norms_become_those_of_all_ranks():
    x, plain = paddle.static.data("x", [None, 3, 2, 2]), nn.BatchNorm2D(3)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(plain, nn.ReLU()))
    made = [plain(x), synced(x), nn.SyncBatchNorm(3)(x)]
    ops = {
        op.output("Y")[0]: op
        for op in fluid.default_main_program().global_block().ops
        if "batch_norm" in op.type
    }
    one, two = ops[made[0].name], ops[next(n for n in ops if ops[n].type == "sync_batch_norm")]
    assert isinstance(synced[0], nn.SyncBatchNorm) and ops[made[2].name].type == "sync_batch_norm"
    assert all(
        one.input(slot) == two.input(slot) for slot in ("X", "Scale", "Bias", "Mean", "Variance")
    )
    assert [two.attr(n) for n in ("momentum", "epsilon", "is_test")] == [
        one.attr(n) for n in ("momentum", "epsilon", "is_test")
    ]


def test_spectral_norm():
    weight = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
    out = nn.SpectralNorm([4, 3], power_iters=30)(paddle.static.data("w", [4, 3]))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    got = exe.run(feed={"w": weight}, fetch_list=[out])[0]
    np.testing.assert_allclose(got, weight / np.linalg.svd(weight)[1][0], rtol=1e-3)


def test_masks_of_transformers_hide_what_comes_later():
    mask = nn.Transformer(4, 2, 1, 1, 4).generate_square_subsequent_mask(3)
    np.testing.assert_array_equal(
        fluid.Executor().run(fetch_list=[mask])[0], np.triu(np.full((3, 3), -np.inf), 1)
    )
    attention = nn.MultiHeadAttention(4, 2)
    with pytest.raises(FluidTypeError, match="cache is what gen_cache gave, not int"):
        attention(paddle.static.data("x", [1, 2, 4]), cache=1)
    assert paddle.static.py_func is fluid.layers.py_func


def test_recurrent_layers_begin_small_and_own_their_parts_once():
    net = nn.LSTM(3, 4, 2, "bidirect", bias_hh_attr=False)
    names = [n for n, _ in net.named_parameters()]
    assert (
        names[:4] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
        and names[-1] == "bias_hh_l1_reverse"
    )
    assert (
        len(names) == 16
        and "1.cell_bw.bias_hh" in net.state_dict()
        and net.flatten_parameters() is None
    )
    assert [p.name for p in net.parameters() if not p.trainable] == [
        f"lstm_cell_{k}.b_1" for k in range(4)
    ]
    assert repr(nn.GRU(3, 4, time_major=True, dropout=0.5)).startswith(
        "GRU(3, 4, time_major=True, dropout=0.5\n  (0): RNN("
    )
    states = net[0].cell_fw.get_initial_states(paddle.static.data("x", [2, 3]), init_value=0.5)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    values = exe.run(
        feed={"x": np.ones((2, 3), "float32")}, fetch_list=[*states, *net.parameters()]
    )
    assert [v.tolist() for v in values[:2]] == [[[0.5] * 4] * 2] * 2
    for name, value in zip(names, values[2:], strict=True):
        # 1/sqrt(4)
        assert (
            not value.any() if name.startswith("bias_hh") else 0.2 < np.abs(value).max() <= 0.5
        ), name


def test_bad_input():
    class Early(nn.Layer):
        def __init__(self):
            self.inner = nn.ReLU()

    net = nn.Layer()
    for call, error, told in (
        (Early, FluidTypeError, r"calls super\(\).__init__\(\) before it assigns 'inner'"),
        (lambda: net(1), NotImplementedError, "Layer has no forward"),
        (lambda: net.add_sublayer("a", 3), FluidTypeError, "takes a layer, not 3"),
        (lambda: net.add_sublayer("a.b", nn.ReLU()), FluidValueError, "without dots, not 'a.b'"),
        (lambda: net.add_parameter("a", 3), FluidTypeError, "takes a parameter, not 3"),
        (lambda: net.register_buffer("a", 3), FluidTypeError, "takes a variable, not 3"),
        (lambda: net.nothing, AttributeError, "Layer has no attribute 'nothing'"),
        (lambda: nn.ParameterList().append(None), FluidTypeError, "holds parameters, not None"),
        (
            lambda: nn.Embedding(4, 2, padding_idx=4),
            FluidValueError,
            "padding_idx 4 is not one of 4 rows",
        ),
        (
            lambda: nn.Conv2D(3, 4, 3, groups=2),
            FluidValueError,
            "3 and 4 channels do not divide into 2 groups",
        ),
        (
            lambda: nn.MultiHeadAttention(4, 3),
            FluidValueError,
            "embed_dim 4 does not divide into 3 heads",
        ),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, 4, weight_attr=[None]),
            FluidValueError,
            "takes one attribute or 2, not 1",
        ),
        (lambda: nn.Conv2D(2, 4, 3, weight_attr=False), FluidValueError, "needs its filter"),
        (
            lambda: nn.LSTM(3, 2, 1, "both"),
            FluidValueError,
            "direction is 'forward' or 'bidirect' or 'bidirectional', not 'both'",
        ),
        (
            lambda: nn.SimpleRNN(3, 2, activation="elu"),
            FluidValueError,
            "activation is 'tanh' or 'relu', not 'elu'",
        ),
        (lambda: nn.GRU(3, 2, 0), FluidValueError, "at least one layer, not 0"),
        (
            lambda: nn.BiRNN(nn.GRUCell(3, 2), nn.GRUCell(2, 2)),
            FluidValueError,
            "input_size 3 and 2",
        ),
        (
            lambda: nn.RNNCellBase().state_shape,
            NotImplementedError,
            "has no state_shape; give the first states",
        ),
    ):
        with pytest.raises(error, match=told):
            call()
