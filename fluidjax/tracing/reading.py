"""Turns a jaxpr into the blocks of a program.

Called functions (``jit``) are read in place, or kept as blocks if the caller requests it. Control
flow becomes ops whose blocks are functions of their own (ops/lax/blocks.py). A ``custom_jvp`` or
``custom_vjp`` function in a trace that is not differentiated yet is kept with its rule, so that a
gradient taken later is JAX's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np

from ..base.dtypes import KEYS
from ..base.roles import OP_ROLE
from ..errors import TraceError, near
from ..ir.desc import EMPTY, BlockDesc, BlockRef, FrozenMap, OpDesc, OpType, VarDesc
from ..ops.lax.callbacks import keep
from .names import Names, scope_of, user_line, value_name
from .primitives import (
    HOST,
    REFUSED,
    ROWS,
    Parameters,
    dtype_name,
    is_inexact,
    number,
    scatter,
    size_of,
    spec_of,
    window,
)

SMALL = 16  # elements of a constant in the program; a larger one is state
LARGE = 4096  # also in an inner block; the op that holds the block passes larger ones to it
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "core_closed_call": "call_jaxpr",
    "composite": "jaxpr",
    "eval_jaxpr": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
CUSTOM = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
SAME = frozenset("name device_put layout_constraint reshard mesh_cast xla_metadata_value".split())
# Primitives with a method in Reader; primitives of `ROWS` are among them if they hold blocks.
READ = frozenset(
    """custom_jvp_call custom_vjp_call call_hi_primitive custom_linear_solve scan while cond platform_index reduce
    reduce_window scatter psum pmax pmin shard_map dim_as_value""".split()
)
REMAT = frozenset({"remat", "remat2", "checkpoint"})
FORWARD, BACKWARD, OPTIMIZE = 0, 1, 2


@dataclass(frozen=True)
class Literal:
    """A value that is written where it is read."""

    value: Any
    dtype: str


@dataclass(frozen=True)
class PlatformIndex:
    """The index of the branch for a platform; only a `cond` over platforms reads it."""


Atom = str | Literal | PlatformIndex


@dataclass
class Block:
    """A block that is being written."""

    idx: int
    parent: int
    vars: dict[str, VarDesc] = field(default_factory=dict)
    ops: list[OpDesc] = field(default_factory=list)
    constants: dict[Any, str] = field(default_factory=dict)
    params: tuple[str, ...] = ()
    handed: dict[str, Any] = field(default_factory=dict)  # large constants, by their parameters
    renamed: dict[str, str] = field(default_factory=dict)  # a name in the ops -> its final name

    def desc(self) -> BlockDesc:
        ops = (_renamed(op, self.renamed) for op in self.ops)
        return BlockDesc(FrozenMap(self.vars), tuple(ops), self.parent)


def _renamed(op: OpDesc, names: Mapping[str, str]) -> OpDesc:
    if names.keys().isdisjoint(op.reads) and names.keys().isdisjoint(op.writes):
        return op
    ins, outs = (
        FrozenMap({slot: tuple(names.get(n, n) for n in each) for slot, each in held.items()})
        for held in (op.inputs, op.outputs)
    )
    return OpDesc(op.uid, op.type, ins, outs, op.attrs, op.loc)


@dataclass(frozen=True)
class Function:
    """A block with its parameters and results by name; the parameters in `handed` stand for
    constants that the op's own block holds.
    """

    idx: int
    args: tuple[str, ...]
    results: tuple[str, ...]
    handed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of an op with this single block."""
        return {"sub_block": BlockRef(self.idx), "args": self.args, "results": self.results}


class Reader:
    """Reads jaxprs into blocks; block 0 is the program's own.

    calls: "inline", or "keep" for functions that were called. rules: whether custom rules are kept.
    strict: whether callbacks are refused. `constants` collects arrays that are too large for the
    program, by the names of their variables.
    """

    def __init__(self, names: Names, calls: str, rules: bool, strict: bool) -> None:
        self.names, self.calls, self.rules, self.strict = names, calls, rules, strict
        self.blocks = [Block(0, -1)]
        self.constants: dict[str, Any] = {}
        self.dropped: list[str] = []  # hints that a program does not keep
        self._shared: dict[Any, Any] = {}
        self._rules: dict[Any, Any] = {}
        self._uid = 0
        # ops with an effect even if nothing reads their outputs
        self._acting: set[int] = set()
        self._lines: dict[int, tuple[Any, str | None]] = {}
        self._at: tuple[str, str | None] = "", None  # scope and line of the current equation
        self._outer: tuple[str, str | None] = "", None  # and of the equation around it

    # -- values ------------------------------------------------------------------------------------

    def declare(self, block: Block, name: str, aval: Any, **more: Any) -> str:
        """A variable of this type."""
        kind, sizes = dtype_name(aval.dtype), tuple(map(size_of, aval.shape))
        shape = tuple(-1 if isinstance(n, str) else n for n in sizes)
        if shape != sizes:
            more["dims"] = tuple(n if isinstance(n, str) else "" for n in sizes)
        more.setdefault("stop_gradient", not is_inexact(aval.dtype))
        block.vars[name] = VarDesc(name, shape, kind, **more)
        return name

    def emit(
        self,
        block: Block,
        kind: str,
        ins: Mapping[str, Sequence[str]],
        outs: Mapping[str, Sequence[str]],
        attrs: Mapping[str, Any],
    ) -> None:
        """Append an op of the current equation."""
        stack, line = self._at
        hints: dict[str, Any] = {OP_ROLE: BACKWARD if "transpose(" in stack else FORWARD}
        scope = scope_of(stack)
        if scope:
            hints["op_namescope"] = scope
        reads = FrozenMap({s: tuple(n) for s, n in ins.items() if n})
        writes = FrozenMap({s: tuple(n) for s, n in outs.items() if n})
        held = FrozenMap({**attrs, **hints})
        block.ops.append(OpDesc(self._uid, OpType(f"jax.{kind}"), reads, writes, held, line))
        self._uid += 1

    def named(self, block: Block, atom: Atom) -> str:
        """The name of a value; a literal becomes a constant of the block."""
        if isinstance(atom, PlatformIndex):
            raise TraceError(
                "the number of the platform is read as a value, which is known only when a step is"
                " compiled"
            )
        return (
            atom
            if isinstance(atom, str)
            else self.constant(block, np.asarray(atom.value).astype(_numpy(atom.dtype)))
        )

    def constant(self, block: Block, value: Any) -> str:
        """The name of a constant: an op of the block or, if it is large, a variable of the
        state.
        """
        array = (
            value
            if hasattr(value, "dtype") and not isinstance(value, np.generic)
            else np.asarray(value)
        )
        if jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
            if id(array) not in block.constants:
                block.constants[id(array)] = self._constant_key(block, array)
            return block.constants[id(array)]
        if array.size <= (SMALL if block.idx == 0 else LARGE):
            array = np.asarray(array)
            small = dtype_name(array.dtype), array.shape, array.tobytes()
            if small not in block.constants:
                block.constants[small] = self._constant_op(block, array)
            return block.constants[small]
        key = dtype_name(array.dtype), array.shape, np.asarray(array).tobytes()
        known = block.constants
        if key not in known:
            known[key] = self.names.fresh("const")
            (block.handed if block.idx else self.constants)[known[key]] = array
            self.declare(block, known[key], array, persistable=block.idx == 0, stop_gradient=True)
        return known[key]

    def handed(self, block: Block, *made: Function) -> tuple[list[str], list[tuple[str, ...]]]:
        """The constants that an op passes to its blocks, and for each block the parameters for all
        of them.
        """
        values: dict[str, Any] = {}
        own = [
            {self.constant(block, array): name for name, array in each.handed.items()}
            for each in made
        ]
        for each in own:
            values |= dict.fromkeys(each)
        params = []
        for each, function in zip(own, made, strict=True):
            inner = self.blocks[function.idx]
            params.append(tuple(each.get(n) or self._unread(inner, block.vars[n]) for n in values))
        return list(values), params

    def _unread(self, inner: Block, like: VarDesc) -> str:
        """A parameter of a block for a constant that only another block of its op reads."""
        name = self.names.fresh("unread")
        inner.vars[name] = replace(like, name=name, persistable=False)
        return name

    def _constant_key(self, block: Block, keys: Any) -> str:
        """Random keys: their data as a constant, since no state and no file holds keys."""
        data = self.constant(block, jax.random.key_data(keys))
        name = self.names.fresh("key")
        self.declare(block, name, keys, stop_gradient=True)
        attrs = {"impl": KEYS[dtype_name(keys.dtype)]}
        self.emit(block, "random_wrap", {"X": [data]}, {"Out": [name]}, attrs)
        return name

    def _constant_op(self, block: Block, array: np.ndarray) -> str:
        name = self.names.fresh("c")
        self.declare(block, name, array, stop_gradient=True)
        flat = array.ravel()
        if array.dtype.kind == "c":
            flat = np.stack([flat.real, flat.imag], axis=1).ravel()
        values = tuple(number(v) for v in flat)
        attrs = {"values": values, "shape": array.shape, "dtype": dtype_name(array.dtype)}
        here, self._at = self._at, ("", self._at[1])
        self.emit(block, "constant", {}, {"Out": [name]}, attrs)
        self._at = here
        return name

    # -- functions ---------------------------------------------------------------------------------

    def read(
        self, block: Block, jaxpr: Any, consts: Sequence[Any], args: Sequence[Atom]
    ) -> list[Atom]:
        """Append the ops of a jaxpr with these arguments; returns its results."""
        env: dict[Any, Atom] = {}
        env.update(
            (v, self.constant(block, c)) for v, c in zip(jaxpr.constvars, consts, strict=True)
        )
        env.update(zip(jaxpr.invars, args, strict=True))

        def atom(v: Any) -> Atom:
            is_literal = isinstance(v, jex.Literal)
            return Literal(v.val, _dtype_of(v.aval)) if is_literal else env[v]

        outer, beyond = self._at, self._outer
        for eqn in jaxpr.eqns:
            self._at, self._outer = self._place(eqn, outer), outer
            first = self._uid
            found = self._equation(block, eqn, [atom(v) for v in eqn.invars])
            if eqn.effects:
                self._acting.update(range(first, self._uid))
            env.update(
                (v, a) for v, a in zip(eqn.outvars, found, strict=True) if not _is_dropped(v)
            )
        self._at, self._outer = outer, beyond
        return [atom(v) for v in jaxpr.outvars]

    def function(
        self, parent: Block, jaxpr: Any, consts: Sequence[Any], hints: Sequence[str]
    ) -> Function:
        """A block for this function below `parent`; the same block for the same jaxpr. hints: names
        for its parameters.
        """
        key = id(jaxpr), parent.idx
        if key not in self._shared:
            block = Block(len(self.blocks), parent.idx)
            self.blocks.append(block)
            args = [
                self.declare(block, self.names.fresh(hint), v.aval)
                for v, hint in zip(jaxpr.invars, hints, strict=True)
            ]
            block.params = tuple(args)
            results = [self.named(block, a) for a in self.read(block, jaxpr, consts, args)]
            self._prune(block, results)
            made = Function(block.idx, tuple(args), tuple(results), block.handed)
            self._shared[key] = jaxpr, made
        found: Function = self._shared[key][1]
        return found

    def _small(
        self, parent: Block, jaxpr: Any, consts: Sequence[Any], hints: Sequence[str]
    ) -> Function:
        """The block of an op that combines values and has no slot for constants. Raises TraceError
        if it holds large ones.
        """
        made = self.function(parent, jaxpr, consts, hints)
        for array in made.handed.values():
            raise TraceError(
                f"the function that joins two values holds a constant of {array.size:,} elements,"
                f" and it may hold {LARGE:,}: compute outside of it what it needs of the constant"
            )
        return made

    def _prune(self, block: Block, results: Sequence[str]) -> None:
        """Leave out ops that no result depends on, because a rule also computes the function
        itself.
        """
        needed, kept = set(results), []
        for op in reversed(block.ops):
            if op.uid in self._acting or any(n in needed for n in op.writes):
                kept.append(op)
                needed.update(op.reads)
        block.ops[:] = kept[::-1]
        there = {*block.params, *block.handed, *(n for op in kept for n in op.writes)}
        block.vars = {n: v for n, v in block.vars.items() if n in there}

    # -- equations ---------------------------------------------------------------------------------

    def _place(self, eqn: Any, outer: tuple[str, str | None]) -> tuple[str, str | None]:
        stack, traceback = str(eqn.source_info.name_stack), eqn.source_info.traceback
        if id(traceback) not in self._lines:
            self._lines[id(traceback)] = traceback, user_line(traceback)
        line = self._lines[id(traceback)][1] or outer[1]
        return f"{outer[0]}/{stack}" if outer[0] and stack else outer[0] or stack, line

    def _equation(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        name = eqn.primitive.name
        if eqn.outvars and all(v.aval.dtype == jax.dtypes.float0 for v in eqn.outvars):
            # tangents of integers hold no values
            return [Literal(None, "float0") for _ in eqn.outvars]
        try:
            if name in READ:
                found: list[Atom] = getattr(self, f"_{name}")(block, eqn, args)
                return found
            unnamed = name == "sharding_constraint" and not hasattr(eqn.params["sharding"], "spec")
            if name in ROWS and not unnamed:
                return self._plain(block, eqn, args)
            if name in SAME or unnamed:
                if name != "name":
                    self.dropped.append(name)
                return args
            if name in CALLS:
                return self._call(block, eqn, args, eqn.params[CALLS[name]])
            if name in REMAT:
                return self._rematerialized(block, eqn, args)
            if name in HOST and not self.strict:
                key = keep(lambda *values: eqn.primitive.bind(*values, **eqn.params))
                ins = {"Args": [self.named(block, a) for a in args]}
                return self._outputs(
                    block, eqn, "callback", ins, "Out*", {"key": key, "function": name}
                )
        except TraceError as error:
            if getattr(error, "placed", False):
                raise
            placed = TraceError(f"{error}{self._where()}")
            placed.placed = True  # type: ignore[attr-defined]
            raise placed from None
        inside = None if name in REFUSED else _implementation(eqn)
        if inside is not None:
            return self.read(block, inside.jaxpr, inside.consts, args)
        what = REFUSED.get(name) or "write it with other functions of jax.lax" + near(name, ROWS)
        refused = TraceError(
            f"primitive '{name}'{self._where()} is not one that a Program has: {what}"
        )
        refused.placed = True  # type: ignore[attr-defined]
        raise refused

    def _where(self) -> str:
        return f" ({self._at[1]})" if self._at[1] else ""

    def _plain(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        row, parameters = ROWS[eqn.primitive.name], Parameters(eqn.primitive.name, eqn.params)
        attrs = row.attrs(parameters)
        if (
            row.kind == "broadcast_in_dim"
            and isinstance(args[0], Literal)
            and (value := number(args[0].value)) is not None
        ):
            parameters.finish()
            made = {"value": value, "shape": attrs["shape"], "dtype": args[0].dtype}
            return self._outputs(block, eqn, "full", {}, "Out", made)
        parameters.finish()
        ins: dict[str, list[str]] = {}
        slots = row.ins.split()
        beside = [a for a in args if isinstance(a, str)]
        for at, slot in enumerate(slots):
            if slot.endswith("*"):
                ins[slot[:-1]] = [self.named(block, a) for a in args[at:]]
                break
            atom = args[at]
            literal = row.literals.get(slot)
            if (
                literal
                and isinstance(atom, Literal)
                and beside
                and (value := number(atom.value)) is not None
            ):
                if self._dtype(block, beside[0]) == atom.dtype:
                    attrs = {**attrs, literal: value}
                    continue
            ins[slot] = [self.named(block, atom)]
            beside.append(ins[slot][0])
        wanted = attrs.get("preferred_element_type")
        if wanted and all(self._dtype(block, n) == wanted for n in beside):
            del attrs["preferred_element_type"]  # it is the default
        outs = row.outs if isinstance(row.outs, str) else row.outs(attrs)
        return self._outputs(block, eqn, row.kind, ins, outs, attrs)

    def _dtype(self, block: Block, name: str) -> str | None:
        var = block.vars.get(name) or self.blocks[0].vars.get(name)
        return None if var is None else var.dtype

    def _outputs(
        self,
        block: Block,
        eqn: Any,
        kind: str,
        ins: Mapping[str, Sequence[str]],
        outs: str,
        attrs: Mapping[str, Any],
        label: str = "",
    ) -> list[Atom]:
        """Append an op with the equation's outputs in these slots."""
        base = value_name(scope_of(self._at[0]), label or kind)
        names = [
            EMPTY if _is_dropped(v) else self.declare(block, self.names.fresh(base), v.aval)
            for v in eqn.outvars
        ]
        held: dict[str, list[str]] = {}
        for at, slot in enumerate(outs.split()):
            held[slot.rstrip("*")] = names[at:] if slot.endswith("*") else [names[at]]
        self.emit(block, kind, ins, held, attrs)
        return list(names)

    def _call(self, block: Block, eqn: Any, args: list[Atom], inner: Any) -> list[Atom]:
        jaxpr, consts = _opened(inner)
        if self.calls == "inline":
            return self.read(block, jaxpr, consts, args)
        label = str(eqn.params.get("name", "call"))
        made = self.function(block, jaxpr, consts, _arg_names(jaxpr, label))
        return self._with_block(block, eqn, args, made, "call", label)

    def _with_block(
        self, block: Block, eqn: Any, args: list[Atom], made: Function, kind: str, label: str
    ) -> list[Atom]:
        """An op with one block that computes its results."""
        values, (params,) = self.handed(block, made)
        attrs = {**made.attrs, "args": made.args + params, "function": label}
        ins = {"Args": [*(self.named(block, a) for a in args), *values]}
        return self._outputs(block, eqn, kind, ins, "Out*", attrs, label)

    def _custom_jvp_call(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        return self._custom(block, eqn, args, eqn.params[CUSTOM[eqn.primitive.name]])

    _custom_vjp_call = _custom_jvp_call

    def _call_hi_primitive(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        """A primitive that jax.experimental.hijax defines by others and by a rule of its own
        (`searchsorted` since jax 0.12).
        """
        primitive = eqn.params["_prim"]

        def expanded(*flat: Any) -> Any:
            return jax.tree.leaves(primitive.expand(*jax.tree.unflatten(primitive.in_tree, flat)))

        expanded.__name__ = type(primitive).__name__
        return self._custom(block, eqn, args, jax.make_jaxpr(expanded)(*map(_type_of, eqn.invars)))

    def _custom(self, block: Block, eqn: Any, args: list[Atom], inner: Any) -> list[Atom]:
        """A function with a rule of its own: its rule is traced once, as a block from arguments and
        cotangents to gradients.
        """
        jaxpr, consts = _opened(inner)
        flows = any(map(_is_inexact, eqn.invars)) and any(map(_is_inexact, eqn.outvars))
        if not (self.rules and flows):
            return self.read(block, jaxpr, consts, args)
        label = _label(eqn, jaxpr)
        made = self.function(block, jaxpr, consts, _arg_names(jaxpr, label))
        key = id(jaxpr), block.idx
        if key not in self._rules:
            try:
                rule = _rule_of(eqn)
                _refuse_closures(rule)
            except Exception as error:  # marked as not differentiable, with a reason
                return self._without_rule(
                    block, eqn, args, made, {"function": label, "refusal": str(error)}
                )
            hints = [
                *_arg_names(jaxpr, label),
                *(f"{label}.ct" for _ in rule.jaxpr.invars[len(jaxpr.invars) :]),
            ]
            self._rules[key] = rule, self._differentiated(block, rule, hints)
        return self._ruled(
            block,
            eqn,
            args,
            made,
            self._rules[key][1],
            _have_gradients(eqn),
            label,
            _closed_over(eqn),
        )

    def _ruled(
        self,
        block: Block,
        eqn: Any,
        args: list[Atom],
        made: Function,
        back: Function,
        moving: Sequence[bool],
        label: str,
        closed_over: int = 0,
    ) -> list[Atom]:
        """A function with the block of its rule. closed_over: this number of its first arguments
        have no gradient, because the rule does not give one.
        """
        values, (params, of_rule) = self.handed(block, made, back)
        grads, count = iter(back.results), len(made.args)
        attrs = {
            **made.attrs,
            "args": made.args + params,
            "function": label,
            "grad_block": BlockRef(back.idx),
            "grad_args": back.args[:count] + of_rule + back.args[count:],
            "grad_results": (*(next(grads) if m else "" for m in moving), *("" for _ in values)),
            **({"closed_over": closed_over} if closed_over else {}),
        }
        ins = {"Args": [*(self.named(block, a) for a in args), *values]}
        return self._outputs(block, eqn, "custom_call", ins, "Out*", attrs, label)

    def _without_rule(
        self, block: Block, eqn: Any, args: list[Atom], made: Function, said: Mapping[str, str]
    ) -> list[Atom]:
        values, (params,) = self.handed(block, made)
        attrs = {
            **made.attrs,
            "args": made.args + params,
            "grad_block": BlockRef(made.idx),
            "grad_args": (),
            "grad_results": (),
            **said,
        }
        ins = {"Args": [*(self.named(block, a) for a in args), *values]}
        return self._outputs(block, eqn, "custom_call", ins, "Out*", attrs, said["function"])

    def _differentiated(self, block: Block, rule: Any, hints: Sequence[str]) -> Function:
        """A rule as a block. It is differentiated already, so functions in it need no rules. Its
        equations have the scope of the equation that the rule belongs to.
        """
        here, self.rules = self._at, False
        self._at = self._outer[0], here[1]
        try:
            return self.function(block, rule.jaxpr, rule.consts, hints)
        finally:
            self._at, self.rules = here, True

    def _rematerialized(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        jaxpr, consts = _opened(eqn.params["jaxpr"])
        if not eqn.params.get("differentiated", True):
            if not self.rules:
                return self.read(block, jaxpr, consts, args)
            made = self.function(block, jaxpr, consts, _arg_names(jaxpr, "checkpoint"))
            return self._with_block(block, eqn, args, made, "checkpoint", "")
        if not eqn.params.get("prevent_cse", True):
            return self.read(block, jaxpr, consts, args)
        held = [
            self.named(block, a) for a in args
        ]  # the barrier keeps XLA from reusing values that were computed before
        base = value_name(scope_of(self._at[0]), "barrier")
        kept = [self.declare(block, self.names.fresh(base), v.aval) for v in eqn.invars]
        self.emit(block, "optimization_barrier", {"X": held}, {"Out": kept}, {})
        return self.read(block, jaxpr, consts, kept)

    def _custom_linear_solve(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        if self.rules and any(_is_inexact(v) for v in eqn.invars):
            return self._solve_with_rule(block, eqn, args)
        return self._solved(block, eqn, args)

    def _solved(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        lengths, solve = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
        before = lengths.matvec + lengths.vecmat
        given = args[before : before + lengths.solve]
        right = args[before + lengths.solve + lengths.transpose_solve :]
        return self.read(block, solve.jaxpr, solve.consts, [*given, *right])

    def _solve_with_rule(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        """As _custom, but the computation is the equation itself, traced again so that it is a
        function of all its operands.
        """
        key = id(eqn.params["jaxprs"]), block.idx
        if key not in self._rules:
            inner = Block(len(self.blocks), block.idx)
            self.blocks.append(inner)
            names = [self.declare(inner, self.names.fresh("solve.x"), v.aval) for v in eqn.invars]
            solved = [self.named(inner, a) for a in self._solved(inner, eqn, list(names))]
            rule = _rule_of(eqn)
            hints = ["solve.x"] * len(names) + ["solve.ct"] * (len(rule.jaxpr.invars) - len(names))
            back = self._differentiated(block, rule, hints)
            self._rules[key] = (
                (rule, eqn.params["jaxprs"]),
                Function(inner.idx, tuple(names), tuple(solved), inner.handed),
                back,
            )
        _, made, back = self._rules[key]
        moving = [_is_inexact(v) for v in eqn.invars]
        return self._ruled(block, eqn, args, made, back, moving, "linear_solve")

    def _scan(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        params = eqn.params
        consts, carried = _scan_counts(params)
        jaxpr, closed = _opened(params["jaxpr"])
        hints = (
            ["const"] * consts
            + ["carry"] * carried
            + ["x"] * (len(jaxpr.invars) - consts - carried)
        )
        made = self.function(block, jaxpr, closed, hints)
        names = [self.named(block, a) for a in args]
        values, (handed,) = self.handed(block, made)
        ins = {
            "Consts": [*names[:consts], *values],
            "Init": names[consts : consts + carried],
            "Xs": names[consts + carried :],
        }
        attrs = {**made.attrs, "length": size_of(params["length"])}
        attrs["args"] = made.args[:consts] + handed + made.args[consts:]
        if params["reverse"]:
            attrs["reverse"] = True
        if params.get("unroll", 1) != 1:
            attrs["unroll"] = int(params["unroll"])
        return self._outputs_in_two_slots(block, eqn, "scan", ins, ("Carry", carried, "Ys"), attrs)

    def _outputs_in_two_slots(
        self,
        block: Block,
        eqn: Any,
        kind: str,
        ins: Mapping[str, Sequence[str]],
        outs: tuple[str, int, str],
        attrs: Mapping[str, Any],
    ) -> list[Atom]:
        """As _outputs, for two repeatable slots; the first has `count` outputs."""
        base = value_name(scope_of(self._at[0]), kind)
        names = [
            EMPTY if _is_dropped(v) else self.declare(block, self.names.fresh(base), v.aval)
            for v in eqn.outvars
        ]
        first, count, second = outs
        self.emit(block, kind, ins, {first: names[:count], second: names[count:]}, attrs)
        return list(names)

    def _while(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        params = eqn.params
        of_cond, of_body = params["cond_nconsts"], params["body_nconsts"]
        names = [self.named(block, a) for a in args]
        ins = {
            "CondConsts": names[:of_cond],
            "BodyConsts": names[of_cond : of_cond + of_body],
            "Init": names[of_cond + of_body :],
        }
        attrs: dict[str, Any] = {}
        for word, count in (("cond", of_cond), ("body", of_body)):
            jaxpr, closed = _opened(params[f"{word}_jaxpr"])
            hints = ["const"] * count + ["carry"] * (len(jaxpr.invars) - count)
            made = self.function(block, jaxpr, closed, hints)
            values, (handed,) = self.handed(block, made)
            ins[f"{word.title()}Consts"] += values
            attrs |= {
                f"{word}_block": BlockRef(made.idx),
                f"{word}_args": made.args[:count] + handed + made.args[count:],
                f"{word}_results": made.results,
            }
        return self._outputs(block, eqn, "while", ins, "Out*", attrs)

    def _platform_index(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        return [PlatformIndex()]

    def _dim_as_value(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        dtype = dtype_name(eqn.outvars[0].aval.dtype)
        attrs = {"dim": size_of(eqn.params["dim"]), "dtype": dtype}
        return self._outputs(block, eqn, "dim_as_value", {}, "Out", attrs)

    def _cond(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        platforms = eqn.params.get("branches_platforms")
        names = [self.named(block, a) for a in (args if platforms is None else args[1:])]
        made = []
        for branch in eqn.params["branches"]:
            jaxpr, closed = _opened(branch)
            made.append(self.function(block, jaxpr, closed, ["x"] * len(jaxpr.invars)))
        values, handed = self.handed(block, *made)
        names += values
        attrs = {
            "sub_blocks": tuple(BlockRef(m.idx) for m in made),
            "args": tuple(n for m, own in zip(made, handed, strict=True) for n in m.args + own),
            "results": tuple(n for m in made for n in m.results),
        }
        if platforms is not None:
            attrs["platforms"] = tuple(",".join(p or ("default",)) for p in platforms)
            return self._outputs(
                block, eqn, "platform_dependent", {"Operands": names}, "Out*", attrs
            )
        return self._outputs(
            block, eqn, "cond", {"Index": names[:1], "Operands": names[1:]}, "Out*", attrs
        )

    def _reduce(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        """A reduction by any function: an op of its own if there is one for the function, else an
        op with a block.
        """
        jaxpr, _ = _opened(eqn.params["jaxpr"])
        axes = tuple(map(int, eqn.params["dimensions"]))
        one = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 and len(args) == 2 else None
        if (
            one is None
            or one.primitive.name not in _MONOIDS
            or set(one.invars) != set(jaxpr.invars)
        ):
            return self._combined(
                block, eqn, args, "reduce", eqn.params["jaxpr"], (), {"axes": axes}
            )
        operand, start = (self.named(block, a) for a in args)
        base = value_name(scope_of(self._at[0]), "reduce")
        partial = self.declare(block, self.names.fresh(base), eqn.outvars[0].aval)
        kind = one.primitive.name
        self.emit(
            block, f"reduce_{_MONOIDS[kind]}", {"X": [operand]}, {"Out": [partial]}, {"axes": axes}
        )
        return self._outputs(block, eqn, kind, {"X": [partial], "Y": [start]}, "Out", {})

    def _reduce_window(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        given, attrs = eqn.params, window(Parameters("reduce_window", eqn.params))
        return self._combined(
            block, eqn, args, "reduce_window", given["jaxpr"], given["consts"], attrs
        )

    def _combined(
        self,
        block: Block,
        eqn: Any,
        args: list[Atom],
        kind: str,
        inner: Any,
        consts: Sequence[Any],
        attrs: Mapping[str, Any],
    ) -> list[Atom]:
        """An op over arrays and their initial values, with a block that combines two values of
        each.
        """
        jaxpr, closed = _opened(inner)
        names = [self.named(block, a) for a in args]
        made = self._small(block, jaxpr, closed or consts, ["x"] * len(jaxpr.invars))
        half = len(names) // 2
        ins = {"X": names[:half], "Init": names[half:]}
        return self._outputs(block, eqn, kind, ins, "Out*", {**made.attrs, **attrs})

    def _scatter(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        jaxpr = eqn.params.get("update_jaxpr")
        if jaxpr is None:
            return self._plain(block, eqn, args)
        made = self._small(block, jaxpr, eqn.params["update_consts"], ["x", "y"])
        names = [self.named(block, a) for a in args]
        ins = {"X": names[:1], "Indices": names[1:2], "Updates": names[2:]}
        attrs = {**made.attrs, **scatter(Parameters("scatter", eqn.params))}
        return self._outputs(block, eqn, "scatter_apply", ins, "Out*", attrs)

    def _psum(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        """A sum over axes of a mesh or, under jax.vmap, over an axis of the arrays."""
        axes = eqn.params["axes"]
        if not all(isinstance(a, int) for a in axes):
            return self._plain(block, eqn, args)
        kind = {"psum": "reduce_sum", "pmax": "reduce_max", "pmin": "reduce_min"}[
            eqn.primitive.name
        ]
        made = []
        for arg, var in zip(args, eqn.outvars, strict=True):
            made.append(self.declare(block, self.names.fresh(kind), var.aval))
            ins = {"X": [self.named(block, arg)]}
            self.emit(block, kind, ins, {"Out": made[-1:]}, {"axes": tuple(map(int, axes))})
        return list(made)

    _pmax = _pmin = _psum

    def _shard_map(self, block: Block, eqn: Any, args: list[Atom]) -> list[Atom]:
        params = eqn.params
        mesh, (jaxpr, closed) = params["mesh"], _opened(params["jaxpr"])
        manual = params.get("newly_manual_axes", params.get("manual_axes", mesh.axis_names))
        made = self.function(block, jaxpr, closed, ["x"] * len(jaxpr.invars))
        values, (handed,) = self.handed(block, made)
        attrs = {
            **made.attrs,
            "args": made.args + handed,
            "mesh_axes": tuple(map(str, mesh.axis_names)),
            "mesh_sizes": tuple(int(mesh.shape[axis]) for axis in mesh.axis_names),
            "in_specs": (*map(spec_of, params["in_specs"]), *("" for _ in handed)),
            "out_specs": tuple(map(spec_of, params["out_specs"])),
            "manual_axes": tuple(axis for axis in mesh.axis_names if axis in manual),
            **({} if params["check_vma"] else {"check_vma": False}),
        }
        ins = {"Args": [*(self.named(block, a) for a in args), *values]}
        return self._outputs(block, eqn, "shard_map", ins, "Out*", attrs)


_MONOIDS = {
    "add": "sum",
    "mul": "prod",
    "max": "max",
    "min": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def _opened(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """The jaxpr and the constants of a closed jaxpr, or of an open one without constants."""
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") else (jaxpr, ())


def _dtype_of(aval: Any) -> str:
    return "float0" if aval.dtype == jax.dtypes.float0 else dtype_name(aval.dtype)


def _is_dropped(var: Any) -> bool:
    return type(var).__name__ == "DropVar"


def _is_inexact(var: Any) -> bool:
    return is_inexact(var.aval.dtype)


def _numpy(name: str) -> Any:
    from ..base.dtypes import numpy_dtype

    return numpy_dtype(name)


def _type_of(var: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype)


def _arg_names(jaxpr: Any, label: str) -> list[str]:
    return [f"{label}.x" for _ in jaxpr.invars]


def _label(eqn: Any, jaxpr: Any) -> str:
    """The source's name for a function with a rule: its own, or that of the one jitted function
    that it calls.
    """
    found = eqn.params.get("name") or getattr(getattr(jaxpr, "debug_info", None), "func_name", "")
    if len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in ("jit", "pjit"):
        found = jaxpr.eqns[0].params.get("name") or found
    word = str(found or "custom").split(" ")[0].rpartition(".")[2]
    return word if word.isidentifier() else "custom"


def _scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of constants and carried values of a scan: ints in jax 0.10, trees of arguments
    from 0.11 on.
    """
    if "num_carry" in params:
        return int(params["num_consts"]), int(params["num_carry"])
    consts, carry, _ = (len(list(part.vals)) for part in params["ft_in"].unpack())
    return consts, carry


def _implementation(eqn: Any) -> Any:
    """The computation of a library's own primitive as a closed jaxpr of JAX's primitives; None if
    the library does not provide one.
    """
    if eqn.effects:
        return None
    try:
        found = jax.make_jaxpr(lambda *given: eqn.primitive.impl(*given, **eqn.params))(
            *map(_type_of, eqn.invars)
        )
    except Exception:
        return None
    same = any(inner.primitive.name == eqn.primitive.name for inner in equations(found.jaxpr))
    fits = [v.aval.shape for v in found.jaxpr.outvars] == [v.aval.shape for v in eqn.outvars]
    return found if fits and not same else None


def _differentiable_equation(eqn: Any) -> Callable[..., Any]:
    """One equation as a function of its operands that JAX differentiates by its own rule."""
    ins = jax.make_jaxpr(lambda *given: given)(*map(_type_of, eqn.invars)).jaxpr.invars
    outs = jax.make_jaxpr(lambda *given: given)(*map(_type_of, eqn.outvars)).jaxpr.invars
    only = eqn.replace(invars=list(ins), outvars=list(outs))
    info = jex.DebugInfo("jit", "rule", ("",) * len(ins), ("",) * len(outs))
    jaxpr = jex.Jaxpr((), ins, outs, [only], eqn.effects, info)
    function: Callable[..., Any] = jex.jaxpr_as_fun(jex.ClosedJaxpr(jaxpr, ()))
    return function


def _have_gradients(eqn: Any) -> list[bool]:
    """Whether each operand has a gradient: integers have none, and neither have values that a
    custom_vjp function closes over, for which it has no rule.
    """
    closed = eqn.params.get("num_consts", 0) if eqn.primitive.name == "custom_vjp_call" else 0
    return [at >= closed and _is_inexact(v) for at, v in enumerate(eqn.invars)]


def _refuse_closures(rule: Any) -> None:
    """Raises TraceError for a rule that reads a value of the function around it."""
    for value in rule.consts:
        if isinstance(value, jax.core.Tracer):
            raise TraceError(
                f"its rule closes over {value.aval.str_short()}, a value of the function around it:"
                " hand it over as an argument"
            )


def _closed_over(eqn: Any) -> int:
    """The number of operands that a custom_vjp function closes over: floats, for which its rule
    gives no gradient.
    """
    count = eqn.params.get("num_consts", 0) if eqn.primitive.name == "custom_vjp_call" else 0
    return count if any(map(_is_inexact, eqn.invars[:count])) else 0


def _rule_of(eqn: Any) -> Any:
    """The closed jaxpr from an equation's operands and the cotangents of its outputs to gradients,
    by the function's own rule.
    """
    floating = _have_gradients(eqn)
    outs = [_is_inexact(v) for v in eqn.outvars]
    function = _differentiable_equation(eqn)

    def rule(args: Sequence[Any], cotangents: Sequence[Any]) -> Any:
        fixed = [None if f else a for a, f in zip(args, floating, strict=True)]

        def through(*moving: Any) -> Any:
            given = iter(moving)
            found = function(
                *[next(given) if f else a for a, f in zip(fixed, floating, strict=True)]
            )
            return [v for v, f in zip(found, outs, strict=True) if f]

        _, pull = jax.vjp(through, *[a for a, f in zip(args, floating, strict=True) if f])
        return pull(list(cotangents))

    args = [_type_of(v) for v in eqn.invars]
    return jax.make_jaxpr(rule)(
        args, [_type_of(v) for v, f in zip(eqn.outvars, outs, strict=True) if f]
    )


def equations(jaxpr: Any) -> Iterator[Any]:
    """Every equation, including those of inner functions."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jex.jaxprs_in_params(eqn.params):
            yield from equations(inner)


def is_differentiated(jaxpr: Any) -> bool:
    """Whether a trace contains a backward pass already. Rules that functions bring for their own
    gradients do not count.
    """
    for eqn in jaxpr.eqns:
        if "transpose(" in str(getattr(eqn.source_info, "name_stack", "")):
            return True
        if eqn.primitive.name in CUSTOM or eqn.primitive.name == "custom_linear_solve":
            continue
        if any(is_differentiated(inner) for inner in jex.jaxprs_in_params(eqn.params)):
            return True
    return False
