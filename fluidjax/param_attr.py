"""ParamAttr: the user's options for a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import FluidTypeError, FluidValueError
from .graph.block import Block
from .graph.variable import Parameter


class ParamAttr:
    """Name, initializer and training options of a parameter.

    name: the parameter's name; two layers with the same name share the parameter. None: the layer
    generates a name. initializer: fills the parameter in the startup program; None: the layer's
    default. learning_rate: factor on the optimizer's learning rate. regularizer: overrides the
    optimizer's. trainable: False keeps minimize from updating it. do_model_average: whether
    ModelAverage takes part. need_clip: False keeps gradient clips from its gradient.

    Raises FluidTypeError for an argument of the wrong type, FluidValueError for an empty name.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        for what, value, kinds in (
            ("name", name, str | None),
            ("learning_rate", learning_rate, float | int),
            ("trainable", trainable, bool),
            ("do_model_average", do_model_average, bool),
            ("need_clip", need_clip, bool),
        ):
            if not isinstance(value, kinds):
                raise FluidTypeError(
                    f"ParamAttr's {what} is {value!r}, a {type(value).__name__}; it takes {kinds}"
                )
        if name == "":
            raise FluidValueError(
                "ParamAttr's name is empty; leave it out to get a name of the layer's"
            )
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    def with_defaults(self, name: str, initializer: Any) -> ParamAttr:
        """A copy with this name and initializer as defaults."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.name = self.name if self.name is not None else name
        copy.initializer = self.initializer if self.initializer is not None else initializer
        return copy

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """A ParamAttr (a list of them for a list, False for False) from what layers accept.

        None and True mean the defaults, a string is the name, and an initializer or a regularizer
        is taken as that option.
        """
        if arg is None or arg is True:
            return ParamAttr()
        if arg is False or isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, list | tuple):
            return [ParamAttr._to_attr(a) for a in arg]
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        from .initializer import Initializer
        from .regularizer import WeightDecayRegularizer

        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if isinstance(arg, WeightDecayRegularizer):
            return ParamAttr(regularizer=arg)
        raise FluidTypeError(
            "a parameter attribute is a ParamAttr, a name, an initializer, a regularizer, None or"
            f" False, not {arg!r}"
        )

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, Any]:
        """The keyword arguments of Block.create_parameter."""
        kwargs = {
            "name": self.name,
            "optimize_attr": {"learning_rate": self.learning_rate},
            "regularizer": self.regularizer,
            "trainable": self.trainable,
            "do_model_average": self.do_model_average,
            "need_clip": self.need_clip,
        }
        return {**kwargs, "initializer": self.initializer} if with_initializer else kwargs


class WeightNormParamAttr(ParamAttr):
    """A weight w written as g * v / |v|: magnitude g and direction v are learned apart.

    dim: the dimension that keeps its own norms; None takes one norm over the whole weight. The
    parameters are called ``<name>_v`` and ``<name>_g``; startup sets g to |v|, so that w starts as
    v was initialised. Other arguments as in ParamAttr.
    """

    params_with_weight_norm: list[Any] = []  # noqa: RUF012

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = False,
        need_clip: bool = True,
    ) -> None:
        super().__init__(
            name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip
        )
        self.dim = dim


def initialise(block: Block, attr: ParamAttr, shape: Sequence[int], dtype: Any) -> Parameter:
    """The parameter in startup block `block`, with the op that fills it unless one already does."""
    return block.create_parameter(
        shape=shape, dtype=dtype, **attr._to_kwargs(with_initializer=True)
    )


__all__ = ["ParamAttr", "WeightNormParamAttr"]
