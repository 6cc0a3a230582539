"""Resizing: every method, layout and rule for positions; sizes by attributes, by scale and by
tensors.
"""

import numpy as np

from ..sample import LATER, Sample, f32, f64, ints


class Kind(object):
    def __init__(self, name, rank, later):
        self.op, self.method, self.axes = (
            name + ("_interp_v2" if later else "_interp"),
            name,
            rank - 2,
        )
        self.later = later
        self.shape = (2, 2) + {3: (4,), 4: (3, 4), 5: (2, 3, 4)}[rank]
        self.last = (self.shape[0],) + self.shape[2:] + (2,)

    def size(self, d, h, w):
        return dict([("out_d", d), ("out_h", h), ("out_w", w)][3 - self.axes :])

    def scale(self, *dhw):
        return {"scale": list(dhw[3 - self.axes :]) if self.later else dhw[2]}

    def sample(self, attrs, x=None, grad=("X",), **tensors):
        x = f32(*self.shape) if x is None else x
        attrs = dict(attrs, interp_method=self.method)
        return Sample(
            self.op,
            dict(tensors, X=x),
            attrs,
            ["Out"],
            grad=grad,
            paddle=LATER if self.later else True,
        )


def rules(kind):
    """attributes that say where an output position lies"""
    yield {"align_corners": True}
    yield {"align_corners": False, "align_mode": 1}
    if kind.method not in ("nearest", "bicubic"):
        yield {"align_corners": False, "align_mode": 0}


def plain(kind):
    for rule in rules(kind):
        yield kind.sample(dict(rule, **kind.size(3, 5, 7)))
        yield kind.sample(dict(rule, **kind.size(1, 2, 3)))
        # 3.3.1 places a single cell of linear_interp_v2 elsewhere in its gradient
        other = kind.op == "linear_interp_v2" and rule.get("align_mode") == 0
        yield kind.sample(dict(rule, **kind.size(1, 1, 1)), grad=() if other else ("X",))
        yield kind.sample(dict(rule, **kind.scale(1.5, 2.0, 3.0)))
        yield kind.sample(dict(rule, **kind.scale(0.6, 0.7, 0.7)))
        yield kind.sample(dict(rule, **kind.scale(1.3, 1.7, 1.3)))


def last(kind):
    # 1.8.5 refuses bicubic_interp with channels last; later ones take it
    if kind.method == "bicubic" and not kind.later:
        return
    for rule in rules(kind):
        yield kind.sample(dict(rule, data_layout="NHWC", **kind.size(3, 6, 8)), f32(*kind.last))


def by_tensor(kind):
    wanted = [3, 5, 7][3 - kind.axes :]
    sizes = [np.array([n], "int32") for n in wanted]
    rule = dict(list(rules(kind))[-1], **kind.size(-1, -1, -1))
    yield kind.sample(rule, OutSize=np.array(wanted, "int32"))
    yield kind.sample(rule, SizeTensor=sizes)
    yield kind.sample(rule, Scale=np.array([1.7], "float32"))
    if kind.later and kind.axes > 1:
        yield kind.sample(rule, Scale=np.array([1.7, 1.2, 1.4][3 - kind.axes :], "float32"))
    # which of the two is the ratio between positions? (a smaller scale makes Paddle 3.3.1 read
    # beyond the input)
    scaled = dict(rule, **kind.scale(1.7, 2.0, 2.0))
    yield kind.sample(scaled, OutSize=np.array(wanted, "int32"))
    # with both, 3.3.1 goes by SizeTensor but its gradient by scale
    yield kind.sample(scaled, grad=() if kind.later else ("X",), SizeTensor=sizes)


def every(kind):
    return [s for part in (plain, last, by_tensor) for s in part(kind)]


EARLY = [
    Kind(n, r, False)
    for n, r in (("nearest", 4), ("bilinear", 4), ("trilinear", 5), ("bicubic", 4))
]
LATE = [Kind("linear", 3, True), Kind("nearest", 5, True)] + [
    Kind(k.method, k.axes + 2, True) for k in EARLY
]

SAMPLES = [s for kind in EARLY + LATE for s in every(kind)]
SAMPLES += [
    EARLY[0].sample({"out_h": 1, "out_w": 1}, f64(1, 1, 2, 2)),
    EARLY[1].sample({"out_h": 3, "out_w": 5}, f64(1, 1, 2, 2)),
]


def integers():
    """Of uint8 the cut after the point shows how a sum was rounded."""
    for corners, mode in ((True, 1), (False, 0), (False, 1)):
        for kind, shape, sizes in (
            ("nearest", (1, 1, 3, 4), {"out_h": 5, "out_w": 7}),
            ("bilinear", (1, 2, 3, 4), {"out_h": 7, "out_w": 9}),
            ("trilinear", (1, 1, 2, 3, 4), {"out_d": 3, "out_h": 5, "out_w": 7}),
        ):
            attrs = dict(sizes, interp_method=kind, align_corners=corners, align_mode=mode)
            for x in (ints(*shape, high=256, dtype="uint8"), np.full(shape, 255, "uint8")):
                yield Sample(kind + "_interp", {"X": x}, attrs, ["Out"])


def positions():
    """float64: positions and weights are float32 or float64 as in the kernels."""
    for kind in ("bilinear", "bicubic"):
        yield Sample(
            kind + "_interp",
            {"X": f64(1, 1, 3, 4)},
            {
                "out_h": 7,
                "out_w": 9,
                "interp_method": kind,
                "align_corners": False,
                "align_mode": 0,
            },
            ["Out"],
            grad=["X"],
            tol=1e-12,
            grad_tol=1e-12,
        )
    yield Sample(
        "trilinear_interp",
        {"X": f64(1, 1, 2, 3, 4)},
        {
            "out_d": 3,
            "out_h": 5,
            "out_w": 7,
            "interp_method": "trilinear",
            "align_corners": False,
            "align_mode": 0,
        },
        ["Out"],
        grad=["X"],
        tol=1e-12,
        grad_tol=1e-12,
    )


SAMPLES += [*integers(), *positions()]
