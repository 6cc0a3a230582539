"""Ops on sparse rows, and training with sparse embeddings, for any Fluid-compatible module.

`record_sparse.py` runs them on the real Paddle 1.8.5 and stores the results. Written for Python 3.8
as well.
"""

import collections

import numpy as np

from ..optimizers.optimizer_cases import fresh

HEIGHT, WIDTH = 6, 3
Rows = collections.namedtuple("Rows", "rows values")  # an input that is sparse
_rng = np.random.RandomState(0)


def _f(*shape):
    return (_rng.rand(*shape) - 0.25).astype("float32")


def _table():
    return np.abs(_f(HEIGHT, WIDTH))


ONE = np.array([0.9], "float32")
RATE = np.array([0.1], "float32")
TWICE = Rows([4, 1, 4, 2], _f(4, WIDTH))
OTHER = Rows([1, 5], _f(2, WIDTH))


def _update(op, *accumulators, **more):
    """An optimizer op: (op, inputs, attributes, {output: the input that it is written over})."""
    inputs = {"Param": _table(), "Grad": TWICE, "LearningRate": RATE}
    inputs.update({n: ONE if n.startswith("Beta") else 1 + _table() for n in accumulators})
    written = ("Param", *accumulators)
    return op, inputs, more, {n + "Out": n for n in written}


_ADAM = ("Moment1", "Moment2", "Beta1Pow", "Beta2Pow")

# name: (op, inputs, attributes, outputs {slot: input that it overwrites; "sparse" or "dense" for a
# new variable})
OPS = {
    "sgd": _update("sgd"),
    "momentum": _update("momentum", "Velocity", mu=0.9),
    "momentum nesterov": _update("momentum", "Velocity", mu=0.9, use_nesterov=True),
    "adagrad": _update("adagrad", "Moment"),
    "rmsprop": _update("rmsprop", "Moment", "MeanSquare", "MeanGrad", decay=0.9, momentum=0.5),
    "rmsprop centered": _update(
        "rmsprop", "Moment", "MeanSquare", "MeanGrad", decay=0.9, momentum=0.5, centered=True
    ),
    "adam": _update("adam", *_ADAM),
    "adam lazy": _update("adam", *_ADAM, lazy_mode=True),
    "sum": ("sum", {"X": [TWICE, OTHER]}, {}, {"Out": "sparse"}),
    "sum of one": ("sum", {"X": [TWICE]}, {}, {"Out": "sparse"}),
    "sum with a tensor": ("sum", {"X": [TWICE, _table()]}, {}, {"Out": "dense"}),
    "sum with a tensor first": ("sum", {"X": [_table(), TWICE, OTHER]}, {}, {"Out": "dense"}),
    "scale": ("scale", {"X": TWICE}, {"scale": 2.0, "bias": 1.0}, {"Out": "X"}),
    "clip": ("clip", {"X": TWICE}, {"min": 0.1, "max": 0.4}, {"Out": "sparse"}),
    "clip_by_norm": ("clip_by_norm", {"X": TWICE}, {"max_norm": 0.5}, {"Out": "sparse"}),
    "clip_by_norm below": ("clip_by_norm", {"X": TWICE}, {"max_norm": 50.0}, {"Out": "sparse"}),
    "merge_selected_rows": ("merge_selected_rows", {"X": TWICE}, {}, {"Out": "sparse"}),
    "get_tensor_from_selected_rows": (
        "get_tensor_from_selected_rows",
        {"X": TWICE},
        {},
        {"Out": "dense"},
    ),
    "elementwise_mul": ("elementwise_mul", {"X": TWICE, "Y": ONE}, {}, {"Out": "sparse"}),
    "assign": ("assign", {"X": TWICE}, {}, {"Out": "sparse"}),
    "square": ("square", {"X": TWICE}, {}, {"Out": "sparse"}),
    "sqrt": ("sqrt", {"X": Rows([3, 0], np.abs(_f(2, WIDTH)))}, {}, {"Out": "sparse"}),
    "abs": ("abs", {"X": TWICE}, {}, {"Out": "sparse"}),
}
_lamb = _update("lamb", *_ADAM, weight_decay=0.01)
OPS["lamb"] = (*_lamb[:3], {k: v for k, v in _lamb[3].items() if not k.startswith("Beta")})

# refused by 1.8.5 and here: name: (op, inputs, attributes, outputs)
REFUSED = {
    "lars_momentum": _update("lars_momentum", "Velocity", mu=0.9),
    "decayed_adagrad": _update("decayed_adagrad", "Moment"),
    "proximal_adagrad": _update("proximal_adagrad", "Moment"),
    "proximal_gd": _update("proximal_gd"),
    "dpsgd": _update("dpsgd"),
    "ftrl": (
        "ftrl",
        dict(_update("ftrl")[1], SquaredAccumulator=_table(), LinearAccumulator=_table()),
        {},
        {
            "ParamOut": "Param",
            "SquaredAccumOut": "SquaredAccumulator",
            "LinearAccumOut": "LinearAccumulator",
        },
    ),
    "elementwise_mul by a table": (
        "elementwise_mul",
        {"X": TWICE, "Y": _table()},
        {},
        {"Out": "sparse"},
    ),
    "elementwise_add": ("elementwise_add", {"X": TWICE, "Y": ONE}, {}, {"Out": "sparse"}),
    "relu": ("relu", {"X": TWICE}, {}, {"Out": "sparse"}),
    "reduce_sum": ("reduce_sum", {"X": TWICE}, {"dim": [0], "reduce_all": True}, {"Out": "dense"}),
    "mean": ("mean", {"X": TWICE}, {}, {"Out": "dense"}),
    "cast": ("cast", {"X": TWICE}, {"in_dtype": 5, "out_dtype": 6}, {"Out": "sparse"}),
    "merge_selected_rows of a tensor": (
        "merge_selected_rows",
        {"X": _table()},
        {},
        {"Out": "sparse"},
    ),
}


# -- training --------------------------------------------------------------------------------------

NAMES = {"w": 1.0, "v": 2.0}


def _start(fluid, name, *shape):
    values = np.random.RandomState(len(name) + shape[0]).rand(*shape).astype("float32")
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.NumpyArrayInitializer(values))


def _loss(fluid, rows):
    h = fluid.layers.fc(
        rows, 2, num_flatten_dims=2, param_attr=_start(fluid, "v", 4, 2), bias_attr=False
    )
    return fluid.layers.mean(fluid.layers.square(h))


def one(fluid):
    """Ids that repeat, and one that is padding."""
    ids = fluid.data("ids", [None, 3], "int64")
    return _loss(
        fluid,
        fluid.embedding(
            ids, (10, 4), is_sparse=True, padding_idx=2, param_attr=_start(fluid, "w", 10, 4)
        ),
    )


def columns(fluid):
    """layers.embedding: ids with a last dimension of one."""
    ids = fluid.data("ids", [None, 3], "int64")
    ids = fluid.layers.unsqueeze(ids, [2])
    w = _start(fluid, "w", 10, 4)
    return _loss(
        fluid, fluid.layers.embedding(ids, (10, 4), is_sparse=True, padding_idx=-1, param_attr=w)
    )


def shared(fluid):
    """Two lookups of one table."""
    ids = fluid.data("ids", [None, 3], "int64")
    a = fluid.embedding(
        ids, (10, 4), is_sparse=True, padding_idx=2, param_attr=_start(fluid, "w", 10, 4)
    )
    b = fluid.embedding(fluid.layers.flip(ids, [1]), (10, 4), is_sparse=True, param_attr="w")
    return _loss(fluid, a + b * b)


def tied(fluid):
    """A table that is looked up, and a weight too: its gradient is dense."""
    ids = fluid.data("ids", [None, 3], "int64")
    a = fluid.embedding(ids, (10, 4), is_sparse=True, param_attr=_start(fluid, "w", 10, 4))
    w = fluid.default_main_program().global_block().var("w")
    return _loss(fluid, a) + fluid.layers.mean(
        fluid.layers.square(fluid.layers.matmul(a, w, transpose_y=True))
    )


NETS = {f.__name__: f for f in (one, columns, shared, tied)}
OPTIMIZERS = {
    "SGD": lambda f, **more: f.optimizer.SGD(0.5, **more),
    "Momentum": lambda f, **more: f.optimizer.Momentum(0.2, 0.9, **more),
    "Nesterov": lambda f, **more: f.optimizer.Momentum(0.2, 0.9, use_nesterov=True, **more),
    "Adagrad": lambda f, **more: f.optimizer.Adagrad(0.2, **more),
    "Adam": lambda f, **more: f.optimizer.Adam(0.1, **more),
    "Adam lazy": lambda f, **more: f.optimizer.Adam(0.1, lazy_mode=True, **more),
    "RMSProp": lambda f, **more: f.optimizer.RMSProp(0.1, momentum=0.5, **more),
    "RMSProp centered": lambda f, **more: f.optimizer.RMSProp(0.1, centered=True, **more),
    "Lamb": lambda f, **more: f.optimizer.Lamb(0.1, **more),
}
EXTRAS = {
    "L1": lambda f: {"regularization": f.regularizer.L1Decay(0.05)},
    "L2": lambda f: {"regularization": f.regularizer.L2Decay(0.05)},
    "by value": lambda f: {"grad_clip": f.clip.GradientClipByValue(0.05)},
    "by norm": lambda f: {"grad_clip": f.clip.GradientClipByNorm(0.1)},
    "by global norm": lambda f: {"grad_clip": f.clip.GradientClipByGlobalNorm(0.1)},
    "all": lambda f: {
        "grad_clip": f.clip.GradientClipByGlobalNorm(0.1),
        "regularization": f.regularizer.L2Decay(0.05),
    },
}
TRAINING = [(net, opt, None) for net in ("one", "shared") for opt in OPTIMIZERS]
TRAINING += [
    (net, opt, extra)
    for net, opt in (("one", "Adagrad"), ("shared", "Adam lazy"))
    for extra in EXTRAS
]
TRAINING += [("shared", "SGD", extra) for extra in ("L2", "by value", "by global norm")]
TRAINING += [
    ("columns", "SGD", None),
    ("tied", "SGD", None),
    ("tied", "Adam", "L2"),
    ("tied", "Adam lazy", "by global norm"),
]


def build(fluid, net, optimizer, extra):
    """(main, startup) of a training case."""
    with fresh(fluid) as (main, startup):
        more = EXTRAS[extra](fluid) if extra else {}
        OPTIMIZERS[optimizer](fluid, **more).minimize(NETS[net](fluid))
    return main, startup


def feeds(steps=4):
    rng = np.random.RandomState(3)
    for step in range(steps):
        ids = rng.randint(0, 5 + step, (4, 3))
        ids[0] = [2, 9, 2]  # padding for some lookups; 9 is for others
        yield {"ids": ids.astype("int64")}
