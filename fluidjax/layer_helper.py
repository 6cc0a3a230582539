"""LayerHelper: names, parameters, temporaries, bias and activation of one layer call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import unique_name
from .base.absent import lacking
from .base.dtypes import VarType, name_of
from .errors import ArgumentError, FluidTypeError, FluidValueError, OutOfRangeError
from .graph.operator import Operator
from .graph.program import Program, default_main_program, default_startup_program
from .graph.variable import Parameter, Variable
from .initializer import ConstantInitializer, XavierInitializer
from .param_attr import ParamAttr, WeightNormParamAttr, initialise
from .weight_norm import normalized_weight


class LayerHelper:
    """The helper by which a layer function appends its ops.

    layer_type: prefix of the names (``fc`` gives ``fc_0``); kwargs: the layer's arguments, of which
    name, param_attr, bias_attr, act and the inputs are read.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.kwargs = kwargs
        self.layer_type = layer_type
        name = kwargs.get("name")
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"{layer_type}'s name is text, not {name!r}")
        self.name: str = unique_name.generate(layer_type) if name is None else name
        self.kwargs["name"] = self.name

    @property
    def main_program(self) -> Program:
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        return default_startup_program()

    def append_op(self, *args: Any, **kwargs: Any) -> Operator:
        return self.main_program.current_block().append_op(*args, **kwargs)

    # inputs

    def to_variable(self, value: Any) -> Variable:
        """`value`, which must be a Variable. Raises FluidTypeError otherwise."""
        if not isinstance(value, Variable):
            raise FluidTypeError(f"{self.layer_type} takes a Variable, not {type(value).__name__}")
        return value

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        inputs = self.kwargs.get(input_param_name, [])
        return [
            self.to_variable(v) for v in (inputs if isinstance(inputs, list | tuple) else [inputs])
        ]

    def input(self, input_param_name: str = "input") -> Variable:
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise FluidValueError(
                f"{self.layer_type} takes one {input_param_name}, not {len(inputs)}"
            )
        return inputs[0]

    def input_dtype(self, input_param_name: str = "input") -> VarType:
        """The dtype that all inputs share. Raises FluidValueError, which names inputs of other
        dtypes, OutOfRangeError if there are none.
        """
        inputs = self.multiple_input(input_param_name)
        if not inputs:
            raise OutOfRangeError(
                f"{self.layer_type} takes at least one variable, not an empty list"
            )
        for v in inputs:
            if v.dtype != inputs[0].dtype:
                raise FluidValueError(
                    f"{self.layer_type} wants one dtype, but {inputs[0].name!r} is"
                    f" {inputs[0].desc.dtype} and {v.name!r} is {v.desc.dtype}; cast one of them"
                )
        return inputs[0].dtype

    def iter_inputs_and_params(
        self, input_param_name: str = "input"
    ) -> Iterator[tuple[Variable, Any]]:
        inputs = self.multiple_input(input_param_name)
        yield from zip(inputs, self.multiple_param_attr(len(inputs)), strict=True)

    # parameters

    @property
    def param_attr(self) -> Any:
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_param_attr(self, length: int) -> list[Any]:
        """One attribute for each input. Raises FluidValueError if the user gave another number than
        one or `length`.
        """
        attrs = self.param_attr
        attrs = attrs if isinstance(attrs, list) else [attrs]
        if len(attrs) not in (1, length):
            raise FluidValueError(
                f"{self.layer_type} has {length} inputs but {len(attrs)} param_attr; give one, or"
                " one each"
            )
        return attrs if len(attrs) == length else attrs * length

    def get_parameter(self, name: str) -> Parameter:
        """The parameter of that name in the main program. Raises FluidValueError if there is
        none.
        """
        found = self.main_program.global_block().var(name)
        if not isinstance(found, Parameter):
            raise FluidValueError(f"variable {name!r} is not a parameter")
        return found

    def create_parameter(
        self,
        attr: Any,
        shape: Sequence[int],
        dtype: Any,
        is_bias: bool = False,
        default_initializer: Any = None,
        stop_gradient: bool = False,
        type: Any = VarType.LOD_TENSOR,
    ) -> Any:
        """A parameter in the main program, initialised in the startup program; None if `attr` is
        False.

        stop_gradient is ignored in a static program, as in Fluid; type: parameters are LOD_TENSOR.
        Raises FluidTypeError for an integer dtype without an initializer.
        """
        attr = ParamAttr._to_attr(attr)
        if not attr:
            return None
        if isinstance(attr, list):
            raise FluidTypeError(
                f"{self.layer_type} takes one parameter attribute here, not a list of {len(attr)}"
            )
        if VarType(type) is not VarType.LOD_TENSOR:
            raise FluidTypeError(f"parameters are LOD_TENSOR, not {VarType(type).name}")
        if default_initializer is None and attr.initializer is None:
            if not name_of(dtype).startswith("float"):
                raise FluidTypeError(
                    f"a parameter of dtype {name_of(dtype)} has no default initializer; give one"
                )
            default_initializer = ConstantInitializer(0.0) if is_bias else XavierInitializer()
        key = f"{self.name}.{'b' if is_bias else 'w'}"
        block = self.main_program.global_block()
        name = (
            attr.name
            if attr.name is not None
            else block.new_name(lambda: unique_name.generate(key))
        )
        attr = attr.with_defaults(name, default_initializer)
        if isinstance(attr, WeightNormParamAttr):
            weight = normalized_weight(
                self.name, self.main_program, self.startup_program, attr, list(shape), dtype
            )
            WeightNormParamAttr.params_with_weight_norm.append(weight)
            return weight
        initialise(self.startup_program.global_block(), attr, shape, dtype)
        return self.main_program.global_block().create_parameter(
            shape=shape, dtype=dtype, **attr._to_kwargs()
        )

    # variables

    def create_variable_for_type_inference(
        self, dtype: Any, stop_gradient: bool = False
    ) -> Variable:
        """A temporary ``<layer>.tmp_k`` of the current block, for an op's output."""
        block = self.main_program.current_block()
        name = block.new_name(lambda: unique_name.generate_with_ignorable_key(f"{self.name}.tmp"))
        return block.create_var(name=name, dtype=dtype, stop_gradient=stop_gradient)

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args: Any, **kwargs: Any) -> Variable:
        return self.main_program.current_block().create_var(*args, **kwargs)

    def create_global_variable(
        self, persistable: bool = False, *args: Any, **kwargs: Any
    ) -> Variable:
        return self.main_program.global_block().create_var(*args, persistable=persistable, **kwargs)

    def create_or_get_global_variable(
        self, name: str, *args: Any, **kwargs: Any
    ) -> tuple[Variable, bool]:
        """The global variable of that name, and whether it is new."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(*args, name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Any) -> None:
        """Make the startup program fill `var`."""
        block = self.startup_program.global_block()
        copy = block.create_var(name=var.name, dtype=var.dtype, shape=var.shape, persistable=True)
        initializer(copy, block)

    # bias and activation

    def append_bias_op(
        self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None
    ) -> Variable:
        """input + bias, the bias of shape input.shape[dim_start:dim_end] along those axes; the
        input if bias_attr is False.
        """
        attr = self.bias_attr
        if not attr:
            return input_var
        bias = self.create_parameter(
            attr, list(input_var.shape[dim_start:dim_end]), input_var.dtype, is_bias=True
        )
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(
            type="elementwise_add",
            inputs={"X": [input_var], "Y": [bias]},
            outputs={"Out": [out]},
            attrs={"axis": dim_start},
        )
        return out

    def append_activation(self, input_var: Variable) -> Variable:
        """Append the op named by `act` to the layer's result; returns the input if there is no
        act.
        """
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        if not isinstance(act, str):
            raise FluidTypeError(
                f"{self.layer_type}'s act is the name of an activation such as 'relu', not {act!r}"
            )
        attrs = {"use_cudnn": True} if self.kwargs.get("use_cudnn") else {}
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(type=act, inputs={"X": [input_var]}, outputs={"Out": [out]}, attrs=attrs)
        return out

    def is_instance(self, param_name: str, cls: type) -> None:
        """Raises FluidTypeError unless that argument is a `cls`."""
        if not isinstance(self.kwargs.get(param_name), cls):
            raise FluidTypeError(f"{self.layer_type}'s {param_name} is a {cls.__name__}")

    if not TYPE_CHECKING:
        __getattr__ = lacking(
            "LayerHelper", {"_create_parameter": "never was there; use create_parameter"}
        )
