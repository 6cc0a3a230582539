"""One case of the audit: an op at extreme inputs. Like sample.py, for Python 3.8 and numpy alone.

An element of the result is *equal* to Paddle's if it is the same special value (nan, an infinity, a
zero of the same sign) or an ordinary number within rounding. What differs stands in
docs/extremes.md with the reason.
"""

import zlib

import numpy as np

from ..sample import Sample

# Values at which kernels branch, clip or overflow; each is taken with both signs and, if a bound,
# with its neighbours.
BOUNDS = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 6.0, 15.0, 20.0, 24.0, 40.0, 64.0]
LARGE = [
    1e-30,
    1e-8,
    1e-5,
    0.1,
    0.25,
    0.75,
    4.0,
    9.0,
    13.0,
    17.5,
    50.0,
    88.0,
    89.0,
    100.0,
    104.0,
    710.0,
    746.0,
    1e4,
    3e7,
    1e19,
    3e38,
]
PACKET = 16  # elements: a vector of a multiple of these has no tail for a vectorised kernel


class Extreme(Sample):
    """A sample at extreme inputs.

    label       tells the cases of an op apart: "float32", "ties"
    pointwise   element i of every output depends on element i of every input alone: inputs and
    outputs of one shape, a
                vector or a column. Then 1.8.5's answer is also recorded as its kernels' scalar code
                gives it (vector code may answer otherwise to special values), and either counts.
    cotangents  {output slot: array}; default: ones if pointwise, else 1, -2, 0.5, 4 in turn (exact,
    and no two alike) rtol        what counts as rounding; default 2e-5 in float32, 1e-11 in float64
    singular    numbers are right beside the largest of all: those that are 0 in exact numbers are
    what the rounding of a library
                leaves, another one on another processor
    """

    def __init__(
        self,
        label,
        op,
        inputs,
        attrs=None,
        outputs=("Out",),
        grad=(),
        pointwise=False,
        cotangents=None,
        rtol=None,
        singular=False,
        **more,
    ):
        Sample.__init__(self, op, inputs, attrs, outputs=outputs, grad=grad, **more)
        self.label, self.pointwise, self.rtol, self.singular = label, pointwise, rtol, singular
        self.cotangents = dict(cotangents or {})

    @property
    def name(self):
        return "%s %s" % (self.op, self.label)

    def cotangent(self, slot, index, shape, dtype):
        if slot in self.cotangents:
            return np.asarray(self.cotangents[slot], dtype).reshape(shape)
        count = int(np.prod(shape))
        return (
            (np.ones(count) if self.pointwise else np.resize([1.0, -2.0, 0.5, 4.0], count))
            .astype(dtype)
            .reshape(shape)
        )

    def program(self):
        flows = [(slot, np.asarray(c).tolist()) for slot, c in sorted(self.cotangents.items())]
        return "%s %s %s" % (Sample.program(self), self.pointwise, flows)

    def digest(self):
        crc = Sample.digest(self)
        for slot in sorted(self.cotangents):
            crc = zlib.crc32(
                slot.encode() + np.ascontiguousarray(self.cotangents[slot]).tobytes(), crc
            )
        return crc & 0xFFFFFFFF


def near(value, dtype):
    """a value and its neighbours"""
    value = np.array(value, dtype)
    far = np.array(np.inf, dtype)
    return [np.nextafter(value, -far), value, np.nextafter(value, far)]


def specials(dtype, bounds=(), without=()):
    """A vector of everything that a float may be: zeros, a subnormal, bounds and their neighbours,
    the greatest, inf, nan.
    """
    info = np.finfo(dtype)
    subnormal = 1e-40 if dtype == "float32" else 1e-310
    found = [v for b in list(BOUNDS) + list(bounds) if b not in without for v in near(b, dtype)]
    found += (
        LARGE
        + [subnormal, float(info.tiny), float(info.eps)]
        + ([] if dtype == "float32" else [1e200, float(info.max)])
    )
    vector = [0.0, -0.0, np.nan, np.inf, -np.inf]
    for v in found:
        vector += [v, -v]
    return whole(np.array(vector, dtype))


def few(dtype):
    """Some twenty such values, for pairs of them."""
    tiny = 1e-40 if dtype == "float32" else 1e-310
    vector = [
        0.0,
        -0.0,
        0.5,
        1.0,
        2.0,
        3.0,
        7.5,
        1e-30,
        64.0,
        1e4,
        3e38,
        -0.5,
        -1.0,
        -2.0,
        -3.0,
        -1e4,
        -3e38,
        np.inf,
        -np.inf,
        np.nan,
    ]
    return np.array(
        vector + [tiny, -tiny, 1e-9, float(np.nextafter(np.array(1, dtype), np.array(2, dtype)))],
        dtype,
    )


def pairs(dtype):
    """Two vectors that pair everything in few() with everything."""
    v = few(dtype)
    return np.repeat(v, len(v)), np.tile(v, len(v))


def limits(dtype):
    """An integer type at its limits and around zero."""
    info = np.iinfo(dtype)
    vector = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7, 100]
    return np.array(vector if info.min == 0 else vector + [-1, -2, -3, -7, -100], dtype)


def integer_pairs(dtype, nonzero=False):
    """Pairs of those; `nonzero`: to divide by, without zero and without -1, at which the processor
    traps.
    """
    v = limits(dtype)
    second = v[(v != 0) & (v.astype("float64") != -1)] if nonzero else v
    return whole(np.repeat(v, len(second))), whole(np.tile(second, len(v)))


def whole(vector):
    """A vector filled up with ones to a multiple of PACKET."""
    return np.concatenate([vector, np.ones(-len(vector) % PACKET, vector.dtype)])


def unary(
    op,
    attrs=None,
    bounds=(),
    label="",
    grad=True,
    dtypes=("float32", "float64"),
    without=(),
    **more,
):
    """Cases of a pointwise op of X: all special values; then a few with upstream gradients of 0,
    inf and nan.

    without: bounds to leave out, where the last digit decides and it is the compiler that decides
    it.
    """
    cases = []
    for dtype in dtypes:
        x, upstream = specials(dtype, bounds, without), [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38]
        probe = np.array([0.0, -2.0, 0.5, 3.0, 100.0, -100.0, np.inf, -np.inf, np.nan], dtype)
        ct = np.concatenate([np.ones(len(x)), np.repeat(upstream, len(probe))])
        x = np.concatenate([x, np.tile(probe, len(upstream))])
        rest = -len(x) % PACKET
        x, ct = np.concatenate([x, np.ones(rest, dtype)]), np.concatenate([ct, np.ones(rest)])
        cases.append(
            Extreme(
                (dtype + " " + label).strip(),
                op,
                {"X": x},
                attrs,
                grad=["X"] if grad else [],
                pointwise=True,
                cotangents={"Out": ct} if grad else None,
                **more,
            )
        )
    return cases


def binary(
    op, attrs=None, label="", grad=True, slots=("X", "Y"), dtypes=("float32", "float64"), **more
):
    """Cases of a pointwise op of two inputs: each special value beside each."""
    cases = []
    for dtype in dtypes:
        x, y = pairs(dtype)
        cases.append(
            Extreme(
                (dtype + " " + label).strip(),
                op,
                {slots[0]: x, slots[1]: y},
                attrs,
                grad=list(slots) if grad is True else list(grad or ()),
                pointwise=True,
                **more,
            )
        )
    return cases


def integers(
    op, arity=1, attrs=None, dtypes=("int32", "int64", "uint8"), nonzero=False, label="", **more
):
    """Cases of a pointwise op of one or two integer inputs at their limits."""
    cases = []
    for dtype in dtypes:
        inputs = (
            {"X": whole(limits(dtype))}
            if arity == 1
            else dict(zip("XY", integer_pairs(dtype, nonzero)))
        )
        cases.append(
            Extreme((dtype + " " + label).strip(), op, inputs, attrs, pointwise=True, **more)
        )
    return cases
