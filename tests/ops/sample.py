"""One sample is one op with inputs, attributes and what to compare; the same in Paddle 1.8.5 and
here.

Imported by Python 3.8 (the recorder, on the real Paddle) and by newer ones (the tests), so it needs
numpy only, and every array is a function of the call that makes it: kind, arguments and how often
that call was made in its module. A new sample therefore leaves the arrays of the others as they
are, unless it repeats an earlier call before them.
"""

import collections
import json
import sys
import zlib

import numpy as np

LATER = "3.3.1"


class Sample(object):
    """A single op to run.

    inputs   {slot: array, or list of arrays for a duplicable slot}
    attrs    attributes; those left out have the op's defaults
    outputs  slots to compare: ["Out", "Scale*3"] ("*3": a duplicable slot with three variables) or
    {slot: count}.
             Outputs that are neither named here nor dispensable exist too, but are not compared.
    grad     input slots to differentiate (all variables of a duplicable one)
    of       output slots that the gradient starts from; default: all compared float outputs
    lod      {input slot: recursive sequence lengths}
    inplace  {output slot: input slot} where the op insists on writing its input
    paddle   False: Paddle 1.8.5 on the CPU cannot run it, for the reason in `note`; LATER: an op
    type that only later
             Paddles have, recorded with 3.3.1
    rows     {output slot: number of rows} of an output whose size is data, so that more rows than
    that are computed skip     {check: reason} of checks that cannot hold: "numeric" (Paddle's
    gradient is not the derivative, or there
             is none here), "unknown" (no first dimension of an input can be left open)
    """

    def __init__(
        self,
        op,
        inputs,
        attrs=None,
        outputs=None,
        grad=None,
        tol=None,
        grad_tol=None,
        note="",
        paddle=True,
        of=None,
        lod=None,
        inplace=None,
        skip=None,
        rows=None,
    ):
        if not outputs:
            raise ValueError("%s: name the outputs to compare" % op)
        if not paddle and not note:
            raise ValueError("%s: paddle=False needs its reason in note" % op)
        self.op, self.inputs, self.attrs = op, dict(inputs), dict(attrs or {})
        self.outputs = counts(outputs)
        self.grad, self.of = list(grad or ()), None if of is None else list(of)
        self.tol, self.grad_tol, self.note, self.paddle = tol, grad_tol, note, paddle
        self.lod, self.inplace = dict(lod or {}), dict(inplace or {})
        self.rows = dict(rows or {})
        self.skip = dict(skip or {})
        if set(self.skip) - {"numeric", "unknown"}:
            raise ValueError("%s: no such check: %s" % (op, ", ".join(sorted(self.skip))))
        for slot in self.grad:
            if slot not in self.inputs:
                raise ValueError("%s: no input %s to differentiate" % (op, slot))

    def __repr__(self):
        return "Sample(%s, %s)" % (
            self.op,
            ", ".join("%s=%s" % i for i in sorted(self.attrs.items())),
        )

    def variables(self, slot):
        """[(variable name, array)] of an input slot: X, or X_0, X_1 if it is duplicable"""
        value = self.inputs[slot]
        if not isinstance(value, (list, tuple)):
            return [(slot, value)]
        return [("%s_%d" % (slot, i), v) for i, v in enumerate(value)]

    def lod_of(self, slot, index):
        """sequence lengths of variable `index` of the slot, or None"""
        lod = self.lod.get(slot)
        return lod[index] if lod and isinstance(self.inputs[slot], (list, tuple)) else lod

    def starts_gradient(self, slot, array):
        return array.dtype.kind in "fc" and (self.of is None or slot in self.of)

    def cotangent(self, slot, index, shape, dtype):
        """the gradient that flows into compared float output number `index` (counted over all
        variables, in order)
        """
        return cotangent(shape, index, dtype)

    def program(self):
        """what the program depends on that computes this sample: two for which it is equal differ
        in values of inputs alone
        """
        plain = lambda v: v.item() if hasattr(v, "item") else str(v)
        text = [
            self.op,
            self.attrs,
            sorted(self.outputs.items()),
            self.grad,
            self.of,
            self.lod,
            self.inplace,
            self.rows,
        ]
        specs = [
            (name, str(np.asarray(a).dtype), np.shape(a))
            for slot in sorted(self.inputs)
            for name, a in self.variables(slot)
        ]
        return json.dumps([text, specs], sort_keys=True, default=plain)

    def digest(self):
        """changes whenever a recording of this sample would be out of date"""
        plain = lambda v: v.item() if hasattr(v, "item") else str(v)
        text = [
            self.op,
            self.attrs,
            sorted(self.outputs.items()),
            self.grad,
            self.of,
            self.lod,
            self.inplace,
        ]
        crc = zlib.crc32(json.dumps(text, sort_keys=True, default=plain).encode())
        for slot in sorted(self.inputs):
            for name, array in self.variables(slot):
                array = np.ascontiguousarray(array)
                crc = zlib.crc32(
                    ("%s%s%s" % (name, array.dtype, np.shape(array))).encode() + array.tobytes(),
                    crc,
                )
        return crc & 0xFFFFFFFF


def counts(outputs):
    """{slot: None, or the number of variables of a duplicable slot}"""
    if isinstance(outputs, dict):
        return dict(outputs)
    table = collections.OrderedDict()
    for entry in outputs:
        slot, star, number = entry.partition("*")
        table[slot] = int(number) if star else None
    return table


def cotangent(shape, index, dtype="float32"):
    """numbers in [-1, 1), other ones for every index"""
    source = generator(["cotangent", list(shape), index])
    real = source.uniform(-1, 1, tuple(shape))
    return (
        real + 1j * source.uniform(-1, 1, tuple(shape)) if np.dtype(dtype).kind == "c" else real
    ).astype(dtype)


def generator(key):
    return np.random.RandomState(zlib.crc32(json.dumps(key).encode()) & 0x7FFFFFFF)


def rng(seed, *key):
    """the random source of one helper call; without a seed the calling module counts its equal
    calls
    """
    if seed is not None:
        return np.random.RandomState(seed)
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    calls = frame.f_globals.setdefault("_sample_calls", {})
    text = json.dumps(key, default=float)
    calls[text] = calls.get(text, 0) + 1
    return generator([text, calls[text]])


def uniform(shape, lo=-1.0, hi=1.0, dtype="float32", seed=None):
    return rng(seed, "uniform", shape, lo, hi, dtype).uniform(lo, hi, shape).astype(dtype)


def f32(*shape, lo=-1.0, hi=1.0, seed=None):
    return uniform(shape, lo, hi, "float32", seed)


def f64(*shape, lo=-1.0, hi=1.0, seed=None):
    return uniform(shape, lo, hi, "float64", seed)


def ints(*shape, high, low=0, dtype="int64", seed=None):
    """integers in [low, high)"""
    return rng(seed, "ints", shape, low, high, dtype).randint(low, high, shape).astype(dtype)


def bools(*shape, seed=None):
    return rng(seed, "bools", shape).randint(0, 2, shape).astype("bool")


def distinct(*shape, lo=-1.0, hi=1.0, dtype="float32", seed=None):
    """evenly spaced values in random order: no ties, for max, top_k and sort"""
    order = rng(seed, "distinct", shape, lo, hi, dtype).permutation(int(np.prod(shape)))
    return np.linspace(lo, hi, order.size)[order].reshape(shape).astype(dtype)


def positive(*shape, lo=0.2, hi=2.0, dtype="float32", seed=None):
    return uniform(shape, lo, hi, dtype, seed)


def away_from_zero(*shape, lo=0.15, hi=1.0, dtype="float32", seed=None):
    """lo <= |x| <= hi, for functions with a kink at 0"""
    source = rng(seed, "away_from_zero", shape, lo, hi, dtype)
    return (source.uniform(lo, hi, shape) * (source.randint(0, 2, shape) * 2 - 1)).astype(dtype)
