"""Block: variables by name and ops in order, as Fluid's mutable handle; appending an op checks and
infers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import unique_name
from ..base.loc import name_line, user_line, warn
from ..errors import (
    ArgumentError,
    FluidError,
    FluidTypeError,
    FluidValueError,
    ShapeError,
    UnknownOpError,
    near,
)
from ..ir import edit, text
from ..ir.desc import EMPTY, BlockDesc, BlockRef, FrozenMap, OpDesc, VarDesc
from ..ops.infer import Spec, infer
from ..ops.kinds import decides_kind, kind_of_output
from ..ops.registry import REQUIRED, OpDef, canonical, lookup
from ..ops.rows import lod_levels, makes_lod
from ..ops.selected import KIND as SPARSE
from .device_guard import current_device
from .name_scope import current_name_scope
from .operator import Operator
from .variable import Parameter, Variable, check_flags, names_of, var_desc

if TYPE_CHECKING:
    from .program import Program


class Block:
    """Variables by name and ops in order; a sub-block sees its ancestors' variables, a gradient
    block its forward block's.
    """

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
            FrozenMap({n: v.plain for n, v in self.vars.items()}),
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
        """The variable of this block, of its forward block, of its parent, or of the blocks around
        these; the nearest one is found first.
        """
        if (found := self.vars.get(name)) is not None:
            return found
        near: list[Block] = [self]
        for block in near:  # the list grows
            for idx in (block.forward_block_idx, block.parent_idx):
                if idx >= 0:
                    around = self.program.blocks[idx]
                    if (found := around.vars.get(name)) is not None:
                        return found
                    if around not in near:  # blocks of a program from a file may be circular
                        near.append(around)
        return None

    def _var_recursive(self, name: str) -> Variable:
        found = self._find_var_recursive(name)
        if found is None:
            raise FluidValueError(
                f"var {name} not in this block or the blocks around it{near(name, self.vars)}"
            )
        return found

    @property
    def parent(self) -> Block | None:
        return None if self.parent_idx < 0 else self.program.blocks[self.parent_idx]

    def create_var(self, *_: Any, name: str | None = None, **kwargs: Any) -> Variable:
        """A variable of this block; the existing one when `name` is taken. initializer: appends its
        op to this block.

        Raises FluidValueError if the existing variable has another shape, dtype, lod_level, type or
        persistable.
        """
        if name is None:
            name = unique_name.generate("_generated_var")
        fill = kwargs.pop("initializer", None)
        if name in self.vars:
            var = self._same(self.vars[name], kwargs)
        else:
            var = self._adopt(Variable.of(self, var_desc(name, **kwargs)))
        if fill is not None:
            fill(var, self)
        return var

    def new_name(self, generate: Callable[[], str]) -> str:
        """A generated name. In a loaded program, a name that no variable has.

        The generator only knows the names that it made itself. If it generated the name of an
        existing variable, the new variable would silently be that one.
        """
        name = generate()
        while self.program.info.loaded and self._find_var_recursive(name) is not None:
            name = generate()
        return name

    @staticmethod
    def _same(var: Variable, kwargs: Mapping[str, Any]) -> Variable:
        """`var`, if a second declaration of its name agrees with the first. stop_gradient is set
        anew.
        """
        said = {what: given for what, given in kwargs.items() if given is not None}
        wanted = var_desc(var.name, **said)
        for what in said.keys() & {"shape", "dtype", "lod_level", "type", "persistable"}:
            field = "kind" if what == "type" else what
            old, new = getattr(var.plain, field), getattr(wanted, field)
            if old is not None and old != new:
                old, new = (list(v) if what == "shape" else v for v in (old, new))
                raise FluidValueError(
                    f"variable {var.name!r} exists with {what} {old}; it cannot be made again with"
                    f" {new} (at {user_line()}); give the second one another name"
                )
        if "stop_gradient" in said:
            var.stop_gradient = wanted.stop_gradient
        return var

    def create_parameter(
        self, name: str | None = None, shape: Any = None, dtype: Any = None, **kwargs: Any
    ) -> Parameter:
        """A Parameter of the global block, named by a counter if it has no name. initializer:
        appends its op to this block, unless an op here fills the parameter already.

        Raises FluidValueError for an unknown dimension, for a missing dtype, and if a variable of
        this name has another shape or dtype.
        """
        if name is None:
            name = unique_name.generate("_generated_var")
        if dtype is None:
            raise FluidValueError(f"parameter {name!r} needs a dtype, such as 'float32'")
        block = self.program.global_block()
        desc = var_desc(
            name, shape, dtype, persistable=True, is_parameter=True, stop_gradient=bool(kwargs.get("stop_gradient", False)),
            trainable=bool(kwargs.get("trainable", True)),
        )  # fmt: skip
        if not desc.shape or any(n <= 0 for n in desc.shape):
            kind = (
                ArgumentError
                if isinstance(shape, list | tuple) and None in shape
                else FluidValueError
            )
            raise kind(
                f"parameter {name!r} needs a shape of positive dimensions, not"
                f" {list(desc.shape or ())}"
            )
        old = block.vars.get(name)
        if old is not None and (old.plain.shape, old.plain.dtype) != (desc.shape, desc.dtype):
            raise FluidValueError(
                f"parameter {name!r} exists with shape {list(old.shape)} and dtype"
                f" {old.plain.dtype}; it cannot be made again with shape {list(desc.shape)} and"
                f" dtype {desc.dtype} (at {user_line()}); give the second one another name"
            )
        param = (
            old if isinstance(old, Parameter) else block._adopt(Parameter(block, desc, **kwargs))
        )
        fill = kwargs.get("initializer")
        if fill is not None and (
            old is None or not any(name in op.output_arg_names for op in self.ops)
        ):
            fill(param, self)
        return param

    def _adopt(self, var: Variable) -> Any:
        self.vars[var.name] = var
        self.program.touch()
        return var

    def _clone_variable(self, var: Variable, force_persistable: bool = True) -> Variable:
        """A copy of another block's variable in this one."""
        desc = replace(var.plain, persistable=True) if force_persistable else var.plain
        return self._adopt(Variable.of(self, replace(desc, is_parameter=False)))

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
        var.desc = replace(var.plain, name=new_name)
        for block in self.program.blocks:
            if block._find_var_recursive(new_name) is var:
                for op in block.ops:
                    op.desc = edit.rename_op(op.desc, {name: new_name})
        self.program.touch()
        return var

    def _remove_var(self, name: str) -> None:
        del self.vars[name]
        self.program.touch()

    def _remove_op(self, index: int) -> None:
        del self.ops[index]
        self.program.touch()

    def _slice_ops(self, start: int, end: int) -> list[Operator]:
        """The ops from `start` to before `end`."""
        return self.ops[start:end]

    def append_op(
        self, type: str | None = None, inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None, **_: Any,
    ) -> Operator:  # fmt: skip
        """Append an op, and infer the shapes and dtypes of its outputs.

        Raises UnknownOpError for an unknown op type, slot or attribute, ShapeError for inputs that
        do not fit the op. Both name the user's line.
        """
        op = self._make_op(type, inputs, outputs, attrs)
        self.ops.append(op)
        return op

    def _prepend_op(
        self,
        type: str | None = None,
        inputs: Any = None,
        outputs: Any = None,
        attrs: Any = None,
        **_: Any,
    ) -> Operator:
        return self._insert_op(0, type, inputs, outputs, attrs)

    def _insert_op(
        self,
        index: int,
        type: str | None = None,
        inputs: Any = None,
        outputs: Any = None,
        attrs: Any = None,
        **_: Any,
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
            ins = _slots(definition, "input", definition.input_names, inputs)
            outs = _slots(definition, "output", definition.output_names, outputs)
            desc = OpDesc(
                self.program.next_uid(), kind, ins, outs, self._attrs(definition, attrs), loc
            )
            _check_required(definition, desc)
            self.program.info.refuse_lost(desc.reads)
            self._infer(definition, desc)
        except FluidError as exc:
            name_line(exc, loc)
            raise
        self.program.touch()
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
        scope = current_name_scope()
        if scope.parent() is not None:
            result.setdefault("op_namescope", scope.full())
        if (device := current_device()) is not None:
            if any(isinstance(value, BlockRef) for value in result.values()):
                warn(
                    f"device_guard sets no device of op '{definition.type}', only of its block's ops"
                )
            else:
                result.setdefault("op_device", device)
        return FrozenMap(result)

    def _infer(self, definition: OpDef, desc: OpDesc) -> None:
        """Set the shapes and dtypes of the outputs of `desc`; check that every name exists."""
        own = definition.control.outside
        given = {
            s: names
            for s, names in desc.inputs.items()
            if names and s not in own and not self._is_kernel_state(names)
        }
        specs = {slot: self._specs(definition, slot, names) for slot, names in given.items()}
        for n in desc.writes:
            self._var_recursive(n)
        if not _inferable(definition, desc) or None in specs.values():
            return
        if decides_kind(definition):
            self._pass_kind(desc)
        inferred = infer(definition, specs, desc.attrs)
        for slot, spec in inferred.items():
            many = spec if isinstance(spec, tuple) else (spec,)
            named = len(desc.outputs.get(slot, many))
            if many and named != len(many) and definition.forward is None:
                raise ShapeError(
                    f"op '{desc.type}' gives {len(many)} {slot} here, and its {slot} names {named}"
                )
            for name, one in zip(desc.outputs.get(slot, ()), many, strict=False):
                if one is not None and name != EMPTY:
                    self._store_type(self._var_recursive(name), one)
        self._pass_lod(definition, desc, specs, inferred)

    def _pass_kind(self, desc: OpDesc) -> None:
        """Mark the outputs that are sparse rows."""
        kinds = [self._var_recursive(n).plain.kind for n in desc.input("X") if n != EMPTY]
        for slot, name in (
            (s, n) for s, names in desc.outputs.items() for n in names if n != EMPTY
        ):
            kind, var = (
                kind_of_output(desc.type, desc.attrs, kinds, slot),
                self._var_recursive(name),
            )
            if (
                kind is not None
                and var.plain.kind != kind
                and {kind, var.plain.kind} == {"LOD_TENSOR", SPARSE}
            ):
                var.change(kind=kind)

    def _pass_lod(
        self, definition: OpDef, desc: OpDesc, specs: Mapping[str, Any], inferred: Mapping[str, Any]
    ) -> None:
        """Set each output's lod_level to that of the input whose LoD it will have."""
        levels = {
            slot: self._var_recursive(names[0]).plain.lod_level
            for slot, names in desc.inputs.items()
            if names
        }
        if not any(levels.values()) and not makes_lod(definition):
            return
        for slot, level in lod_levels(
            definition, levels, specs, inferred, definition.arguments(desc.attrs)
        ).items():
            for name in desc.outputs.get(slot, ()):
                if name != EMPTY:
                    self._var_recursive(name).lod_level = level

    def _specs(self, definition: OpDef, slot: str, names: tuple[str, ...]) -> Any:
        specs = []
        for name in names:
            if name == EMPTY:
                return None
            desc = self._var_recursive(name).plain
            if desc.kind == "LOD_RANK_TABLE":
                specs.append(Spec((), "int64"))
                continue
            # the op checks it itself
            if desc.shape is None and desc.dtype is not None and slot in definition.traits.counters:
                specs.append(Spec((-1,), desc.dtype))
                continue
            if desc.shape is None or desc.dtype is None:
                return None
            shape = (
                desc.shape
                if min(desc.shape, default=0) >= -1
                else tuple(max(n, -1) for n in desc.shape)
            )
            specs.append(Spec(shape, desc.dtype))
        return tuple(specs) if slot in definition.many_inputs else specs[0]

    def _is_kernel_state(self, names: Sequence[str]) -> bool:
        """Whether these variables hold the internal state of a Paddle kernel (such as a
        cudnn_lstm's Cache).
        """
        return all(n != EMPTY and self._var_recursive(n).plain.kind == "RAW" for n in names)

    def _store_type(self, var: Variable, spec: Spec) -> None:
        """Store the inferred type in the variable; a persistable variable keeps its declared
        type.
        """
        desc = var.plain
        if desc.persistable and desc.shape is not None and desc.dtype is not None:
            return
        if desc.shape != spec.shape or desc.dtype != spec.dtype:
            # Written out, because dataclasses.replace would take a tenth of the time of an append.
            var.desc = VarDesc(
                desc.name, spec.shape, spec.dtype, desc.kind, desc.lod_level, desc.persistable, desc.stop_gradient,
                desc.is_data, desc.need_check_feed, desc.is_parameter, desc.trainable,
            )  # fmt: skip

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """The printed block; `with_details`: also, as comments, the attributes of its variables
        that no desc holds.
        """
        check_flags(throw_on_error, with_details)
        printed = text.block_text(self.program.desc, self.idx)
        return f"{printed}\n{self.details()}" if with_details else printed

    def details(self) -> str:
        """A comment for each variable with its attributes that are not in its desc."""
        return "".join(f"# {name}: {var.details()}\n" for name, var in self.vars.items())

    def __str__(self) -> str:
        return self.to_string()

    __repr__ = __str__


def _inferable(definition: OpDef, desc: OpDesc) -> bool:
    """False if nothing can be inferred: ops without a function or a rule, and updates in place."""
    if definition.fn is None and definition.infer is None:
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
            raise UnknownOpError(
                f"op '{definition.type}' has no {what} slot {slot!r}{near(slot, known)}; it has"
                f" {there}"
            )
        names = names_of(value)
        if names:
            result[slot] = names
    return FrozenMap(result)


def _check_required(definition: OpDef, desc: OpDesc) -> None:
    for slot in definition.inputs:
        names = desc.inputs.get(slot.name)
        if names is None:
            if not slot.optional and not slot.many:
                raise ArgumentError(f"op '{desc.type}' needs input {slot.name}")
        elif len(names) > 1 and not slot.many:
            raise FluidValueError(
                f"op '{desc.type}' takes one variable as {slot.name}, not {len(names)}"
            )
    for name, attr in definition.attrs.items():
        if attr.default is REQUIRED and name not in desc.attrs:
            raise UnknownOpError(f"op '{desc.type}' needs attribute {name!r}")
