"""Frozen values that describe a program: variables, ops, blocks.

They compare and hash by value, and are replaced instead of edited (see edit.py). An op's `loc` (the
user's ``file:line``) does not take part in comparison, so equal programs share compiled code even
if they were written in different places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import FluidValueError, near

# gives the types of attributes; Program sets it, because it is of a higher level
serializers: list[Callable[[ProgramDesc], bytes]] = []
EMPTY = "@EMPTY@"  # Paddle's name for "no variable" (an unwanted gradient)


class FrozenMap(dict):
    """An immutable dict that hashes by value; the order of keys is kept but not compared."""

    __slots__ = ("_hash",)
    _hash: int

    def _frozen(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a FrozenMap does not change; make a new one with .set(...)")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _frozen

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def set(self, **changes: Any) -> FrozenMap:
        """A copy with these keys replaced or added."""
        return FrozenMap({**self, **changes})

    def without(self, *keys: str) -> FrozenMap:
        """A copy without these keys."""
        return FrozenMap({k: v for k, v in self.items() if k not in keys})

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMap, (dict(self),)


@dataclass(frozen=True, slots=True)
class BlockRef:
    """An attribute value that points at a block of the same program."""

    idx: int


class Long(int):
    """An integer attribute of Paddle's type LONG; equal to the plain int."""

    __slots__ = ()


class OpType(str):
    """An op's type. Fluid's scripts call it: ``op.desc.type()``. Equal to the plain str."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class VarDesc:
    """A variable: `shape` has -1 where a dimension is unknown, `dtype` is a name of dtypes.NAMES.

    `kind` is a name of dtypes.KINDS (``LOD_TENSOR`` for arrays); shape and dtype are None for kinds
    without them. `dims`: the names of the unknown dimensions (``b``, ``2*b``; "" for known ones),
    or empty (dims.py).
    """

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    kind: str = "LOD_TENSOR"
    lod_level: int = 0
    persistable: bool = False
    stop_gradient: bool = False
    is_data: bool = False
    need_check_feed: bool = False
    is_parameter: bool = False
    trainable: bool = True
    dims: tuple[str, ...] = ()


# attributes of every op of Fluid: a desc leaves them out if they have their default values
OF_EVERY_OP: dict[str, Any] = {"op_device": "", "op_namescope": "/", "op_role_var": ()}


@dataclass(frozen=True, slots=True)
class OpDesc:
    """An op: slots map to tuples of variable names, attributes to frozen values.

    `uid` is the op's ordinal at creation; it survives every pass, and random keys depend on it.
    """

    uid: int
    type: str
    inputs: FrozenMap = FrozenMap()
    outputs: FrozenMap = FrozenMap()
    attrs: FrozenMap = FrozenMap()
    loc: str | None = field(default=None, compare=False)

    def input(self, slot: str) -> tuple[str, ...]:
        return self.inputs.get(slot, ())

    def output(self, slot: str) -> tuple[str, ...]:
        return self.outputs.get(slot, ())

    # The methods of core.OpDesc that Fluid's scripts call, besides `type`.

    def input_names(self) -> list[str]:
        return sorted(self.inputs)

    def output_names(self) -> list[str]:
        return sorted(self.outputs)

    def input_arg_names(self) -> list[str]:
        """The names of all inputs, slot by slot in the order of the slots' names."""
        return [n for slot in self.input_names() for n in self.inputs[slot]]

    def output_arg_names(self) -> list[str]:
        """The names of all outputs, likewise."""
        return [n for slot in self.output_names() for n in self.outputs[slot]]

    def attr_names(self) -> list[str]:
        return sorted(self.attrs)

    def has_attr(self, name: str) -> bool:
        return name in self.attrs or name in OF_EVERY_OP

    def attr(self, name: str) -> Any:
        """An attribute's value, lists as lists. Every op has ``op_namescope``, which is ``/``
        outside of name scopes, and ``op_device`` and ``op_role_var``, which are empty unless they
        were set. Raises FluidValueError, which names the most similar attribute.
        """
        if not self.has_attr(name):
            raise FluidValueError(
                f"op '{self.type}' has no attribute {name!r}{near(name, self.attrs)}"
            )
        value = self.attrs.get(name, OF_EVERY_OP.get(name))
        return list(value) if isinstance(value, tuple) else value

    @property
    def reads(self) -> Iterator[str]:
        """Every input name, slot by slot, without @EMPTY@."""
        return (n for names in self.inputs.values() for n in names if n != EMPTY)

    @property
    def writes(self) -> Iterator[str]:
        """Every output name, slot by slot, without @EMPTY@."""
        return (n for names in self.outputs.values() for n in names if n != EMPTY)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Indices of the blocks that its attributes point at."""
        found: list[int] = []
        for value in self.attrs.values():
            kind = type(value)
            if kind is tuple:
                found += [v.idx for v in value if type(v) is BlockRef]
            elif kind is BlockRef:
                found.append(value.idx)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class BlockDesc:
    """Variables by name, and ops in order. `parent` is -1 for block 0; `forward` is the block it
    differentiates.
    """

    vars: FrozenMap = FrozenMap()
    ops: tuple[OpDesc, ...] = ()
    parent: int = -1
    forward: int = -1


@dataclass(frozen=True, slots=True)
class ProgramDesc:
    """A whole program. `seed` is Fluid's random_seed: 0 means a new seed for every process."""

    blocks: tuple[BlockDesc, ...] = (BlockDesc(),)
    seed: int = 0

    def block_of(self, name: str, idx: int) -> int | None:
        """The block that declares `name`, seen from block `idx`, or None."""
        while idx >= 0:
            if name in self.blocks[idx].vars:
                return idx
            idx = self.blocks[idx].parent
        return None

    def find_var(self, name: str, idx: int = 0) -> VarDesc | None:
        """The variable `name` as seen from block `idx`: its own, or an ancestor's."""
        at = self.block_of(name, idx)
        return None if at is None else self.blocks[at].vars[name]

    def num_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.blocks)

    def serialize_to_string(self) -> bytes:
        """The program as Paddle's ProgramDesc protobuf, like Program.serialize_to_string."""
        return serializers[0](self)


def slots(mapping: Mapping[str, Any]) -> FrozenMap:
    """A slot map from ``{"X": "a", "Ys": ["b", "c"]}``."""
    return FrozenMap({k: (v,) if isinstance(v, str) else tuple(v) for k, v in mapping.items()})
