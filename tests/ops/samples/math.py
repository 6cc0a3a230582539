"""Sums, scales, clips, norms and distances."""

import numpy as np

from ..sample import Sample, away_from_zero, distinct, f32, f64, ints, positive

INF = float("inf")


def unary(op, x, grad=True, skip=None, **attrs):
    return Sample(op, {"X": x}, attrs, outputs=["Out"], grad=["X"] if grad else [], skip=skip)


def scale():
    yield unary("scale", f32(2, 3))
    yield unary("scale", f32(2, 3), scale=2.5, bias=-0.5)
    yield unary("scale", f32(2, 3), scale=2.5, bias=-0.5, bias_after_scale=False)
    yield unary("scale", f64(3), scale=0.1, bias=0.7)
    yield unary("scale", ints(2, 3, low=-9, high=9), grad=False, scale=-2.5, bias=1.5)
    yield unary(
        "scale",
        ints(2, 3, low=-9, high=9, dtype="int32"),
        grad=False,
        scale=2.0,
        bias=3.0,
        bias_after_scale=False,
    )
    yield Sample(
        "scale",
        {"X": f32(2, 3), "ScaleTensor": np.array([3.5], "float32")},
        {"scale": 9.0, "bias": 1.0},
        outputs=["Out"],
        grad=["X"],
    )


def sums():
    yield Sample("sum", {"X": [f32(2, 3)]}, outputs=["Out"], grad=["X"])
    yield Sample("sum", {"X": [f32(2, 3) for _ in range(3)]}, outputs=["Out"], grad=["X"])
    yield Sample("sum", {"X": [ints(4, high=9), ints(4, high=9)]}, outputs=["Out"])
    yield Sample("sum", {"X": [f64(4), f64(4)]}, outputs=["Out"], grad=["X"])
    yield unary("mean", f32(2, 3, 4))
    yield unary("mean", f64(5))
    yield Sample("minus", {"X": f32(2, 3), "Y": f32(2, 3)}, outputs=["Out"], grad=["X", "Y"])
    one = "one element: there is no other size"
    for x, step in (
        (np.array([3], "int64"), 1.0),
        (np.array([3], "int32"), 2.7),
        (np.array([0.5], "float32"), -1.5),
    ):
        yield unary("increment", x, grad=False, step=step, skip={"unknown": one})
    for attrs in (
        {},
        {"axis": 0},
        {"axis": 1, "exclusive": True},
        {"axis": 1, "reverse": True},
        {"axis": -1, "exclusive": True, "reverse": True},
    ):
        yield unary("cumsum", f32(3, 4, 2), **attrs)
    yield unary("cumsum", ints(5, high=9), grad=False)


def bounded():
    apart = {"Min": np.array([-0.2], "float32"), "Max": np.array([0.4], "float32")}
    yield unary(
        "sign", np.array([-2, -0.5, 0, 0.5, 2], "float32"), skip={"numeric": "no derivative at 0"}
    )
    yield unary("sign", away_from_zero(2, 3))
    yield unary("clip", distinct(3, 7), min=-0.47, max=0.52)
    yield unary("clip", distinct(7, dtype="float64"), min=-0.47, max=0.52)
    yield Sample(
        "clip",
        dict(apart, X=distinct(3, 6)),
        {"min": -1.0, "max": 1.0},
        outputs=["Out"],
        grad=["X"],
    )
    yield Sample(
        "clip",
        {"X": distinct(3, 6), "Max": apart["Max"]},
        {"min": -0.3, "max": 1.0},
        outputs=["Out"],
        grad=["X"],
    )
    # at a bound the gradient is 0
    yield unary(
        "clip",
        np.array([-2, -1, 0, 1, 2], "float32"),
        min=-1.0,
        max=1.0,
        skip={"numeric": "kinks at -1, 1"},
    )
    yield unary("clip_by_norm", f32(3, 4), grad=False, max_norm=0.7)
    yield unary("clip_by_norm", f32(3, 4), grad=False, max_norm=7.0)
    yield Sample(
        "clip_by_norm",
        {"X": np.zeros([3], "float32")},
        {"max_norm": 1.0},
        outputs=["Out"],
        paddle=False,
        note="1.8.5 divides by the norm 0: NaN",
    )


def norms():
    yield unary("squared_l2_norm", f32(3, 4))
    yield unary("l1_norm", away_from_zero(3, 4))
    for attrs in (
        {},
        {"axis": 0},
        {"axis": 1, "keepdim": True},
        {"porder": 1.0},
        {"porder": 3.0, "axis": 1},
        {"porder": 1.5},
        {"epsilon": 0.1},
    ):
        far = {"numeric": "epsilon moves the gradient"} if "epsilon" in attrs else None
        yield unary("p_norm", away_from_zero(2, 3, 4), skip=far, **attrs)
    for attrs in ({"porder": INF}, {"porder": -INF, "axis": 1}, {"porder": 0.0, "axis": 0}):
        yield Sample(
            "p_norm",
            {"X": away_from_zero(2, 3, 4)},
            attrs,
            outputs=["Out"],
            grad=["X"],
            paddle=False,
            note="1.8.5 refuses these porders, and says that they will come",
        )
    yield unary("p_norm", away_from_zero(4))
    for p in (2.0, 1.0, 3.0, 1.5, INF, -INF, 0.0):
        yield pair("dist", away_from_zero(2, 3, lo=1, hi=2), f32(2, 3), p=p)
    yield pair("dist", away_from_zero(2, 3, 4, lo=1, hi=2), f32(3, 1))
    yield pair(
        "dist",
        away_from_zero(4, lo=1, hi=2),
        f32(2, 3, 4),
        p=1.5,
        skip={"unknown": "X's only dimension lies along Y's last"},
    )
    yield cos_sim((3, 4), (3, 4))
    yield cos_sim((3, 4), (1, 4))
    yield cos_sim((2, 3, 2), (2, 3, 2))


def pair(op, x, y, skip=None, **attrs):
    return Sample(op, {"X": x, "Y": y}, attrs, outputs=["Out"], grad=["X", "Y"], skip=skip)


def cos_sim(x, y):
    return Sample(
        "cos_sim",
        {"X": f32(*x), "Y": positive(*y)},
        outputs=["Out", "XNorm", "YNorm"],
        grad=["X", "Y"],
        of=["Out"],
    )


SAMPLES = [*scale(), *sums(), *bounded(), *norms()]
