"""paddle.nn.Layer in static mode: an object that owns parameters of the default main program and
appends ops when called.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .... import unique_name
from ....errors import FluidTypeError, FluidValueError
from ....graph.program import default_main_program
from ....graph.variable import Parameter, Variable
from ....layer_helper import LayerHelper
from ....state.scope import global_scope
from ...state import get_default_dtype


class Layer:
    """A part of a net with its parameters, buffers and sublayers.

    A subclass makes them in ``__init__`` (assigning them to attributes registers them) and computes
    in ``forward``. Parameters go to the default program at that time, under Paddle's names:
    ``linear_0.w_0``.

    name_scope: the prefix of the name (default the class's name in lower case); dtype: that of
    parameters (default paddle's).
    """

    training: bool = True

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32") -> None:
        scope = _snake(type(self).__name__) if name_scope is None else name_scope
        vars(self).update(
            training=True, _full_name=unique_name.generate(scope), _dtype=dtype or get_default_dtype(),
            _parameters=OrderedDict(), _buffers=OrderedDict(), _temporary=set(), _sub_layers=OrderedDict(),
            _before=OrderedDict(), _after=OrderedDict(), _of_state=OrderedDict(),
        )  # fmt: skip

    # -- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = (("_parameters", Parameter), ("_sub_layers", Layer))
        for held, kind in kinds:
            if isinstance(value, kind):
                self._need_init(name)
                self._forget(name)
                vars(self)[held][name] = value
                return
        for held in ("_parameters", "_sub_layers", "_buffers"):
            if name in vars(self).get(held, ()):
                if value is None or (held == "_buffers" and isinstance(value, Variable)):
                    vars(self)[held][name] = value
                    return
                self._forget(name)
        super().__setattr__(name, value)

    def _need_init(self, name: str) -> None:
        if "_parameters" not in vars(self):
            raise FluidTypeError(
                f"{type(self).__name__}.__init__ calls super().__init__() before it assigns"
                f" {name!r}"
            )

    def _forget(self, name: str) -> None:
        for held in ("_parameters", "_sub_layers", "_buffers"):
            vars(self)[held].pop(name, None)
        vars(self).pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for held in ("_parameters", "_sub_layers", "_buffers"):
            if name in vars(self).get(held, ()):
                return vars(self)[held][name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        if any(name in vars(self)[held] for held in ("_parameters", "_sub_layers", "_buffers")):
            self._forget(name)
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._sub_layers, *self._buffers]

    # -- computing

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The subclass's computation."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """forward, with the hooks before and after it."""
        for before in list(self._before.values()):
            changed = before(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for after in list(self._after.values()):
            changed = after(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Hook:
        """Call hook(layer, inputs) before forward; its result replaces the inputs. The returned
        object's remove() ends that.
        """
        return Hook(self._before, hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> Hook:
        """Call hook(layer, inputs, outputs) after forward; its result replaces the outputs."""
        return Hook(self._after, hook)

    def register_state_dict_hook(
        self, hook: Callable[[dict[str, Any]], dict[str, Any] | None]
    ) -> Hook:
        """Call hook(state) with the result of state_dict; its result replaces the dict."""
        return Hook(self._of_state, hook)

    def train(self) -> None:
        """Switch this layer and its sublayers to training: dropout drops, batch_norm uses the
        batch's statistics.
        """
        for layer in self.sublayers(include_self=True):
            layer.training = True

    def eval(self) -> None:
        """Switch this layer and its sublayers to prediction. Ops that were appended before do not
        change.
        """
        for layer in self.sublayers(include_self=True):
            layer.training = False

    # -- what it owns

    def full_name(self) -> str:
        """The unique prefix of parameters' names."""
        return self._full_name

    def extra_repr(self) -> str:
        """The text between the parentheses of repr."""
        return ""

    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
    ) -> Any:
        """A parameter of this layer; None if attr is False. Weights are initialised by Xavier's
        uniform numbers, biases by 0.

        Raises FluidTypeError for an integer dtype without an initializer.
        """
        helper = LayerHelper(self._full_name, name=self._full_name)
        return helper.create_parameter(
            attr, list(shape), dtype or self._dtype, is_bias, default_initializer
        )

    def create_variable(
        self, name: str | None = None, persistable: bool | None = None, dtype: Any = None
    ) -> Variable:
        """A variable of the main program; if persistable, it keeps its value between runs."""
        given = unique_name.generate(
            f"{self._full_name}_{name}" if name else f"{self._full_name}_generated_var"
        )
        block = default_main_program().current_block()
        return block.create_var(
            name=given, dtype=dtype or self._dtype, persistable=bool(persistable)
        )

    create_tensor = create_variable

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register `parameter` as the attribute `name`. Raises FluidTypeError unless it is a
        parameter or None.
        """
        if parameter is not None and not isinstance(parameter, Parameter):
            raise FluidTypeError(f"add_parameter takes a parameter, not {parameter!r}")
        self._parameters[_key(name)] = parameter
        return parameter

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Register `sublayer` as the attribute `name`. Raises FluidTypeError unless it is a layer."""
        if not isinstance(sublayer, Layer):
            raise FluidTypeError(f"add_sublayer takes a layer, not {sublayer!r}")
        self._sub_layers[_key(name)] = sublayer
        return sublayer

    def register_buffer(self, name: str, tensor: Variable | None, persistable: bool = True) -> None:
        """Register a variable that is not a parameter; with `persistable` it is part of state_dict.
        Raises FluidTypeError for others.
        """
        if tensor is not None and not isinstance(tensor, Variable):
            raise FluidTypeError(f"register_buffer takes a variable, not {tensor!r}")
        self._buffers[_key(name)] = tensor
        (self._temporary.discard if persistable else self._temporary.add)(name)
        if tensor is not None and persistable:
            tensor.persistable = True

    def children(self) -> Iterator[Layer]:
        """The direct sublayers of this layer."""
        return (layer for _, layer in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """The direct sublayers of this layer, with their names."""
        seen: set[int] = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All sublayers at any depth, each once."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, layers_set: set[Any] | None = None
    ) -> Iterator[tuple[str, Layer]]:
        """All sublayers at any depth, each once, with its path of attributes."""
        seen = set() if layers_set is None else layers_set
        if self in seen:
            return
        seen.add(self)
        if include_self:
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None:
                yield from layer.named_sublayers(f"{prefix}.{name}" if prefix else name, True, seen)

    def _named(self, held: str, prefix: str, include_sublayers: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = self.named_sublayers(prefix, True) if include_sublayers else [(prefix, self)]
        for path, layer in owners:
            for name, value in vars(layer)[held].items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """The parameters of this layer and those below, each once."""
        return [p for _, p in self.named_parameters("", include_sublayers)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """parameters(), each with its path of attributes."""
        return self._named("_parameters", prefix, include_sublayers)

    def buffers(self, include_sublayers: bool = True) -> list[Variable]:
        """The buffers of this layer and those below, each once."""
        return [b for _, b in self.named_buffers("", include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True
    ) -> Iterator[tuple[str, Variable]]:
        """buffers(), each with its path of attributes."""
        return self._named("_buffers", prefix, include_sublayers)

    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Call fn for every sublayer and then for this layer; returns this layer."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    # -- values

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Any]:
        """The parameters and persistable buffers by their paths, as variables; paddle.save writes
        their values.
        """
        found: dict[str, Any] = OrderedDict() if destination is None else destination
        owners = self.named_sublayers("", True) if include_sublayers else iter([("", self)])
        for path, layer in owners:
            head = structured_name_prefix + (path + "." if path else "")
            found.update({head + n: v for n, v in layer._persistable() if v is not None})
        for layer in reversed(self.sublayers(include_self=True)) if include_sublayers else [self]:
            for hook in list(layer._of_state.values()):
                changed = hook(found)
                found = found if changed is None else changed
        return found

    def _persistable(self) -> list[tuple[str, Any]]:
        """The layer's own parameters and the buffers that persist."""
        return [
            *self._parameters.items(),
            *((n, b) for n, b in self._buffers.items() if n not in self._temporary),
        ]

    def to_static_state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Any]:
        """state_dict with the buffers that are not persistable, too."""
        found = self.state_dict(destination, include_sublayers, structured_name_prefix)
        found.update(
            {structured_name_prefix + n: b for n, b in self.named_buffers("", include_sublayers)}
        )
        return found

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Set the values of parameters and buffers in the global scope from arrays, by path or by
        variables' names.

        Returns the names without a value, and unknown names. Raises FluidValueError for an array of
        another shape, and then sets nothing.
        """
        own = self.state_dict()
        wanted = own if use_structured_name else {v.name: v for v in own.values()}
        given = {n: np.asarray(v) for n, v in state_dict.items() if n in wanted}
        for name, array in given.items():
            if tuple(array.shape) != tuple(wanted[name].shape):
                raise FluidValueError(
                    f"{name!r} has shape {list(wanted[name].shape)}, but its value has"
                    f" {list(array.shape)}"
                )
        for name, array in given.items():
            global_scope().var(wanted[name].name).set(array.astype(wanted[name].desc.dtype))
        return [n for n in wanted if n not in given], [n for n in state_dict if n not in wanted]

    set_dict = load_dict = set_state_dict

    def __repr__(self) -> str:
        inner = [
            f"({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self._sub_layers.items()
        ]
        if not inner:
            return f"{type(self).__name__}({self.extra_repr()})"
        return "\n  ".join([f"{type(self).__name__}({self.extra_repr()}", *inner]) + "\n)"


class Hook:
    """A registered hook; remove() ends it."""

    def __init__(self, hooks: dict[Any, Any], hook: Callable[..., Any]) -> None:
        self._hooks, self._id = hooks, object()
        hooks[self._id] = hook

    def remove(self) -> None:
        """Stop calling the hook."""
        self._hooks.pop(self._id, None)


def _snake(name: str) -> str:
    """Conv2DTranspose -> conv2d_transpose, as Paddle writes the names of its layers."""
    head = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", head).lower()


def _key(name: Any) -> str:
    if not isinstance(name, str) or not name or "." in name:
        raise FluidValueError(f"a layer's attribute has a name without dots, not {name!r}")
    return name


__all__ = ["Layer"]
