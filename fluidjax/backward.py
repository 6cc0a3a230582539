"""append_backward and gradients: explicit gradient ops, in the order and under the names that Fluid gives them.

The gradient of variable ``x`` is ``x@GRAD``. Where several ops contribute, each writes ``x@GRAD@RENAME@block0@k`` and a
``sum`` op adds them up before the first reader. A gradient that nobody wants is ``@EMPTY@``, and ops that would only
write such gradients are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import unique_name
from .base.dtypes import enum_of
from .base.roles import OP_ROLE, OP_ROLE_VAR, OpRole
from .errors import FluidTypeError, FluidValueError, UnsupportedError
from .graph.block import Block
from .graph.operator import Operator
from .graph.program import Program
from .graph.variable import Parameter, Variable
from .ir.desc import EMPTY, FrozenMap, OpDesc, VarDesc
from .ops.kinds import kind_of_output
from .ops.registry import GRAD, Reuse, lookup

_BOOKKEEPING = (OP_ROLE, OP_ROLE_VAR, "op_callstack")


@dataclass(slots=True)
class _Draft:
    """A gradient op while its names may still change."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any] = field(default_factory=dict)
    loc: str | None = None

    @property
    def reads(self) -> list[str]:
        return [n for names in self.inputs.values() for n in names]

    @property
    def writes(self) -> list[str]:
        return [n for names in self.outputs.values() for n in names]

    def rename(self, old: str, new: str, outputs: bool = True) -> None:
        for slots in (self.inputs, self.outputs) if outputs else (self.inputs,):
            for names in slots.values():
                if old in names:
                    names[:] = [new if n == old else n for n in names]


def grad_name(name: str) -> str:
    """``x@GRAD``."""
    return name + GRAD


def forward_name(name: str) -> str:
    """The variable that a gradient's name speaks of."""
    return name[: name.find(GRAD)].rsplit("grad/", 1)[-1] if GRAD in name else name


def _has_grad(kind: str) -> bool:
    definition = lookup(kind)
    return definition.grad is not None or bool(definition.reuse)


def _origin(op: OpDesc, origin: str) -> list[str]:
    """The names that a slot's origin stands for: a forward slot's own, or the gradients of an output slot's."""
    for slots in (op.inputs, op.outputs):
        if origin in slots:
            return list(slots[origin])
    return [grad_name(n) for n in op.output(origin.removesuffix(GRAD)) if n != EMPTY]


def _drafts(op: OpDesc, no_grad: set[str]) -> tuple[list[_Draft], dict[str, str]]:
    """The gradient ops of one op, and for every gradient that they write the variable it is of."""
    definition = lookup(op.type)
    grad_to_var: dict[str, str] = {}

    def given(names: Iterable[str]) -> list[str]:
        grads = []
        for n in names:
            g = grad_name(n)
            wanted = g not in no_grad and n != EMPTY
            grads.append(g if wanted else EMPTY)
            if wanted:
                grad_to_var[g] = n
        return grads

    attrs = {k: v for k, v in op.attrs.items() if k not in _BOOKKEEPING}
    if definition.reuse:
        drafts = [d for r in definition.reuse for d in _reuse_drafts(op, r, attrs, given)]
    else:
        assert definition.grad is not None
        ins = {slot: _origin(op, origin) for slot, origin in definition.grad.taken(attrs).items()}
        outs = {slot: given(op.input(origin)) for slot, origin in definition.grad.gives.items()}
        drafts = [_Draft(definition.grad.type, ins, outs, attrs)]
    for d in drafts:
        d.loc = op.loc
        d.inputs = {s: names for s, names in d.inputs.items() if names}
        d.outputs = {s: names for s, names in d.outputs.items() if names and names != [EMPTY]}
    return [d for d in drafts if any(n != EMPTY for n in d.writes)], grad_to_var


def _reuse_drafts(op: OpDesc, reuse: Reuse, attrs: dict[str, Any], given: Callable[..., list[str]]) -> list[_Draft]:
    made = FrozenMap(reuse.attrs(attrs))
    full = {**lookup(reuse.type).defaults, **made}
    ins = {slot: _origin(op, origin) for slot, origin in reuse.ins.items()}
    outs: dict[str, list[str]] = {}
    for slot, origin in reuse.outs.items():
        # "Out": an input slot itself (increment undoes its step), otherwise the gradient of an input
        own = origin in op.inputs and not origin.endswith(GRAD)
        outs[slot] = list(op.input(origin)) if own else given(op.input(origin.removesuffix(GRAD)))
    if not reuse.each:
        return [_Draft(reuse.type, ins, outs, dict(full))]
    ((slot, names),) = outs.items()
    return [_Draft(reuse.type, {s: list(v) for s, v in ins.items()}, {slot: [n]}, dict(full)) for n in names]


def _add_up(drafts: list[_Draft], block_idx: int) -> list[_Draft]:
    """Give repeated gradients names of their own and insert the ``sum`` ops."""
    writers: dict[str, list[str]] = defaultdict(list)
    count: dict[str, int] = defaultdict(int)
    first: dict[str, int] = {}
    sums: list[tuple[int, _Draft]] = []

    def fresh(name: str) -> str:
        count[name] += 1
        return f"{name}@RENAME@block{block_idx}@{count[name] - 1}"

    def add(name: str, at: int) -> None:
        sums.append((at, _Draft("sum", {"X": list(writers[name])}, {"Out": [name]}, {"use_mkldnn": False})))

    for at, draft in enumerate(drafts):
        for name in draft.reads:
            if GRAD in name and len(writers[name]) > 1:
                add(name, at)
                writers[name] = [name]
                first[name] = at
        reads = set(draft.reads)
        for names in draft.outputs.values():
            for i, name in enumerate(names):
                if name == EMPTY or name in reads:
                    continue
                if not writers[name]:
                    writers[name] = [name]
                    first[name] = at
                    continue
                if len(writers[name]) == 1:
                    new = fresh(name)
                    old_sums = [s for where, s in sums if where >= first[name]]
                    for d in [*drafts[first[name] : at], *old_sums]:
                        d.rename(name, new)
                    for other in draft.outputs.values():  # what this op has named already
                        limit = i if other is names else len(other)
                        other[:limit] = [new if n == name else n for n in other[:limit]]
                        if other is names:
                            break
                    writers[name] = [new]
                names[i] = fresh(name)
                writers[name].append(names[i])
    for name in list(writers):
        if len(writers[name]) > 1:
            add(name, len(drafts))
    return _in_order(drafts, sums)


def _in_order(drafts: list[_Draft], sums: list[tuple[int, _Draft]]) -> list[_Draft]:
    """The drafts with every sum in front of the draft of its position, sums of one position in the order they arose."""
    at: dict[int, list[_Draft]] = defaultdict(list)
    for where, draft in sums:
        at[where].append(draft)
    result: list[_Draft] = []
    for i, draft in enumerate(drafts):
        result += [*at[i], draft]
    return result + at[len(drafts)]


def _drop_no_grad(drafts: list[_Draft], no_grad: set[str]) -> list[_Draft]:
    """Leave out ops that only write or only read unwanted gradients; zero-fill those that a kept op reads."""
    kept = []
    for d in drafts:
        grads = [n for n in d.reads if GRAD in n]
        if not d.writes or all(n in no_grad for n in d.writes):
            continue
        if all(n in no_grad for n in grads) and grads:
            no_grad.update(d.writes)
            continue
        kept.append(d)
    result: list[_Draft] = []
    for d in kept:
        for name in d.reads:
            if GRAD in name and name in no_grad:
                result.append(_Draft("fill_zeros_like", {"X": [forward_name(name)]}, {"Out": [name]}))
        result.append(d)
    return result


def _drop_unconnected(drafts: list[_Draft], ops: Sequence[OpDesc], known: set[str]) -> list[_Draft]:
    """Leave out ops that nothing connects to the targets."""
    seen = set(known)
    for op in ops:
        seen.update(op.reads, op.writes)
    kept = []
    for d in drafts:
        if d.reads and not any(n in seen for n in d.reads):
            continue
        seen.update(d.writes)
        kept.append(d)
    return kept


def _op_path(block: Block, targets: set[str], inputs: set[str], no_grad: set[str]) -> list[OpDesc]:
    """The ops between `inputs` (all, if empty) and `targets` through which a gradient flows. Adds to `no_grad`."""
    ops = [op.desc for op in block.ops]
    relevant = [True] * len(ops)
    reached = set(inputs)
    if inputs:
        for i, op in enumerate(ops):
            relevant[i] = _has_grad(op.type) and any(n in reached for n in op.reads)
            if relevant[i]:
                reached.update(n for n in op.writes if n not in no_grad)
    needed = set(targets)
    for i in range(len(ops) - 1, -1, -1):
        if _has_grad(ops[i].type) and any(n in needed for n in ops[i].writes):
            needed.update(n for n in ops[i].reads if n not in no_grad)
        else:
            relevant[i] = False
    path = [op for op, keep in zip(ops, relevant, strict=True) if keep]
    if inputs:
        for op in path:
            no_grad.update(n for n in op.reads if n not in reached and block._var_recursive(n).stop_gradient)
    return path


def _unused(block: Block, path: Sequence[OpDesc], targets: set[str], no_grad: set[str]) -> set[str]:
    """Outputs on the path that nothing on the path reads: their gradient is zero."""
    used = set(targets)
    unused: set[str] = set()
    for op in reversed(path):
        reads = set(op.reads)
        unused.update(n for n in op.writes if n not in used and n not in reads and not block._var_recursive(n).stop_gradient)
        used.update(n for n in reads if n not in no_grad)
    return unused


def _stopped(program: Program, no_grad_set: Iterable[Any] | None) -> set[str]:
    """Names that get no gradient: stop_gradient variables and the caller's."""
    names = {v.name for v in program.global_block().vars.values() if v.stop_gradient}
    for v in no_grad_set or ():
        if not isinstance(v, Variable | str):
            raise FluidTypeError(f"no_grad_set takes variables or their names, not {type(v).__name__}")
        names.add(v if isinstance(v, str) else v.name)
    return names


class _Writer:
    """Turns drafts into ops of a block, under names that are free."""

    def __init__(self, program: Program, seeds: set[str], replaced: dict[str, str]) -> None:
        self.program = program
        self.block = program.global_block()
        program._grad_calls += 1
        self.again = program._grad_calls > 1
        self.seeds = seeds  # gradients that the targets start with
        self.replaced = replaced
        self.grad_to_var: dict[str, str] = {}

    def collect(self, path: Sequence[OpDesc], no_grad_grads: set[str]) -> list[_Draft]:
        """Drafts of all gradient ops of a path, backwards."""
        drafts: list[_Draft] = []
        renamed: dict[str, str] = {}
        fed = set(self.seeds)
        for op in reversed(path):
            made, origin = _drafts(op, no_grad_grads)
            if self.again:
                self._rename_again(op, made, origin, renamed)
            keep = [d for d in made if not self.again or self._is_fed(d, fed)]
            for d in keep:
                fed.update(d.writes)
            drafts += keep
            if keep:
                self.grad_to_var.update(origin)
        drafts = _add_up(drafts, self.block.idx)
        drafts = _drop_no_grad(drafts, no_grad_grads)
        return _drop_unconnected(drafts, path, self.seeds)

    @staticmethod
    def _is_fed(draft: _Draft, fed: set[str]) -> bool:
        grads = [n for n in draft.reads if GRAD in n]
        return not grads or any(n in fed for n in grads)

    def _rename_again(self, op: OpDesc, drafts: list[_Draft], origin: dict[str, str], renamed: dict[str, str]) -> None:
        """A second differentiation must not overwrite the gradients of the first."""
        is_grad = lookup(op.type).forward is not None
        for d in drafts:
            if not is_grad:
                for name in d.reads:
                    if name in renamed:
                        d.rename(name, renamed[name], outputs=False)
            for name in d.writes:
                if GRAD in name and name in self.block.vars:
                    new = "grad/" * self.program._grad_calls + name
                    for names in d.outputs.values():
                        names[:] = [new if n == name else n for n in names]
                    renamed[name] = new
                    if name in origin:
                        origin[new] = origin.pop(name)

    def write(self, drafts: list[_Draft]) -> dict[str, str]:
        """Append the ops and create their variables; forward variable -> its gradient's name."""
        self._free_names(drafts)
        found: dict[str, str] = {}
        for d in drafts:
            writes = [n for n in d.writes if n != EMPTY]
            grads = [n for n in d.reads if GRAD in n]
            if not writes or (grads and all(self.block._find_var_recursive(n) is None for n in grads)):
                continue
            if d.type == "sum":
                d.inputs["X"] = [n for n in d.inputs["X"] if self.block._find_var_recursive(n) is not None]
            for name in writes:
                if self.block._find_var_recursive(name) is None:
                    self._create(name, d)
                    if name in self.grad_to_var:
                        found[self.grad_to_var[name]] = name
            self._append(d)
        self.program._touch()
        return found

    def _free_names(self, drafts: list[_Draft]) -> None:
        """Rename gradients that exist already (an earlier call made them)."""
        names = dict(self.replaced)
        for d in drafts:
            for name in list(d.reads):
                if name in names:
                    d.rename(name, names[name], outputs=False)
            for slot in d.outputs.values():
                for i, name in enumerate(slot):
                    if GRAD in name and name in self.block.vars and name not in self.seeds:
                        slot[i] = names[name] = unique_name.generate(name)
        for old, new in names.items():
            if old in self.grad_to_var:
                self.grad_to_var[new] = self.grad_to_var.pop(old)

    def _create(self, name: str, draft: _Draft) -> None:
        like = self.block._find_var_recursive(self.grad_to_var.get(name) or forward_name(name))
        if like is None:
            like = self.block._var_recursive(draft.reads[0])
        added = [self.block._find_var_recursive(n) for n in draft.inputs.get("X", ())]
        kinds = [v.desc.kind for v in added if v is not None]
        kind = kind_of_output(draft.type, draft.attrs, kinds) or like.desc.kind
        desc = VarDesc(name, like.desc.shape, like.desc.dtype, kind, like.desc.lod_level)
        self.block.vars[name] = Variable(self.block, desc)

    def _append(self, d: _Draft) -> None:
        attrs = FrozenMap({**d.attrs, OP_ROLE: int(OpRole.Backward)})
        ins = FrozenMap({s: tuple(v) for s, v in d.inputs.items()})
        outs = FrozenMap({s: tuple(v) for s, v in d.outputs.items()})
        self.block.ops.append(Operator(self.block, OpDesc(self.program._next_uid(), d.type, ins, outs, attrs, d.loc)))


def _refuse_blocks(path: Sequence[OpDesc]) -> None:
    for op in path:
        if op.blocks:
            raise UnsupportedError(
                f"the gradient of op '{op.type}' ({op.loc}) is not there yet: keep control flow off the path from the "
                "parameters to the loss"
            )


def _loss_op(loss: Variable) -> Operator:
    for op in reversed(loss.block.ops):
        if loss.name in op.desc.writes:
            return op
    raise FluidValueError(f"no op computes the loss {loss.name!r}, so it has no gradient")


def _refuse_shared(program: Program) -> None:
    """Gradients go by name, so every name must mean one value."""
    if program._reused:
        raise FluidValueError(
            "memory_optimize let variables of this program share names, so it cannot be differentiated any more; "
            "call minimize or append_backward before memory_optimize"
        )


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., Any]] | None = None,
    checkpoints: Sequence[Variable] | None = None,
) -> list[tuple[Parameter, Variable]]:
    """Append the ops that compute d(loss)/d(parameter), starting from ``loss@GRAD`` = 1.

    loss: a variable of shape [1]. parameter_list: parameters (or names) wanted; default all trainable ones.
    no_grad_set: variables to treat as constants. callbacks: called as ``callback(block, context)`` for each gradient op.
    Returns (parameter, gradient) pairs in parameter order.

    Raises FluidTypeError for arguments of the wrong type; FluidValueError if there are parameters but no gradient
    reaches any of them; UnsupportedError for checkpoints, and for control flow on the path.
    """
    if not isinstance(loss, Variable):
        raise FluidTypeError(f"The type of 'loss' in fluid.backward.append_backward must be Variable, but received {type(loss)}.")
    if checkpoints:
        raise UnsupportedError("append_backward(checkpoints=...) is not supported; XLA decides what to recompute")
    if callbacks is not None and not (isinstance(callbacks, list | tuple) and all(map(callable, callbacks))):
        raise FluidTypeError("append_backward's callbacks are a list of functions")
    program = loss.block.program
    _refuse_shared(program)
    if program.current_block_idx != 0:
        raise UnsupportedError("append_backward inside a control-flow block is not supported; call it outside")
    names = _parameter_names(program, parameter_list)
    op = _loss_op(loss)
    op._set_attr(OP_ROLE, int(OpRole.Forward | OpRole.Loss))
    block = program.global_block()
    no_grad = _stopped(program, no_grad_set)
    path = _op_path(block, {loss.name}, set(), no_grad)
    no_grad |= _unused(block, path, {loss.name}, no_grad)
    _refuse_blocks(path)
    start = len(block.ops)
    seed = grad_name(loss.name)
    writer = _Writer(program, {seed}, {})
    drafts = writer.collect(path, {grad_name(n) for n in no_grad})
    if seed in block.vars:  # the loss was differentiated before
        writer.replaced[seed] = unique_name.generate(seed)
    _start_loss(block, loss, writer.replaced.get(seed, seed), op.desc.loc)
    grads = writer.write(drafts)
    for new in block.ops[start:] if callbacks else ():
        for callback in callbacks or ():
            callback(block=block, context={"__current_op_desc__": new.desc, "grad_to_var": writer.grad_to_var})
    pairs = [(block.vars[p], block.vars[grads[p]]) for p in names if p in grads]
    if names and not pairs:
        if not no_grad_set:
            raise FluidValueError(_no_path(block, loss, names, no_grad, {n for o in path for n in o.reads}))
    _mark_pairs(block, pairs, start)
    return pairs  # type: ignore[return-value]


def _no_path(block: Block, loss: Variable, names: list[str], no_grad: set[str], reached: set[str]) -> str:
    stopped = [n for n in reached if n in no_grad and n in block.vars and not block.vars[n].is_data]
    hint = f"; {stopped[0]!r} has stop_gradient" if stopped else ""
    return (
        f"no gradient reaches any parameter from the loss {loss.name!r}: none of {', '.join(names[:3])}"
        f"{', ...' if len(names) > 3 else ''} is connected to it by differentiable ops{hint}"
    )


def _parameter_names(program: Program, parameter_list: Any) -> list[str]:
    if parameter_list is None:
        return [p.name for p in program.global_block().all_parameters() if p.trainable]
    if isinstance(parameter_list, str):
        raise FluidTypeError(f"parameter_list is a list of parameters or names, not the string {parameter_list!r}")
    names = []
    for i, p in enumerate(parameter_list):
        if not isinstance(p, Variable | str):
            raise FluidTypeError(
                f"The type of 'parameter_list[{i}]' in fluid.backward.append_backward must be Variable or str, but received {type(p)}."
            )
        names.append(p if isinstance(p, str) else p.name)
    return names


def _start_loss(block: Block, loss: Variable, seed: str, loc: str | None) -> None:
    attrs = {"shape": (1,), "value": 1.0, "dtype": int(loss.dtype), "force_cpu": False, OP_ROLE: int(OpRole.Backward | OpRole.Loss)}
    program = block.program
    if seed not in block.vars:
        block.vars[seed] = Variable(block, VarDesc(seed, loss.desc.shape, loss.desc.dtype))
    desc = OpDesc(program._next_uid(), "fill_constant", FrozenMap(), FrozenMap({"Out": (seed,)}), FrozenMap(attrs), loc)
    block.ops.append(Operator(block, desc))


def _mark_pairs(block: Block, pairs: list[tuple[Variable, Variable]], start: int) -> None:
    """Note on the op that yields a parameter's gradient which pair it belongs to (op_role_var)."""
    last = {n: op for op in block.ops[start:] for n in op.desc.writes}
    for p, g in pairs:
        op = last[g.name]
        op._replace(attrs=op.desc.attrs.set(**{OP_ROLE_VAR: (p.name, g.name, *op.desc.attrs.get(OP_ROLE_VAR, ()))}))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Variable | str] | None = None
) -> list[Variable | None]:
    """Variables holding d(targets)/d(inputs), contracted with `target_gradients` (ones by default).

    Returns one variable per input, None for an input that the targets do not depend on. May be called again on its
    own results, for second derivatives.

    Raises FluidTypeError for arguments of the wrong type, FluidValueError where targets and target_gradients differ in
    number or shape.
    """
    for what, value in (("targets", targets), ("inputs", inputs)):
        if not all(isinstance(v, Variable) for v in _as_list(value)) or not isinstance(value, Variable | list | tuple):
            raise FluidTypeError(
                f"The type of '{what}' in fluid.backward.gradients must be Variable or list of Variables, but received {type(value)}."
            )
    outs, ins, given = _as_list(targets), _as_list(inputs), _as_list(target_gradients)
    given = given or [None] * len(outs)
    if len(given) != len(outs):
        raise FluidValueError(f"{len(outs)} targets need as many target_gradients, not {len(given)}")
    program, block = outs[0].block.program, outs[0].block.program.global_block()
    _refuse_shared(program)
    if any(v.block.program is not program for v in [*outs, *ins]):
        raise FluidValueError("targets and inputs of gradients() belong to one program")
    no_grad = _stopped(program, no_grad_set)
    path = _op_path(block, {t.name for t in outs}, {i.name for i in ins}, no_grad)
    _refuse_blocks(path)
    seeds, replaced = _start_targets(block, outs, given)
    writer = _Writer(program, seeds, replaced)
    grads = writer.write(writer.collect(path, {grad_name(n) for n in no_grad}))
    return [block.vars[grads[i.name]] if i.name in grads else None for i in ins]


def _start_targets(block: Block, targets: list[Variable], given: list[Variable | None]) -> tuple[set[str], dict[str, str]]:
    """Gradients that the targets start with: ones of the target's shape, or the caller's variables."""
    seeds: set[str] = set()
    replaced: dict[str, str] = {}
    for target, grad in zip(targets, given, strict=True):
        seed = grad_name(target.name)
        if grad is not None:
            if target.shape != grad.shape:
                raise FluidValueError(f"target {target.name!r} has shape {list(target.shape)}, its gradient {list(grad.shape)}")
            replaced[seed] = grad.name
            seeds |= {seed, grad.name}
            continue
        with block.program._role(OpRole.Backward):
            shape = block.create_var(name=target.name + "_shape", dtype="int32", shape=[len(target.shape)])
            block.append_op("shape", {"Input": target}, {"Out": shape})
            out = block.create_var(name=seed, dtype=target.dtype, shape=target.shape)
            attrs = {"shape": list(target.shape), "value": 1.0, "dtype": int(enum_of(target.dtype))}
            block.append_op("fill_constant", {"ShapeTensor": shape}, {"Out": out}, attrs)
            out.desc = VarDesc(seed, target.desc.shape, target.desc.dtype, lod_level=target.desc.lod_level)
        seeds.add(seed)
    return seeds, replaced


calc_gradient = gradients
