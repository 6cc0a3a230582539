"""Variable and Parameter: thin handles on frozen VarDescs, with Fluid's attributes and
operators.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from ..base.dtypes import VarType, enum_of, name_of
from ..errors import ArgumentError, FluidTypeError, FluidValueError
from ..ir.desc import VarDesc
from ..ops.attributes import converted
from .indexing import Indexed

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator

# kinds whose variables have the shape () until something declares one
_TENSORS = frozenset({"LOD_TENSOR", "SELECTED_ROWS", "LOD_TENSOR_ARRAY"})


def as_shape(shape: Any, negative: bool = False) -> tuple[int, ...]:
    """A shape tuple from Fluid's forms: ints, None for unknown; any negative one too, if
    `negative`.
    """
    if isinstance(shape, int):
        shape = (shape,)
    if shape is None or isinstance(shape, str):
        raise ArgumentError(f"a shape is a list of ints (-1 or None where unknown), not {shape!r}")
    try:
        result = tuple(-1 if n is None else operator.index(n) for n in shape)
    except TypeError:
        raise ArgumentError(
            f"a shape is a list of ints (-1 or None where unknown), not {shape!r}"
        ) from None
    if not negative and any(n < -1 for n in result):
        raise FluidValueError(f"shape {list(result)} has a negative dimension other than -1")
    return result


_fields = operator.attrgetter(*VarDesc.__dataclass_fields__)


class HeldDesc(VarDesc):
    """A variable's desc as scripts see it: the current value, which equals the plain desc, with the
    setters of 1.8.5's desc, which change the variable.
    """

    __slots__ = ("_owner",)
    __qualname__ = "VarDesc"  # the type that it prints as
    _owner: weakref.ref[Variable]

    @classmethod
    def of(cls, owner: Variable) -> HeldDesc:
        """The current value of this variable."""
        made = cls(*_fields(owner.plain))
        object.__setattr__(made, "_owner", weakref.ref(owner))
        return made

    def __eq__(self, other: object) -> bool:
        return _fields(self) == _fields(other) if isinstance(other, VarDesc) else NotImplemented

    __hash__ = VarDesc.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return VarDesc, _fields(self)

    def type(self) -> VarType:
        """The number of the variable's kind."""
        return VarType[self.kind]

    def _variable(self) -> Variable:
        owner = self._owner()
        if owner is None:
            raise FluidValueError(f"variable {self.name!r} does not exist any more")
        return owner

    def _change(self, **changes: Any) -> None:
        self._variable().change(**changes)

    def set_name(self, name: str) -> None:
        self._variable().name = name

    def set_shape(self, shape: Sequence[int]) -> None:
        self._change(shape=as_shape(shape), dims=())

    def set_dtype(self, dtype: Any) -> None:
        self._change(dtype=name_of(dtype))

    def set_type(self, kind: Any) -> None:
        self._change(kind=VarType(kind).name)

    def set_lod_level(self, level: int) -> None:
        self._change(lod_level=operator.index(level))

    def set_persistable(self, persistable: bool) -> None:
        self._change(persistable=bool(persistable))

    def set_need_check_feed(self, need: bool) -> None:
        self._change(need_check_feed=bool(need))


class Variable(Indexed["Variable"]):
    """A named value of a program: shape (-1 where unknown), dtype, and whether it outlives a run
    (persistable).
    """

    block: Block
    plain: VarDesc  # the block's desc of it
    error_clip: Any

    def __init__(
        self,
        block: Block,
        type: Any = VarType.LOD_TENSOR,
        name: str | None = None,
        shape: Any = None,
        dtype: Any = None,
        lod_level: int | None = None,
        capacity: int | None = None,
        persistable: bool | None = None,
        error_clip: Any = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        need_check_feed: bool = False,
        belong_to_optimizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """Add a variable to the block, as block.create_var does. capacity: ignored, as in Paddle.

        Raises FluidValueError if the block has a variable of this name with another shape or dtype.
        """
        made = block.create_var(
            name=name, type=type, shape=shape, dtype=dtype, lod_level=lod_level, persistable=persistable,
            stop_gradient=stop_gradient, is_data=is_data, need_check_feed=need_check_feed,
        )  # fmt: skip
        self._hold(block, made.plain)
        self.error_clip = error_clip
        block._adopt(self)

    @classmethod
    def of(cls, block: Block, desc: VarDesc) -> Self:
        """The handle of a desc that is not in the block yet."""
        made = cls.__new__(cls)
        made._hold(block, desc)
        return made

    def _hold(self, block: Block, desc: VarDesc) -> None:
        self.block, self.desc, self.error_clip = block, desc, None

    @property
    def desc(self) -> VarDesc:
        """The value of the variable, with the setters of 1.8.5's desc."""
        return HeldDesc.of(self)

    @desc.setter
    def desc(self, desc: VarDesc) -> None:
        self.plain = desc if type(desc) is VarDesc else VarDesc(*_fields(desc))

    def change(self, **changes: Any) -> None:
        self.desc = replace(self.plain, **changes)
        self.block.program.touch()

    @property
    def name(self) -> str:
        return self.plain.name

    @name.setter
    def name(self, new: str) -> None:
        self.block._rename_var(self.plain.name, new)

    @property
    def grad_name(self) -> str:
        """The name of its gradient."""
        return f"{self.plain.name}@GRAD"

    @property
    def shape(self) -> tuple[int, ...]:
        """The declared shape, with -1 for any size; () for a tensor or an array of tensors without
        a declared shape, such as the result of create_tensor until an op writes it.
        """
        if self.plain.shape is None:
            if self.plain.kind in _TENSORS:
                return ()
            raise FluidValueError(f"variable {self.name!r} of kind {self.plain.kind} has no shape")
        return self.plain.shape

    @property
    def dtype(self) -> VarType:
        if self.plain.dtype is None:
            raise FluidValueError(f"variable {self.name!r} of kind {self.plain.kind} has no dtype")
        return enum_of(self.plain.dtype)

    @property
    def type(self) -> VarType:
        return VarType[self.plain.kind]

    @property
    def lod_level(self) -> int:
        return self.plain.lod_level

    @lod_level.setter
    def lod_level(self, level: int) -> None:
        self.change(lod_level=int(level))

    @property
    def persistable(self) -> bool:
        return self.plain.persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.change(persistable=bool(value))

    @property
    def stop_gradient(self) -> bool:
        return self.plain.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.change(stop_gradient=bool(value))

    @property
    def is_data(self) -> bool:
        return self.plain.is_data

    @property
    def op(self) -> Operator | None:
        """The last op of the variable's block that writes it; None if nothing does."""
        ops = (op for op in reversed(self.block.ops) if self.name in op.output_arg_names)
        return next(ops, None)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _set_error_clip(self, error_clip: Any) -> None:
        """Clip this variable's gradient (see clip.ErrorClipByValue)."""
        self.error_clip = error_clip

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """The variable in a line; `with_details`: also the attributes that no desc holds."""
        check_flags(throw_on_error, with_details)
        return f"{self}  # {self.details()}" if with_details else str(self)

    def details(self) -> str:
        """The attributes of the variable that are not in its desc: its error clip, and a
        parameter's options.
        """
        return f"error_clip={self.error_clip}"

    def __str__(self) -> str:
        d = self.plain
        what = d.kind if d.shape is None else f"{d.dtype}{list(d.shape)}"
        flags = [n for n in ("persistable", "stop_gradient", "is_data") if getattr(d, n)]
        flags += ["trainable"] if d.is_parameter and d.trainable else []
        return f"{type(self).__name__}({d.name!r}, {', '.join([what, *flags])})"

    __repr__ = __str__

    def __len__(self) -> int:
        n = self.shape[0] if self.shape else 0
        if n < 0:
            raise FluidTypeError(
                f"variable {self.name!r} has an unknown first dimension, so no len()"
            )
        return n

    def __iter__(self) -> Any:
        raise FluidTypeError(
            f"variable {self.name!r} cannot be iterated over; use layers.unstack or layers.split"
        )

    @property
    def __jax_array__(self) -> Any:
        """jax.numpy calls this to get a value. Raises FluidValueError, because there is none (JAX
        would hide a TypeError).
        """
        raise FluidValueError(
            f"variable {self.name!r} has no value while the program is built, so jax.numpy cannot"
            " compute with it; append an op by fluid.layers, or by an operator with the variable"
            " on its left, or run the program and compute with what it fetches"
        )


class Parameter(Variable):
    """A trainable persistable variable with what Fluid attaches to it.

    optimize_attr: ``{"learning_rate": factor}``; regularizer, gradient_clip_attr: used by minimize;
    do_model_average: whether ModelAverage takes part; need_clip: whether gradient clips do.
    """

    def __init__(self, block: Block, desc: VarDesc, **extra: Any) -> None:
        self._hold(block, desc)
        self.optimize_attr: dict[str, Any] = extra.get("optimize_attr") or {"learning_rate": 1.0}
        self.regularizer: Any = extra.get("regularizer")
        self.gradient_clip_attr: Any = extra.get("gradient_clip_attr")
        self.do_model_average: bool | None = extra.get("do_model_average")
        self.need_clip: bool = bool(extra.get("need_clip", True))
        self.initializer: Any = extra.get("initializer")
        self.is_distributed: bool = bool(extra.get("is_distributed", False))

    @property
    def trainable(self) -> bool:
        return self.plain.trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.change(trainable=bool(value))

    def extra(self) -> dict[str, Any]:
        """The Python-side attributes, for a copy of this parameter."""
        names = (
            "optimize_attr",
            "regularizer",
            "gradient_clip_attr",
            "do_model_average",
            "need_clip",
            "initializer",
            "is_distributed",
        )
        return {n: getattr(self, n) for n in names}

    def details(self) -> str:
        return ", ".join(
            [
                super().details(),
                *(
                    f"{name}={value}"
                    for name, value in self.extra().items()
                    if name != "initializer"
                ),
            ]
        )


def var_desc(
    name: str,
    shape: Sequence[int | None] | None = None,
    dtype: Any = None,
    type: Any = VarType.LOD_TENSOR,
    lod_level: int | None = None,
    persistable: bool | None = None,
    stop_gradient: bool = False,
    is_data: bool = False,
    need_check_feed: bool = False,
    **parameter: Any,
) -> VarDesc:
    """A VarDesc from the arguments that Fluid's create_var takes. Raises ArgumentError for one of
    another kind.
    """
    if not isinstance(name, str) or not name:
        raise FluidTypeError(f"a variable's name is a non-empty string, not {name!r}")
    return VarDesc(
        name,
        # layers.data takes any negative dimension, and keeps it; it counts as unknown
        None if shape is None else as_shape(shape, negative=is_data and not need_check_feed),
        None if dtype is None else name_of(dtype),
        (
            type.name
            if isinstance(type, VarType)
            else VarType(type).name
            if isinstance(type, int)
            else str(type)
        ),
        _of_kind("INT", "lod_level", lod_level, name) if lod_level is not None else 0,
        _of_kind("BOOLEAN", "persistable", persistable, name) if persistable is not None else False,
        bool(stop_gradient),
        bool(is_data),
        bool(need_check_feed),
        **parameter,
    )


def check_flags(throw_on_error: Any, with_details: Any) -> None:
    """Raises ArgumentError if a flag of a to_string is not a bool."""
    for name, flag in (("throw_on_error", throw_on_error), ("with_details", with_details)):
        if not isinstance(flag, bool):
            raise ArgumentError(f"to_string's {name} is True or False, not {flag!r}")


def _of_kind(kind: str, what: str, value: Any, name: str) -> Any:
    """`value` converted as an attribute of this kind (INT, BOOLEAN). Raises ArgumentError for a
    value of another kind.
    """
    try:
        return converted(kind, value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"variable {name!r}: {what} is"
            f" {'True or False' if kind == 'BOOLEAN' else 'an integer'}, not {value!r}"
        ) from None


def names_of(value: Any, what: str = "an op's slot") -> tuple[str, ...]:
    """The names of a variable, of a name, or of several of them; `what` is the word for them in
    errors. Raises FluidTypeError for anything else.
    """
    if isinstance(value, Variable):
        return (value.plain.name,)
    if type(value) is not list:
        if isinstance(value, Mapping):
            raise ArgumentError(f"{what} takes variables or their names, not {value!r}")
        if isinstance(value, str) or not isinstance(value, Iterable):
            value = (value,)
    result = []
    for v in value:
        if isinstance(v, Variable):
            result.append(v.plain.name)
        elif isinstance(v, str):
            result.append(v)
        else:
            raise ArgumentError(f"{what} takes variables or their names, not {type(v).__name__}")
    return tuple(result)
