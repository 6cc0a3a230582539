"""A drawn net: how it is built and run, by any module that is like Fluid, and what is kept of it.

A net is a dict (JSON can hold it): `seed`, `lines` (the forward script), `train` (lines behind it,
maybe none), `feeds` {name: what is fed}, `fetch` (expressions whose values are wanted), `runs`
([program, step] one after another). Works with Python 3.8.
"""

from __future__ import annotations

import contextlib
import warnings
import zlib

import numpy as np

RANDOM_OPS = ("uniform_random", "gaussian_random", "truncated_gaussian_random")


def random_state(*parts):
    return np.random.RandomState(zlib.crc32(":".join(map(str, parts)).encode()))


def values(seed, name, spec, step):
    """What is fed to `name` in this step: drawn from the net's seed, or the list that stands there."""
    kind, *args = spec["values"]
    shape = tuple(spec["shape"])
    r = random_state(seed, name, step)
    if kind == "list":
        v = np.array(args[0])
    elif kind == "uniform":
        v = r.uniform(args[0], args[1], shape)
    elif kind == "ints":
        v = r.randint(args[0], args[1], shape)
    else:
        raise ValueError(kind)
    return v.astype(spec["dtype"]).reshape(shape)


def feed(fluid, net, step, nudge=0.0):
    """The arrays and tensors of a step; with a nudge every float is moved by about as much of
    itself.
    """
    found = {}
    for name, spec in net["feeds"].items():
        v = values(net["seed"], name, spec, step)
        if nudge and v.dtype.kind == "f":
            v = (v * (1 + nudge * random_state("nudge", name).uniform(-1, 1, v.shape))).astype(
                v.dtype
            )
        found[name] = (
            fluid.create_lod_tensor(v, spec["lod"], fluid.CPUPlace()) if spec.get("lod") else v
        )
    return found


@contextlib.contextmanager
def fresh(fluid):
    """New programs, names and name scopes."""
    if fluid.__name__ == "fluidjax":
        from fluidjax.graph import name_scope

        scopes = name_scope.fresh_name_scopes()
    else:
        fluid.framework._name_scope = fluid.framework.NameScope()
        fluid.clip._clip_global_norm_group = None
        scopes = contextlib.nullcontext()
    main, startup = fluid.Program(), fluid.Program()
    with scopes, fluid.unique_name.guard(), fluid.program_guard(main, startup):
        yield main, startup


class Built:
    """A net's programs, and the names that its script has bound."""

    def __init__(self, fluid, net, train=True):
        self.fluid, self.net = fluid, net
        self.names = {
            "fluid": fluid,
            "L": fluid.layers,
            "I": fluid.initializer,
            "P": fluid.ParamAttr,
            "N": fluid.nets,
            "np": np,
        }
        with fresh(fluid) as (self.main, self.startup), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.names["main"] = self.main
            for line in net["lines"]:
                self.execute(line)
            self.test = (
                self.main.clone(for_test=True) if any(p == "test" for p, _ in net["runs"]) else None
            )
            for line in net["train"] if train else ():
                self.execute(line)

    def execute(self, line):
        exec(compile(line, "net %d" % self.net["seed"], "exec"), self.names)

    def more(self, line):
        """A further line, in the programs that are there."""
        with self.fluid.program_guard(self.main, self.startup), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.execute(line)

    def variable(self, expression):
        return eval(expression, self.names)


def initial(seed, name, value, random, trainable):
    """What a parameter is set to: nothing of a framework's random numbers, and no zeros and ones
    that hide what is exchanged.
    """
    r = random_state(seed, name, "parameter")
    if value.dtype.kind != "f" or not value.size:
        return value
    if random:
        return r.uniform(-0.6, 0.6, value.shape).astype(value.dtype)
    return (value + r.uniform(-0.2, 0.2, value.shape)).astype(value.dtype) if trainable else value


def tensor_of(fluid, scope, name):
    var = scope.find_var(name)
    if var is None:
        return None
    try:
        return np.array(var.get_tensor())
    except Exception:  # a reader, or rows: not kept
        return None


def start(built, scope, nudge=0.0):
    """Runs the startup program and sets the parameters; returns what it set that is not random."""
    fluid, net = built.fluid, built.net
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(built.startup, scope=scope)
    ops = built.startup.global_block().ops
    copies = {
        op.output("Out")[0]: op.input("X")[0] for op in ops if op.type == "assign"
    }  # a Lookahead's slow parameters
    drawn = {n for op in ops if op.type in RANDOM_OPS for n in op.output("Out")}
    for op in ops:  # what follows from random numbers: copies, the norms of WeightNormParamAttr
        if drawn & set(op.input_arg_names):
            drawn |= set(op.output_arg_names)
    made = {}
    for name, var in sorted(built.startup.global_block().vars.items()):
        if not var.persistable:
            continue
        v = tensor_of(fluid, scope, name)
        if v is None or v.dtype == object:
            continue
        if name not in drawn:
            made[name] = v
        v = initial(
            net["seed"], copies.get(name, name), v, name in drawn, getattr(var, "trainable", False)
        )
        if nudge and v.dtype.kind == "f":
            v = (v * (1 + nudge * random_state("nudge", name).uniform(-1, 1, v.shape))).astype(
                v.dtype
            )
        scope.find_var(name).get_tensor().set(v, fluid.CPUPlace())
    return made


def plain(value):
    """A fetched value as [array, lengths of its sequences]."""
    if isinstance(value, (list, tuple)):
        return [np.array(list(map(len, value))), []]
    lod = value.recursive_sequence_lengths() if hasattr(value, "recursive_sequence_lengths") else []
    return [np.array(value), [list(map(int, level)) for level in lod]]


def run(built, nudge=0.0):
    """All that a net computes: {key: [array, lengths]}; keys say when: startup, each run by number,
    the state at the end.
    """
    fluid, net = built.fluid, built.net
    scope = fluid.Scope()
    exe = fluid.Executor(fluid.CPUPlace())
    found = {}
    with fluid.scope_guard(scope):
        for name, v in start(built, scope, nudge).items():
            found["startup/" + name] = [v, []]
        for number, (which, step) in enumerate(net["runs"]):
            program = built.test if which == "test" else built.main
            wanted = {}
            for expression in net["fetch"]:
                var = built.variable(expression) if expression[0] != "@" else expression[1:]
                if var is None:  # a gradient that is not there
                    found["%d/%s" % (number, expression)] = [np.array("none"), []]
                    continue
                name = var if isinstance(var, str) else var.name
                if program.global_block().has_var(name):
                    wanted[expression] = name
            known = {
                n: v
                for n, v in feed(fluid, net, step, nudge).items()
                if program.global_block().has_var(n)
            }
            got = exe.run(
                program,
                feed=known,
                fetch_list=list(wanted.values()),
                scope=scope,
                return_numpy=False,
            )
            for expression, value in zip(wanted, got):
                found["%d/%s" % (number, expression)] = plain(value)
        for name, var in sorted(built.main.global_block().vars.items()):
            if var.persistable:
                v = tensor_of(fluid, scope, name)
                if v is not None and v.dtype != object:
                    found["end/" + name] = [v, []]
    return found


# Attributes that say how, not what.
HINTS = set(
    "op_callstack op_device op_role_var use_mkldnn use_cudnn mkldnn_data_type use_quantizer"
    " is_mkldnn with_quant_attr".split()
)
