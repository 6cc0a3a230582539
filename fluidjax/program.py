"""Program, Block, Operator: Fluid's mutable handles over the frozen descs of ir/desc.py.

A handle never does more than hold a desc and replace it; :attr:`Program.desc` is the frozen value that passes, the
compiler and the printers work on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import unique_name
from .errors import FetchError, FluidError, FluidTypeError, FluidValueError, UnknownOpError, near
from .ir import edit, text
from .ir.desc import EMPTY, BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc
from .loc import name_line, user_line
from .ops.infer import Spec, infer
from .ops.registry import REQUIRED, OpDef, attr_type, canonical, lookup
from .ops.rows import lod_levels
from .ops.selected import DECIDES_KIND, kind_of_output
from .ops.selected import KIND as SPARSE
from .roles import OpRole
from .variable import Parameter, Variable, var_desc


class NameScope:
    """A tree of name scopes; a name used twice below one parent becomes ``name_1``."""

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._children: dict[str, int] = {}
        self._name = name
        self._parent = parent

    def child(self, prefix: str) -> NameScope:
        number = self._children.get(prefix, 0)
        self._children[prefix] = number + 1
        return NameScope(prefix if number == 0 else f"{prefix}_{number}", self)

    def parent(self) -> NameScope | None:
        return self._parent

    def full(self) -> str:
        """``/outer/inner/``; ``/`` at the root."""
        return "/" if self._parent is None else self._parent.full() + self._name + "/"


_name_scope = NameScope()


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Ops appended within the block carry ``op_namescope`` = ``/prefix/``."""
    global _name_scope
    if not prefix:
        raise FluidValueError("name_scope needs a name")
    _name_scope = _name_scope.child(prefix)
    try:
        yield
    finally:
        _name_scope = _name_scope.parent() or _name_scope


def _names(value: Any) -> tuple[str, ...]:
    """Names of a slot's value: a variable, a name, or a list of them."""
    if isinstance(value, str | Variable):
        value = (value,)
    result = []
    for v in value:
        if not isinstance(v, str | Variable):
            raise FluidTypeError(f"an op's slot takes variables or their names, not {type(v).__name__}")
        result.append(v if isinstance(v, str) else v.name)
    return tuple(result)


class Operator:
    """A handle on one op of a block."""

    __slots__ = ("block", "desc")

    def __init__(self, block: Block, desc: OpDesc) -> None:
        self.block = block
        self.desc = desc

    @property
    def type(self) -> str:
        return self.desc.type

    @property
    def input_names(self) -> list[str]:
        return sorted(self.desc.inputs)

    @property
    def output_names(self) -> list[str]:
        return sorted(self.desc.outputs)

    @property
    def input_arg_names(self) -> list[str]:
        return [n for names in self.desc.inputs.values() for n in names]

    @property
    def output_arg_names(self) -> list[str]:
        return [n for names in self.desc.outputs.values() for n in names]

    @property
    def attr_names(self) -> list[str]:
        return sorted(self.desc.attrs)

    @property
    def idx(self) -> int:
        """Position among the ops of the block."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    def input(self, name: str) -> list[str]:
        return list(self.desc.inputs.get(name, ()))

    def output(self, name: str) -> list[str]:
        return list(self.desc.outputs.get(name, ()))

    def has_attr(self, name: str) -> bool:
        return name in self.desc.attrs

    def attr(self, name: str) -> Any:
        """An attribute's value (lists as lists). Raises FluidValueError naming the nearest there is."""
        if name not in self.desc.attrs:
            raise FluidValueError(f"op '{self.type}' has no attribute {name!r}{near(name, self.desc.attrs)}")
        value = self.desc.attrs[name]
        return list(value) if isinstance(value, tuple) else value

    def all_attrs(self) -> dict[str, Any]:
        return {n: self.attr(n) for n in self.desc.attrs}

    def attr_type(self, name: str) -> str | None:
        return attr_type(self.type, name)

    def _block_attr_id(self, name: str) -> int:
        return self.desc.attrs[name].idx

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return [ref.idx for ref in self.desc.attrs[name]]

    def _block_attr(self, name: str) -> Block:
        return self.block.program.block(self._block_attr_id(name))

    def _replace(self, **changes: Any) -> None:
        self.desc = replace(self.desc, **changes)
        self.block.program._touch()

    def _set_attr(self, name: str, val: Any) -> None:
        self._replace(attrs=FrozenMap({**self.desc.attrs, name: canonical(lookup(self.type), name, val)}))

    def _remove_attr(self, name: str) -> None:
        self._replace(attrs=self.desc.attrs.without(name))

    def _rename_input(self, old_name: str, new_name: str) -> None:
        self._replace(inputs=_renamed(self.desc.inputs, old_name, new_name))

    def _rename_output(self, old_name: str, new_name: str) -> None:
        self._replace(outputs=_renamed(self.desc.outputs, old_name, new_name))

    def to_string(self, throw_on_error: bool = False) -> str:
        return str(self)

    def __str__(self) -> str:
        return text.op_text(self.desc)

    __repr__ = __str__


def _renamed(slots: FrozenMap, old: str, new: str) -> FrozenMap:
    return FrozenMap({s: tuple(new if n == old else n for n in names) for s, names in slots.items()})


class Block:
    """Variables by name and ops in order; a sub-block sees its ancestors' variables."""

    def __init__(self, program: Program, idx: int, parent: int = -1, forward: int = -1) -> None:
        self.program = program
        self.idx = idx
        self.parent_idx = parent
        self.forward_block_idx = forward
        self.vars: dict[str, Variable] = {}
        self.ops: list[Operator] = []

    @property
    def desc(self) -> BlockDesc:
        return BlockDesc(
            FrozenMap({n: v.desc for n, v in self.vars.items()}),
            tuple([op.desc for op in self.ops]),
            self.parent_idx,
            self.forward_block_idx,
        )

    def var(self, name: str) -> Variable:
        """The variable of this block. Raises FluidValueError if it has none of that name."""
        if not isinstance(name, str):
            raise FluidTypeError(f"var(name) takes a string, not {type(name).__name__}")
        if name not in self.vars:
            raise FluidValueError(f"var {name} not in this block{near(name, self.vars)}")
        return self.vars[name]

    def has_var(self, name: str) -> bool:
        return name in self.vars

    def _find_var_recursive(self, name: str) -> Variable | None:
        block: Block | None = self
        while block is not None:
            if name in block.vars:
                return block.vars[name]
            block = block.parent
        return None

    def _var_recursive(self, name: str) -> Variable:
        found = self._find_var_recursive(name)
        if found is None:
            raise FluidValueError(f"var {name} not in this block or the blocks around it{near(name, self.vars)}")
        return found

    @property
    def parent(self) -> Block | None:
        return None if self.parent_idx < 0 else self.program.blocks[self.parent_idx]

    def create_var(self, *_: Any, name: str | None = None, **kwargs: Any) -> Variable:
        """A variable of this block; the existing one when `name` is taken.

        Raises FluidValueError when that one has another shape or dtype than is asked for here.
        """
        if name is None:
            name = unique_name.generate("_generated_var")
        kwargs.pop("initializer", None)
        if name in self.vars:
            return self._same(self.vars[name], kwargs)
        return self._adopt(Variable(self, var_desc(name, **kwargs)))

    def _new_name(self, generate: Callable[[], str]) -> str:
        """A generated name; in a program that was loaded, one that no variable has.

        The generator only knows the names that it made, and a name met by chance would silently be the other variable.
        """
        name = generate()
        while self.program._loaded and self._find_var_recursive(name) is not None:
            name = generate()
        return name

    @staticmethod
    def _same(var: Variable, kwargs: Mapping[str, Any]) -> Variable:
        """`var`, where a second declaration of its name says nothing else."""
        wanted = var_desc(var.name, kwargs.get("shape"), kwargs.get("dtype"))
        for what in ("shape", "dtype"):
            old, new = getattr(var.desc, what), getattr(wanted, what)
            if None not in (old, new) and old != new:
                old, new = (list(v) if what == "shape" else v for v in (old, new))
                raise FluidValueError(
                    f"variable {var.name!r} exists with {what} {old}; it cannot be made again with {new} "
                    f"(at {user_line()}); give the second one another name"
                )
        return var

    def create_parameter(self, name: str, shape: Sequence[int], dtype: Any, **kwargs: Any) -> Parameter:
        """A Parameter of the global block.

        Raises FluidValueError for an unknown dimension, and when the name is taken by one of another shape or dtype.
        """
        block = self.program.global_block()
        desc = var_desc(
            name, shape, dtype, persistable=True, is_parameter=True, stop_gradient=bool(kwargs.get("stop_gradient", False)),
            trainable=bool(kwargs.get("trainable", True)),
        )  # fmt: skip
        if not desc.shape or any(n <= 0 for n in desc.shape):
            raise FluidValueError(f"parameter {name!r} needs a shape of positive dimensions, not {list(desc.shape or ())}")
        old = block.vars.get(name)
        if old is not None and (old.desc.shape, old.desc.dtype) != (desc.shape, desc.dtype):
            raise FluidValueError(
                f"parameter {name!r} exists with shape {list(old.shape)} and dtype {old.desc.dtype}; it cannot be made again "
                f"with shape {list(desc.shape)} and dtype {desc.dtype} (at {user_line()}); give the second one another name"
            )
        if isinstance(old, Parameter):
            return old
        param = Parameter(block, desc, **kwargs)
        block._adopt(param)
        return param

    def _adopt(self, var: Variable) -> Any:
        self.vars[var.name] = var
        self.program._touch()
        return var

    def _clone_variable(self, var: Variable, force_persistable: bool = True) -> Variable:
        """A copy of another block's variable in this one."""
        desc = replace(var.desc, persistable=True) if force_persistable else var.desc
        return self._adopt(Variable(self, replace(desc, is_parameter=False)))

    def all_parameters(self) -> list[Parameter]:
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def iter_parameters(self) -> Iterator[Parameter]:
        return iter(self.all_parameters())

    def _rename_var(self, name: str, new_name: str) -> Variable:
        """Rename a variable here and in every op of the program that sees it."""
        var = self.var(name)
        if new_name in self.vars:
            raise FluidValueError(f"cannot rename {name!r}: {new_name!r} exists in this block")
        self.vars = {(new_name if n == name else n): v for n, v in self.vars.items()}
        var.desc = replace(var.desc, name=new_name)
        for block in self.program.blocks:
            if block._find_var_recursive(new_name) is var:
                for op in block.ops:
                    op.desc = edit.rename_op(op.desc, {name: new_name})
        self.program._touch()
        return var

    def _remove_var(self, name: str) -> None:
        del self.vars[name]
        self.program._touch()

    def _remove_op(self, index: int) -> None:
        del self.ops[index]
        self.program._touch()

    def append_op(
        self, type: str | None = None, inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None, **_: Any,
    ) -> Operator:  # fmt: skip
        """Append an op: its outputs' shapes and dtypes are inferred.

        Raises UnknownOpError (op type, slot or attribute), ShapeError (what the op objects to), each naming the user's line.
        """
        op = self._make_op(type, inputs, outputs, attrs)
        self.ops.append(op)
        return op

    def _prepend_op(self, type: str | None = None, inputs: Any = None, outputs: Any = None, attrs: Any = None, **_: Any) -> Operator:
        return self._insert_op(0, type, inputs, outputs, attrs)

    def _insert_op(
        self, index: int, type: str | None = None, inputs: Any = None, outputs: Any = None, attrs: Any = None, **_: Any
    ) -> Operator:
        op = self._make_op(type, inputs, outputs, attrs)
        self.ops.insert(index, op)
        return op

    def _make_op(self, kind: str | None, inputs: Any, outputs: Any, attrs: Any) -> Operator:
        loc = user_line()
        try:
            if kind is None:
                raise FluidValueError("append_op needs a type")
            definition = lookup(kind)
            ins = _slots(definition, "input", definition._input_names, inputs)
            outs = _slots(definition, "output", definition._output_names, outputs)
            desc = OpDesc(self.program._next_uid(), kind, ins, outs, self._attrs(definition, attrs), loc)
            _check_required(definition, desc)
            if self.program._reused:
                self.program._refuse_reused(desc.reads)
            self._infer(definition, desc)
        except FluidError as exc:
            name_line(exc, loc)
            raise
        self.program._touch()
        return Operator(self, desc)

    def _attrs(self, definition: OpDef, attrs: Any) -> FrozenMap:
        program = self.program
        result = dict(definition.defaults)
        for name, value in (attrs or {}).items():
            if value is not None:
                result[name] = canonical(definition, name, value)
        result.setdefault("op_role", program._op_role)
        if program._op_role_var and "op_role_var" not in result:
            result["op_role_var"] = tuple(program._op_role_var)
        if _name_scope._parent is not None:
            result.setdefault("op_namescope", _name_scope.full())
        return FrozenMap(result)

    def _infer(self, definition: OpDef, desc: OpDesc) -> None:
        """Give the outputs of `desc` their shapes and dtypes; check that every name exists."""
        specs = {slot: self._specs(definition, slot, names) for slot, names in desc.inputs.items() if names}
        for n in desc.writes:
            self._var_recursive(n)
        if not _inferable(definition, desc) or None in specs.values():
            return
        self._pass_kind(desc)
        inferred = infer(definition, specs, desc.attrs)
        for slot, spec in inferred.items():
            many = spec if isinstance(spec, tuple) else (spec,)
            for name, one in zip(desc.outputs.get(slot, ()), many, strict=False):
                if one is not None and name != EMPTY:
                    self._settle(self._var_recursive(name), one)
        self._pass_lod(definition, desc, specs, inferred)

    def _pass_kind(self, desc: OpDesc) -> None:
        """Say which outputs are sparse rows."""
        if desc.type not in DECIDES_KIND:
            return
        kinds = [self._var_recursive(n).desc.kind for n in desc.input("X") if n != EMPTY]
        kind = kind_of_output(desc.type, desc.attrs, kinds)
        for name in desc.writes:
            var = self._var_recursive(name)
            if kind is not None and var.desc.kind != kind and {kind, var.desc.kind} == {"LOD_TENSOR", SPARSE}:
                var._replace(kind=kind)

    def _pass_lod(self, definition: OpDef, desc: OpDesc, specs: Mapping[str, Any], inferred: Mapping[str, Any]) -> None:
        """Give the outputs the lod_level of the input whose LoD they will have."""
        levels = {slot: self._var_recursive(names[0]).desc.lod_level for slot, names in desc.inputs.items() if names}
        if not any(levels.values()) and definition.type != "lod_reset":
            return
        for slot, level in lod_levels(definition, levels, specs, inferred, definition.arguments(desc.attrs)).items():
            for name in desc.outputs.get(slot, ()):
                if name != EMPTY:
                    self._var_recursive(name).lod_level = level

    def _specs(self, definition: OpDef, slot: str, names: tuple[str, ...]) -> Any:
        specs = []
        for name in names:
            if name == EMPTY:
                return None
            desc = self._var_recursive(name).desc
            if desc.shape is None or desc.dtype is None:
                return None
            specs.append(Spec(desc.shape, desc.dtype))
        return tuple(specs) if slot in definition._many_inputs else specs[0]

    def _settle(self, var: Variable, spec: Spec) -> None:
        """The inferred type becomes the variable's; a persistable one keeps what it was declared with."""
        desc = var.desc
        if desc.persistable and desc.shape is not None and desc.dtype is not None:
            return
        if desc.shape != spec.shape or desc.dtype != spec.dtype:
            # Spelt out: dataclasses.replace would be a tenth of the time that an op takes to append.
            var.desc = VarDesc(
                desc.name, spec.shape, spec.dtype, desc.kind, desc.lod_level, desc.persistable, desc.stop_gradient,
                desc.is_data, desc.need_check_feed, desc.is_parameter, desc.trainable,
            )  # fmt: skip

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        return text.block_text(self.program.desc, self.idx)

    def __str__(self) -> str:
        return self.to_string()

    __repr__ = __str__


def _inferable(definition: OpDef, desc: OpDesc) -> bool:
    """False where nothing is to be inferred: ops without a function, and updates in place."""
    if definition.fn is None:
        return False
    return not (definition.inplace and all(
        desc.inputs.get(definition.inplace.get(slot, "")) == names for slot, names in desc.outputs.items()
    ))  # fmt: skip


def _slots(definition: OpDef, what: str, known: frozenset[str], given: Any) -> FrozenMap:
    result = {}
    for slot, value in (given or {}).items():
        if value is None:
            continue
        if slot not in known:
            there = ", ".join(sorted(known))
            raise UnknownOpError(f"op '{definition.type}' has no {what} slot {slot!r}{near(slot, known)}; it has {there}")
        names = _names(value)
        if names:
            result[slot] = names
    return FrozenMap(result)


def _check_required(definition: OpDef, desc: OpDesc) -> None:
    for slot in definition.inputs:
        names = desc.inputs.get(slot.name)
        if names is None:
            if not slot.optional and not slot.many:
                raise FluidValueError(f"op '{desc.type}' needs input {slot.name}")
        elif len(names) > 1 and not slot.many:
            raise FluidValueError(f"op '{desc.type}' takes one variable as {slot.name}, not {len(names)}")
    for name, attr in definition.attrs.items():
        if attr.default is REQUIRED and name not in desc.attrs:
            raise UnknownOpError(f"op '{desc.type}' needs attribute {name!r}")


class Program:
    """A static program: blocks of ops over named variables. Print it, rewrite it, run it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = [Block(self, 0)]
        self.current_block_idx = 0
        self._seed = 0
        self._op_role: int = int(OpRole.Forward)
        self._op_role_var: list[str] = []
        self._uid = 0
        self._version = 0
        self._grad_calls = 0  # how often the program was differentiated: names of higher gradients depend on it
        self._loaded = False  # it came from a file, so names in it may be those that are generated next
        self._desc: ProgramDesc | None = None
        self._readers: list[Any] = []  # loaders that feed every run (DataLoader with iterable=False)
        self._reused: dict[str, str] = {}  # variables that share a name since memory_optimize, and that name
        self._memory_optimized = False  # compile it with the scheduler that saves memory
        self._trainers_endpoints: list[str] = []  # nccl2 mode: where the trainers are, in order of their numbers
        self._nccl_comm_num, self._use_hierarchical_allreduce, self._hierarchical_allreduce_inter_nranks = 1, False, 0
        self._before: Program | None = None  # of a trainer's startup program in a job: as it was before transpile
        self._pserver_plan: Any = None  # of a job's program: the dist.pserver_plan.PserverPlan that it belongs to

    def _touch(self) -> None:
        self._version += 1
        self._desc = None

    def _next_uid(self) -> int:
        self._uid += 1
        return self._uid - 1

    @property
    def desc(self) -> ProgramDesc:
        """The frozen value of the program as it stands."""
        if self._desc is None:
            self._desc = ProgramDesc(tuple(b.desc for b in self.blocks), self._seed)
        return self._desc

    @classmethod
    def from_desc(cls, desc: ProgramDesc, like: Program | None = None) -> Program:
        """A program that holds `desc`; parameters take their Python-side attributes from those of `like`."""
        program = cls()
        program.blocks = []
        program._seed = desc.seed
        known = {p.name: p for p in like.all_parameters()} if like is not None else {}
        for idx, b in enumerate(desc.blocks):
            block = Block(program, idx, b.parent, b.forward)
            for name, d in b.vars.items():
                extra = known[name].extra() if name in known else {}
                block.vars[name] = Parameter(block, d, **extra) if d.is_parameter else Variable(block, d)
            block.ops = [Operator(block, o) for o in b.ops]
            program.blocks.append(block)
        program._uid = 1 + edit.max_uid(desc)
        program._desc = desc
        return program

    def _set_desc(self, desc: ProgramDesc) -> None:
        """Become what `desc` says, in place; handles of variables that stay are kept."""
        fresh = Program.from_desc(desc, like=self)
        for old, new in zip(self.blocks, fresh.blocks, strict=False):
            for name, var in old.vars.items():
                if name in new.vars and type(var) is type(new.vars[name]):
                    var.desc, var.block = new.vars[name].desc, new
                    new.vars[name] = var
        for block in fresh.blocks:
            block.program = self
        self.blocks, self._seed, self._uid = fresh.blocks, fresh._seed, max(self._uid, fresh._uid)
        self.current_block_idx = min(self.current_block_idx, len(self.blocks) - 1)
        self._touch()

    @property
    def random_seed(self) -> int:
        """0: a new seed in every process; otherwise runs of the program repeat exactly."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int):
            raise FluidValueError("Program.random_seed's input seed must be an integer")
        self._seed = seed
        self._touch()

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    def global_block(self) -> Block:
        return self.blocks[0]

    def block(self, index: int) -> Block:
        return self.blocks[index]

    def current_block(self) -> Block:
        return self.blocks[self.current_block_idx]

    def _create_block(self, parent_idx: int | None = None) -> Block:
        parent = self.current_block_idx if parent_idx is None else parent_idx
        block = Block(self, len(self.blocks), parent)
        self.blocks.append(block)
        self.current_block_idx = block.idx
        self._touch()
        return block

    def _rollback(self) -> None:
        self.current_block_idx = self.current_block().parent_idx

    def list_vars(self) -> Iterator[Variable]:
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        return [p for block in self.blocks for p in block.all_parameters()]

    def clone(self, for_test: bool = False) -> Program:
        """A copy that shares nothing that changes; `for_test` drops backward and update ops and sets is_test."""
        return self._copy(edit.for_test(self.desc) if for_test else self.desc)

    def _copy(self, desc: ProgramDesc) -> Program:
        copy = Program.from_desc(desc, like=self)
        copy._uid = max(copy._uid, self._uid)
        copy.current_block_idx = min(self.current_block_idx, len(copy.blocks) - 1)
        copy._grad_calls, copy._readers = self._grad_calls, list(self._readers)
        copy._loaded = self._loaded
        copy._op_role, copy._op_role_var = self._op_role, list(self._op_role_var)
        copy._reused, copy._memory_optimized = dict(self._reused), self._memory_optimized
        copy._pserver_plan, copy._trainers_endpoints = self._pserver_plan, list(self._trainers_endpoints)
        copy._nccl_comm_num, copy._use_hierarchical_allreduce = self._nccl_comm_num, self._use_hierarchical_allreduce
        copy._hierarchical_allreduce_inter_nranks = self._hierarchical_allreduce_inter_nranks
        return copy

    def _refuse_reused(self, names: Iterable[str]) -> None:
        """Raises FetchError for a variable whose value is lost, since it shares its memory with others."""
        for name in names if self._reused else ():
            if name in self._reused:
                now = self._reused[name]
                how = "other variables took its memory" if now == name else f"it was merged into {now!r}"
                raise FetchError(
                    f"variable {name!r} does not keep its value: {how} in memory_optimize; "
                    "name it in skip_opt_set there"
                )

    def _prune(self, targets: Any) -> Program:
        """The ops that `targets` (variables, ops, names) need, as a new program."""
        return self._prune_with_input([], targets)

    def _prune_with_input(self, feeded_var_names: Sequence[str], targets: Any) -> Program:
        """As _prune, but what is fed is not computed."""
        names: list[str] = []
        for t in targets if isinstance(targets, list | tuple) else [targets]:
            if isinstance(t, Operator):
                names += [n for n in t.output_arg_names if n != EMPTY]
            elif isinstance(t, Variable | str):
                names.append(t if isinstance(t, str) else t.name)
            else:
                raise FluidValueError(
                    f"All targets of Program._prune_with_input() can only be Variable or Operator, but received {type(t)}."
                )
        self._refuse_reused(names)
        for name in [*names, *feeded_var_names]:
            self.global_block()._var_recursive(name)
        return self._copy(edit.prune(self.desc, names, tuple(feeded_var_names)))

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        return text.to_text(self.desc)

    def __str__(self) -> str:
        return text.to_text(self.desc)

    def __repr__(self) -> str:
        return f"<{text.summary(self.desc)}>"

    def _repr_html_(self) -> str:
        from .ir.show import to_html

        return to_html(self.desc)

    def serialize_to_string(self) -> bytes:
        """The program as Paddle's ProgramDesc protobuf (what ``__model__`` and ``.pdmodel`` files hold)."""
        from .ir.proto import to_bytes

        return to_bytes(self.desc, attr_type)

    @staticmethod
    def parse_from_string(data: bytes) -> Program:
        """The program in Paddle's ProgramDesc protobuf. Raises ParseError, and nothing else, for bytes that hold none."""
        from .ir.proto import from_bytes

        program = Program.from_desc(from_bytes(data))
        program._loaded = True
        return program

    @contextlib.contextmanager
    def _role(self, role: int, role_var: Iterable[Any] = ()) -> Iterator[None]:
        """Ops appended within carry this op_role and op_role_var."""
        old = self._op_role, self._op_role_var
        self._op_role, self._op_role_var = int(role), list(_names(list(role_var)))
        try:
            yield
        finally:
            self._op_role, self._op_role_var = old

    def _optimized_guard(self, param_and_grads: Any) -> Any:
        return self._role(OpRole.Optimize, param_and_grads)

    def _backward_role_guard(self) -> Any:
        return self._role(OpRole.Backward)

    def _lr_schedule_guard(self, is_with_opt: bool = False) -> Any:
        return self._role(OpRole.LRSched | (OpRole.Optimize if is_with_opt else 0))


_main_program = Program()
_startup_program = Program()


def default_main_program() -> Program:
    """The program that layers are appended to."""
    return _main_program


def default_startup_program() -> Program:
    """The program that initialises the parameters."""
    return _startup_program


def switch_main_program(program: Program) -> Program:
    """Make `program` the default main program; return the one that was."""
    global _main_program
    old, _main_program = _main_program, program
    return old


def switch_startup_program(program: Program) -> Program:
    """Make `program` the default startup program; return the one that was."""
    global _startup_program
    old, _startup_program = _startup_program, program
    return old


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Layers within the block go to these programs."""
    for what, p in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(p, Program) and not (p is None and what == "startup_program"):
            raise FluidTypeError(f"program_guard's {what} is a Program, not {type(p).__name__}")
    old_main = switch_main_program(main_program)
    old_startup = switch_startup_program(startup_program) if startup_program is not None else None
    try:
        yield
    finally:
        switch_main_program(old_main)
        if old_startup is not None:
            switch_startup_program(old_startup)


def as_program(program: Program | None) -> Program:
    """`program`, or the default main program for None. Raises FluidTypeError for anything else."""
    if program is None:
        return default_main_program()
    if not isinstance(program, Program):
        raise FluidTypeError(f"expected a Program, got {type(program).__name__}")
    return program


__all__ = [
    "Block", "BlockRef", "NameScope", "OpRole", "Operator", "Parameter", "Program", "VarDesc", "Variable",
    "as_program", "default_main_program", "default_startup_program", "name_scope", "program_guard",
    "switch_main_program", "switch_startup_program",
]  # fmt: skip
