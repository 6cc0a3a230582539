"""Draws nets by trying: each line is built and run by the real Paddle, and what it refuses is kept
as a refusal. Python 3.8.

A sampler (see kinds/) is a function of the Draw: it returns an expression (or a script that binds
RESULT), made of variables that are there or of new ones that it asks for. What they hold is known,
since the net so far has been run.
"""

from __future__ import annotations

import json
import random

import numpy as np

from . import nets

SAMPLERS = {}  # name: (function, weight)


# 1.8.5's gradient of what a while_loop carries is wrong.
NOT_DIFFERENTIATED = ("while_loop",)


class Skip(Exception):
    """The sampler cannot be used on what is there."""


def kind(weight=1.0, name=None):
    def register(f):
        SAMPLERS[name or f.__name__] = (f, weight)
        return f

    return register


class Var:
    """What is known of a variable: the expression that names it, its value, the lengths of its
    sequences, what is declared.
    """

    def __init__(self, name, value, lod, shape, dtype, differentiable):
        self.name, self.value, self.lod, self.shape, self.dtype = name, value, lod, shape, dtype
        self.differentiable = differentiable

    def __str__(self):
        return self.name

    rank = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.shape)

    def known(self, *axes):
        """The declared sizes of these axes; Skip if one is open."""
        found = [self.shape[a] for a in axes]
        if any(s < 0 for s in found):
            raise Skip
        return found


class Draw:
    def __init__(self, fluid, seed, attempt=lambda text: None):
        self.fluid, self.seed, self.attempt = fluid, seed, attempt
        self.r = random.Random(seed)
        self.batch = self.r.choice([1, 2, 3, 4])
        self.vars, self.count = [], 0
        self.net = {
            "seed": seed,
            "lines": [],
            "train": [],
            "feeds": {},
            "fetch": [],
            "runs": [["train", 0]],
        }
        self.pending, self.pending_feeds, self.pending_vars = [], {}, []
        self.refused, self.used = [], []
        self.lods = {}
        self.wide = self.r.random() < 0.12  # a net in float64
        self.float_dtype = "float64" if self.wide else "float32"
        self.built = None

    # what samplers draw

    def chance(self, p):
        return self.r.random() < p

    def one(self, *choices):
        return self.r.choice(choices)

    def of(self, choices):
        return self.r.choice(list(choices))

    def number(self, low, high):
        return self.r.randint(low, high)

    def real(self, low, high):
        return round(self.r.uniform(low, high), 3)

    def fits(self, v, dtype, rank, domain, lod, where):
        if dtype is not None and v.dtype not in ([dtype] if isinstance(dtype, str) else dtype):
            return False
        if rank is not None and v.rank not in ([rank] if isinstance(rank, int) else rank):
            return False
        if lod is not None and len(v.lod) != lod:
            return False
        if (
            domain is not None
            and v.value.size
            and not (domain[0] <= v.value.min() and v.value.max() <= domain[1])
        ):
            return False
        return where is None or where(v)

    def find(self, dtype=None, rank=None, domain=None, lod=None, where=None, fresh=0.25):
        """A variable that is there and fits, the later ones likelier; None if there is none, or
        sometimes all the same.
        """
        fit = [
            v
            for v in self.vars + self.pending_vars
            if self.fits(v, dtype, rank, domain, lod, where)
        ]
        if not fit or self.chance(fresh):
            return None
        return self.r.choices(fit, [1 + i for i in range(len(fit))])[0]

    def floats(
        self, rank=None, shape=None, domain=(-30, 30), lod=None, where=None, fresh=0.25, **new
    ):
        """A float variable: one that is there, or a new one of the given shape (or of the given
        rank).
        """
        ranks = rank if rank is not None else (1, 2, 3, 4)
        found = None
        if shape is None or where is not None:
            found = self.find(self.float_dtype, ranks, domain, lod, where, fresh)
        if found is not None:
            return found
        if shape is None:
            shape = self.shape(ranks if isinstance(ranks, int) else self.of(ranks))
        low, high = max(domain[0], -1.5), min(domain[1], 1.5)
        return self.new(
            shape, self.float_dtype, ["uniform", low, max(high, low + 0.01)], lod=lod, **new
        )

    def ints(
        self,
        low,
        high,
        shape=None,
        rank=None,
        dtype="int64",
        lod=None,
        where=None,
        fresh=0.6,
        **new,
    ):
        """An integer variable within [low, high]."""
        found = None
        if shape is None or where is not None:
            found = self.find(dtype, rank, (low, high), lod, where, fresh)
        if found is not None:
            return found
        ranks = rank or (1, 2, 3)
        shape = shape or self.shape(ranks if isinstance(ranks, int) else self.of(ranks))
        return self.new(shape, dtype, ["ints", low, high + 1], lod=lod, **new)

    def bools(self, shape):
        return self.new(shape, "bool", ["ints", 0, 2])

    def shape(self, rank, low=1, high=5):
        return [self.batch if i == 0 and rank > 1 else self.number(low, high) for i in range(rank)]

    def lengths(self, level, rows=None):
        """Lengths of sequences; the same ones for all that asks for the same level, half of the
        time.
        """
        known = self.lods.get(level)
        if known is not None and self.chance(0.7):
            return known
        lod = []
        count = self.number(1, 3)
        for _ in range(level):
            lod.append([self.number(1, 4) for _ in range(count)])
            count = sum(lod[-1])
        self.lods[level] = lod
        return lod

    def new(self, shape, dtype, spec, lod=None, lengths=None, sg=None, open=None, how=None):
        """A new input: a feed of fluid.data or layers.data, or a parameter. `lod`: levels; then
        shape[0] is what they have.
        """
        self.count += 1
        name = "x%d" % self.count
        shape = list(shape)
        if lod:
            lengths = lengths or self.lengths(lod)
            shape[0] = sum(lengths[-1])
        level = len(lengths or [])
        frozen = self.chance(0.2) if sg is None else sg
        if dtype[:5] != "float":
            frozen = True if sg is None else sg
        how = how or self.one("fluid", "layers", "layers", "parameter")
        if how == "parameter" and (
            level or dtype[:5] != "float" or spec[0] != "uniform" or not shape
        ):
            how = "fluid"
        if how == "parameter" and not (spec[1] < 0 < spec[2]):
            how = "layers"
        if how == "parameter":
            more = (
                ", default_initializer=I.Constant(%s)" % self.real(-1, 1)
                if self.chance(0.3)
                else ""
            )
            line = "%s = L.create_parameter(%s, '%s'%s)" % (name, shape, dtype, more)
        else:
            is_open = (
                open if open is not None else (bool(level) or (len(shape) > 1 and self.chance(0.4)))
            )
            declared = [-1] + shape[1:] if is_open and shape else shape
            if how == "layers":
                if is_open and len(shape) > 1 and self.chance(0.7):
                    args = "%s" % shape[1:]
                else:
                    args = "%s, append_batch_size=False" % declared
                line = "%s = L.data('%s', %s, dtype='%s', lod_level=%d, stop_gradient=%s)" % (
                    name, name, args, dtype, level, frozen,
                )  # fmt: skip
            else:
                line = "%s = fluid.data('%s', %s, dtype='%s', lod_level=%d)" % (
                    name,
                    name,
                    declared,
                    dtype,
                    level,
                )
                if not frozen:
                    line += "\n%s.stop_gradient = False" % name
            self.pending_feeds[name] = {
                "shape": shape,
                "dtype": dtype,
                "lod": lengths or [],
                "values": spec,
            }
        self.pending.append(line)
        if how == "parameter":
            value, declared = None, shape
            value = np.zeros(shape, dtype)  # set when the line has been run
            found = Var(name, value, [], shape, dtype, True)
        else:
            value = nets.values(self.seed, name, self.pending_feeds[name], 0)
            found = Var(name, value, lengths or [], declared, dtype, not frozen)
        self.pending_vars.append(found)
        return found

    # arguments that many layers take

    def act(self):
        return self.one(
            None,
            None,
            "relu",
            "tanh",
            "sigmoid",
            "softmax",
            "relu6",
            "leaky_relu",
            "swish",
            "square",
            "hard_swish",
        )

    def attr(self, bias=False, false=True):
        """A param_attr or bias_attr."""
        r = self.r.random()
        if r < 0.5:
            return "None"
        if false and r < 0.6:
            return "False"
        if not bias and self.chance(0.06):
            return "fluid.WeightNormParamAttr(dim=%s)" % self.one(None, 0, 1)
        parts = []
        if self.chance(0.4):
            parts.append("learning_rate=%s" % self.one(0.25, 0.5, 2.0))
        if self.chance(0.4):
            parts.append(
                "initializer="
                + self.one(
                    "I.Constant(%s)" % self.real(-1, 1),
                    "I.Normal(0., 1.)",
                    "I.Xavier()",
                    "I.MSRA()",
                    "I.Uniform(-0.5, 0.5)",
                    "I.TruncatedNormal(0., .5)",
                )
            )
        if self.chance(0.4):
            parts.append(
                "regularizer=fluid.regularizer.%s(%s)"
                % (self.one("L1Decay", "L2Decay"), self.real(0.01, 0.3))
            )
        if self.chance(0.2):
            parts.append("trainable=False")
        if self.chance(0.15):
            self.count += 1
            parts.append("name='p%d'" % self.count)
        return "P(%s)" % ", ".join(parts)

    def args(self, **options):
        """Some of these keyword arguments; values are source or plain."""
        parts = []
        for name, value in options.items():
            if value is not None:
                parts.append("%s=%s" % (name, value))
        return "".join(", " + p for p in parts)

    # the trying

    def rebuild(self):
        self.built = nets.Built(self.fluid, self.net, train=False)

    def evaluate(self, expressions):
        """The values of variables of the net so far, with their LoDs."""
        scope = self.fluid.Scope()
        with self.fluid.scope_guard(scope):
            nets.start(self.built, scope)
            exe = self.fluid.Executor(self.fluid.CPUPlace())
            known = nets.feed(self.fluid, self.net, 0)
            names = [self.built.variable(e).name for e in expressions]
            got = exe.run(
                self.built.main, feed=known, fetch_list=names, scope=scope, return_numpy=False
            )
        return [nets.plain(v) for v in got]

    def step(self, name=None):
        """Tries one sampler; returns whether the net has grown."""
        names = list(SAMPLERS)
        name = name or self.r.choices(names, [SAMPLERS[n][1] for n in names])[0]
        self.pending, self.pending_feeds, self.pending_vars = [], {}, []
        try:
            expression = SAMPLERS[name][0](self)
        except Skip:
            return False
        if expression is None:
            return False
        self.count += 1
        result = "o%d" % self.count
        text = (
            expression.replace("RESULT", result)
            if "RESULT" in expression
            else "%s = %s" % (result, expression)
        )
        before = dict(self.net, lines=list(self.net["lines"]), feeds=dict(self.net["feeds"]))
        self.net["feeds"].update(self.pending_feeds)
        self.attempt(
            json.dumps([self.seed, self.net["lines"], self.pending, text, self.net["feeds"]])
        )
        lines = self.pending + [text]
        try:
            if self.built is None:
                self.rebuild()
            for line in lines:
                self.built.more(line)
                self.net["lines"].append(line)
            outs = self.outputs(result)
            params = [v.name for v in self.pending_vars if v.name not in self.net["feeds"]]
            got = self.evaluate([e for e, _ in outs] + params)
        except Exception as exc:
            refusal = dict(
                self.net,
                lines=before["lines"] + lines,
                error=[type(exc).__name__, last_line(exc)],
                sampler=name,
            )
            self.refused.append(refusal)
            self.net = before
            self.built = None
            return False
        for v in self.pending_vars:
            if v.name in params:
                v.value = got[len(outs) + params.index(v.name)][0]
        self.vars += self.pending_vars
        for (expression, var), (value, lod) in zip(outs, got):
            self.net["fetch"].append(expression)
            usable = value.dtype.kind in "biu" or (
                np.isfinite(value).all() and np.abs(value).max(initial=0) < 1e4
            )
            if value.dtype.kind != "O" and usable and value.size:
                differentiable = not var.stop_gradient and name not in NOT_DIFFERENTIATED
                self.vars.append(
                    Var(expression, value, lod, list(var.shape), str(value.dtype), differentiable)
                )
        self.used.append(name)
        return True

    def outputs(self, result):
        """[[expression, variable]] of all tensors that a script has bound to its result."""
        found = []

        def walk(expression, value):
            if isinstance(value, (list, tuple)):
                for i, v in enumerate(value):
                    walk("%s[%d]" % (expression, i), v)
            elif isinstance(value, self.fluid.framework.Variable):
                if value.type == self.fluid.core.VarDesc.VarType.LOD_TENSOR:
                    found.append((expression, value))

        walk(result, self.built.names.get(result))
        return found


def last_line(exc):
    lines = [line for line in str(exc).strip().split("\n") if line.strip()]
    for i, line in enumerate(lines):
        if line.startswith("Error Message Summary"):
            return " ".join(lines[i + 2 :])[:300]
    return lines[-1].strip()[:300] if lines else ""
