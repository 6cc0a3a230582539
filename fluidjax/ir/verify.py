"""Checks that a program is well formed. :func:`verify` reports a fault in one sentence, with the
ops around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NoReturn, Protocol

from ..base.dtypes import KINDS, NAMES
from ..errors import FluidValueError, VerifyError, near
from . import dims, text, walk
from .desc import EMPTY, BlockDesc, BlockRef, OpDesc, ProgramDesc, VarDesc
from .gradients import Gradients

_PLAIN = (bool, float)  # types of attributes that allow every value
_AROUND = 10  # ops shown on either side of a fault
# Their inputs come over the network, or only name values of a peer.
_REMOTE = frozenset({"send", "listen_and_serv"})
_QUEUES = frozenset({"create_py_reader"})  # their inputs name queues that no block declares


class SlotLike(Protocol):
    """A slot of an op type, as ops.registry.Slot is."""

    @property
    def name(self) -> str: ...
    @property
    def many(self) -> bool: ...
    @property
    def optional(self) -> bool: ...


class OpDefLike(Protocol):
    """The attributes and methods of an op type that verify uses, as in ops.registry.OpDef."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...
    @property
    def outputs(self) -> tuple[Any, ...]: ...
    @property
    def forward(self) -> str | None: ...
    @property
    def grad(self) -> Any: ...
    @property
    def reuse(self) -> tuple[Any, ...]: ...
    def attr_type(self, name: str) -> str | None: ...


Lookup = Callable[[str], OpDefLike]


def verify(desc: ProgramDesc, lookup: Lookup | None = None) -> None:
    """Check `desc`; with `lookup` (op type -> OpDef, raising for an unknown type) also slots and
    attributes.

    Raises VerifyError with a note that shows the ops on either side of the fault. The rules:

    * block 0 is the root, parents come before their children, and a block that an op refers to is
      below the op's block;
    * uids are different ints; names and types are non-empty strings that can be written as UTF-8;
    * shapes are ints >= -1, dtypes and kinds those of dtypes.py;
    * an op's names are declared in its block, an ancestor, or (in a gradient block) the forward
      block; a gradient that a sub-block uses need not be, as it may live between two steps of a
      loop, nor one that an op with a block names, as results of the block that nobody uses have
      none;
    * in block 0 no tensor is read before an op wrote it, unless it is persistable, data, or a
      gradient, which may be missing and then counts as zero; ops that talk to other processes
      (send, listen_and_serv) may read anything;
    * with `lookup`: types, slots and attributes are known; slots that are neither optional,
      repeatable nor intermediate hold a variable; attributes are of the op type's types;
    * with `lookup`: a gradient op of block 0 differentiates an op of its forward type: what it
      takes of a forward op, or has the gradient of, is not made by an op of another type with
      another gradient;
    * open sizes (dims.py) are named where a dimension is unknown, and those in attributes follow
      from those of what is fed or persists;
    * attributes hold bools, ints of 64 bits, floats, strings, block references, or tuples of one of
      these.
    """
    _Checker(desc, lookup).run()


class _Checker:
    def __init__(self, desc: ProgramDesc, lookup: Lookup | None) -> None:
        self.desc, self.lookup = desc, lookup
        self.defs: dict[str, OpDefLike] = {}
        self.slots: dict[tuple[str, bool], dict[str, SlotLike]] = {}
        # names of slots that hold a variable
        self.needed: dict[tuple[str, bool], tuple[str, ...]] = {}
        self.kinds: dict[tuple[str, str], str | None] = {}  # by op type and name of attribute
        self.sound: set[str] = set()  # names of attributes that were checked
        self.uids: dict[int, tuple[int, int]] = {}
        self.scopes: list[list[dict[str, VarDesc]]] = []

    def run(self) -> None:
        self.tree()
        for idx, block in enumerate(self.desc.blocks):
            for name, var in block.vars.items():
                if problem := _var_problem(name, var):
                    raise VerifyError(f"block {idx}: variable {name!r}: {problem}")
        for idx, block in enumerate(self.desc.blocks):
            for at, op in enumerate(block.ops):
                self.op(idx, at, op)
        if problem := walk.misnested(self.desc):
            raise VerifyError(problem)
        self.written_first()
        if self.lookup:
            for found in Gradients(self.desc, self.lookup).mismatches[:1]:
                self.fail(0, found.at, str(found))

    def fail(self, idx: int, at: int, problem: str) -> NoReturn:
        """Raise about op `at` of block `idx`."""
        op = self.desc.blocks[idx].ops[at]
        where = f" ({op.loc})" if op.loc else ""
        error = VerifyError(f"block {idx}, op {at} '{op.type}'{where}: {problem}")
        error.add_note(context(self.desc.blocks[idx], at))
        raise error

    def tree(self) -> None:
        blocks = self.desc.blocks
        if type(self.desc.seed) is not int:
            raise VerifyError(f"the seed is {self.desc.seed!r}; it must be an int")
        if not blocks or blocks[0].parent != -1:
            raise VerifyError("a program needs a block 0, and that has no parent")
        for idx, block in enumerate(blocks):
            if idx and not 0 <= block.parent < idx:
                raise VerifyError(
                    f"block {idx}: its parent is {block.parent}; it must be a block before it"
                )
            if not -1 <= block.forward < len(blocks) or block.forward == idx:
                raise VerifyError(f"block {idx}: there is no forward block {block.forward}")
            self.scopes.append([])
        for idx in range(len(blocks)):
            self.scopes[idx] = list(self.scope(idx))

    def scope(self, idx: int) -> Iterator[dict[str, VarDesc]]:
        """The blocks in which block `idx` finds names: itself, its ancestors, and the blocks that
        those differentiate.
        """
        seen: set[int] = set()
        stack = [idx]
        while stack:
            at = stack.pop()
            if at in seen or at < 0:
                continue
            seen.add(at)
            yield self.desc.blocks[at].vars
            stack += [self.desc.blocks[at].forward, self.desc.blocks[at].parent]

    def op(self, idx: int, at: int, op: OpDesc) -> None:
        if type(op.uid) is not int or op.uid < 0:
            self.fail(idx, at, f"its uid is {op.uid!r}; it must be an int >= 0")
        if self.uids.setdefault(op.uid, (idx, at)) != (idx, at):
            self.fail(
                idx,
                at,
                "its uid {} is also that of block {}, op {}".format(op.uid, *self.uids[op.uid]),
            )
        if problem := _name_problem(op.type):
            self.fail(idx, at, f"its type {problem}")
        scope, own = self.scopes[idx], self.desc.blocks[idx].vars
        for slots in (op.inputs, op.outputs):
            for slot, names in slots.items():
                if not isinstance(names, tuple) or not isinstance(slot, str):
                    self.fail(
                        idx, at, f"slot {slot!r} holds {names!r}; it must hold a tuple of names"
                    )
                for name in names:
                    if name in own or name == EMPTY or (op.type in _QUEUES and slots is op.inputs):
                        continue
                    if not any(name in vars for vars in scope) and not (
                        (idx or op.blocks) and _is_grad(name)
                    ):
                        self.undeclared(idx, at, slot, name)
        for name, value in op.attrs.items():
            if name not in self.sound:
                if problem := _name_problem(name):
                    self.fail(idx, at, f"attribute {name!r} {problem}")
                self.sound.add(name)
            if type(value) not in _PLAIN and (problem := self.attr_problem(idx, value)):
                self.fail(idx, at, f"attribute {name!r} {problem}")
        if self.lookup:
            self.definition(idx, at, op, self.lookup)

    def undeclared(self, idx: int, at: int, slot: str, name: object) -> NoReturn:
        if problem := _name_problem(name):
            self.fail(idx, at, f"a name in slot {slot!r} {problem}")
        known = {n for vars in self.scopes[idx] for n in vars}
        self.fail(
            idx,
            at,
            f"slot {slot!r} names {name!r}, which no block in reach"
            f" declares{near(str(name), known)}",
        )

    def attr_problem(self, idx: int, value: Any) -> str | None:
        """The fault of an attribute's value, apart from the checks of the op type; "" if there is
        none.
        """
        if isinstance(value, tuple):
            kinds = {_kind(v) for v in value}
            if (
                len(kinds) > 1
                and kinds != {"int", "float"}
                and not any(isinstance(v, tuple) for v in value)
            ):
                return f"mixes types in {value!r}"
            return next((p for v in value if (p := self.attr_problem(idx, v))), None)
        if isinstance(value, BlockRef):
            return self.ref_problem(idx, value.idx)
        if isinstance(value, str):
            return (
                None
                if value.isascii() or _writable(value)
                else f"is {value!r}, which cannot be written as UTF-8"
            )
        if (
            value is None
            or isinstance(value, float)
            or (isinstance(value, int) and -(2**63) <= value < 2**64)
        ):
            return None
        if isinstance(value, int):
            return "is an int of more than 64 bits"
        return (
            f"is a {type(value).__name__}; it must be a bool, int, float, str, block reference, or"
            " tuple of those"
        )

    def ref_problem(self, idx: int, ref: int) -> str | None:
        if not 0 < ref < len(self.desc.blocks):
            return f"points at block {ref}, which does not exist"
        at = ref
        while at > idx:
            at = self.desc.blocks[at].parent
        return None if at == idx else f"points at block {ref}, which is not below block {idx}"

    def definition(self, idx: int, at: int, op: OpDesc, lookup: Lookup) -> None:
        """Check slots and attributes against the op type's definition."""
        if op.type not in self.defs:
            try:
                found = lookup(op.type)
            except Exception as error:
                self.fail(idx, at, str(error))
            self.defs[op.type] = found
            for is_input, slots in ((True, found.inputs), (False, found.outputs)):
                self.slots[op.type, is_input] = {slot.name: slot for slot in slots}
                free = (
                    slot.optional or slot.many or getattr(slot, "intermediate", False)
                    for slot in slots
                )
                self.needed[op.type, is_input] = tuple(
                    slot.name for slot, may in zip(slots, free, strict=True) if not may
                )
        for held, word, is_input in ((op.inputs, "input", True), (op.outputs, "output", False)):
            known = self.slots[op.type, is_input]
            for name, names in held.items():
                if name not in known:
                    if not names:  # later Paddles leave slots that they added empty
                        continue
                    self.fail(idx, at, f"there is no {word} slot {name!r}{near(name, known)}")
                if len(names) > 1 and not known[name].many:
                    self.fail(idx, at, f"{word} slot {name!r} takes one variable, not {len(names)}")
            for name in self.needed[op.type, is_input]:
                if not held.get(name):
                    self.fail(idx, at, f"{word} slot {name!r} is empty")
        for name, value in op.attrs.items():
            if (op.type, name) not in self.kinds:
                self.kinds[op.type, name] = self.defs[op.type].attr_type(name)
            kind = self.kinds[op.type, name]
            if kind is None:
                self.fail(idx, at, f"there is no attribute {name!r}")
            if kind in ("SIZE", "SIZES"):
                self.size(idx, at, name, value)
            if _EXACT.get(kind) is not type(value) and not fits(kind, value):
                self.fail(idx, at, f"attribute {name!r} is {value!r}, which is not of type {kind}")

    def size(self, idx: int, at: int, name: str, value: Any) -> None:
        """Check an attribute that holds sizes: feeds or state must determine the open ones."""
        for size in value if isinstance(value, tuple) else (value,):
            if type(size) is int:
                continue
            if not isinstance(size, str):
                self.fail(idx, at, f"attribute {name!r} is {value!r}, which does not hold a size")
            try:
                names = dims.symbols(size)
            except FluidValueError as error:
                self.fail(idx, at, f"attribute {name!r}: {error}")
            for word in sorted(names - self.known_sizes):
                self.fail(
                    idx,
                    at,
                    f"attribute {name!r} needs the size {word!r}, which no fed or persistable "
                    f"variable determines{near(word, self.known_sizes)}",
                )

    @cached_property
    def known_sizes(self) -> frozenset[str]:
        """The names of the open sizes that feeds and state determine."""
        vars = self.desc.blocks[0].vars.values()
        given = [v for v in vars if v.dims and (v.is_data or v.persistable)]
        return frozenset().union(*(dims.symbols(t) for v in given for t in v.dims if t))

    def written_first(self) -> None:
        """Check that no tensor of block 0 is read before it is written."""
        block = self.desc.blocks[0]
        written: set[str] = set()
        for at, op in enumerate(block.ops):
            for name in op.reads:
                var = block.vars.get(name)
                if (
                    name not in written
                    and var is not None
                    and _needs_write(var)
                    and op.type not in _REMOTE
                ):
                    self.fail(
                        0,
                        at,
                        f"it reads {name!r}, which no op before it writes and which is not fed",
                    )
            written.update(walk.writes_with_subblocks(self.desc, op) if op.blocks else op.writes)


def _needs_write(var: VarDesc) -> bool:
    fed = var.persistable or var.is_data or var.need_check_feed
    return not fed and var.kind == "LOD_TENSOR" and not _is_grad(var.name)


def _is_grad(name: object) -> bool:
    return isinstance(name, str) and "@GRAD" in name


def _var_problem(name: str, var: VarDesc) -> str | None:
    if problem := _name_problem(name):
        return f"its name {problem}"
    if name != var.name:
        return f"its desc has the name {var.name!r}"
    if name == EMPTY:
        return "this name means that there is no variable"
    if var.shape is not None and not _is_shape(var.shape):
        return f"its shape is {var.shape!r}; it must be a tuple of ints >= -1"
    if var.dims and (problem := _dims_problem(var)):
        return problem
    if var.dtype is not None and var.dtype not in NAMES:
        return f"its dtype is {var.dtype!r}; known are {', '.join(sorted(NAMES))}"
    if var.kind not in KINDS:
        return f"its kind is {var.kind!r}; known are {', '.join(sorted(KINDS))}"
    if type(var.lod_level) is not int or var.lod_level < 0:
        return f"its lod_level is {var.lod_level!r}; it must be an int >= 0"
    return None


def _dims_problem(var: VarDesc) -> str | None:
    shape = var.shape or ()
    if not isinstance(var.dims, tuple) or len(var.dims) != len(shape):
        return f"its dims are {var.dims!r}; its shape has {len(shape)} dimensions"
    for n, size in zip(shape, var.dims, strict=True):
        if not isinstance(size, str) or bool(size) != (n == -1):
            return f"its dims {var.dims!r} name other dimensions than the unknown ones of {shape}"
    try:
        for size in filter(None, var.dims):
            dims.symbols(size)
    except FluidValueError as error:
        return str(error)
    return None


def _is_shape(value: object) -> bool:
    return isinstance(value, tuple) and all(type(d) is int and d >= -1 for d in value)


def _name_problem(name: object) -> str | None:
    if not isinstance(name, str):
        return f"is {name!r}; it must be a str"
    if not name:
        return "is empty"
    return (
        None
        if name.isascii() or _writable(name)
        else f"is {name!r}, which cannot be written as UTF-8"
    )


def _writable(value: str) -> bool:
    """Whether a text is UTF-8, or bytes of another encoding that were read as surrogate escapes."""
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind.__name__
    return type(value).__name__


_SCALARS: dict[str, tuple[str, ...]] = {
    "INT": ("int",), "LONG": ("int",), "FLOAT": ("float", "int"), "FLOAT64": ("float", "int"), "STRING": ("str",),
    "BOOLEAN": ("bool",), "BLOCK": ("BlockRef",),
}  # fmt: skip
# a quick test for most values
_EXACT = {"INT": int, "LONG": int, "FLOAT": float, "FLOAT64": float, "STRING": str, "BOOLEAN": bool}
_LISTS = {"INTS": "INT", "LONGS": "LONG", "FLOATS": "FLOAT", "FLOAT64S": "FLOAT64", "STRINGS": "STRING",
          "BOOLEANS": "BOOLEAN", "BLOCKS": "BLOCK"}  # fmt: skip


def fits(kind: str, value: Any) -> bool:
    """Whether `value` is of Paddle's attribute type `kind`. Any value fits a type that Paddle does
    not have.
    """
    if kind in _LISTS:
        return isinstance(value, tuple) and all(fits(_LISTS[kind], v) for v in value)
    return kind not in _SCALARS or _kind(value) in _SCALARS[kind]


def context(block: BlockDesc, at: int, around: int = _AROUND) -> str:
    """The ops of `block` around position `at`, which is marked."""
    first, last = max(at - around, 0), min(at + around + 1, len(block.ops))
    lines = []
    for i in range(first, last):
        op = block.ops[i]
        try:
            line = text.op_text(op)
        except Exception:  # the op itself is the fault
            line = repr(op)
        lines.append(
            f"{'-->' if i == at else '   '} {i}: {line}{f'  # {op.loc}' if op.loc else ''}"
        )
    return "\n".join(lines)
