"""Runs a sample's op, and its gradient op with the slots that Paddle's would get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidjax.dtypes import VarType
from fluidjax.ops.registry import GRAD, OpDef, Reuse, canonical, lookup

from .sample import Sample, cotangent

_FLOAT_DTYPES = {VarType.FP32: VarType.FP64}
_DTYPE_ATTRS = ("dtype", "in_dtype", "out_dtype")


def tree(change: Callable[[Any], Any], slots: Mapping[str, Any]) -> dict[str, Any]:
    """Every array of the slots changed; None stays."""
    return {
        s: None if v is None else [change(a) for a in v] if isinstance(v, list | tuple) else change(v)
        for s, v in slots.items()
    }


def widened(array: Any) -> np.ndarray:
    """float32 as float64, anything else as it is."""
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype == np.float32 else array


@dataclass(frozen=True)
class Run:
    """One execution of a sample: in the precision it is written in, or (`wide`) in float64."""

    sample: Sample
    wide: bool = False

    @property
    def definition(self) -> OpDef:
        return lookup(self.sample.op)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        names = {s.name for s in self.definition.inputs}
        assert set(self.sample.inputs) <= names, f"{self.sample.op} has the inputs {sorted(names)}"
        return tree(widened if self.wide else np.asarray, self.sample.inputs)

    @cached_property
    def attrs(self) -> dict[str, Any]:
        attrs = {n: canonical(self.definition, n, v) for n, v in self.sample.attrs.items()}
        if self.wide:
            attrs.update({n: _FLOAT_DTYPES.get(attrs[n], attrs[n]) for n in _DTYPE_ATTRS if n in attrs})
        return attrs

    def forward(self, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """slot -> jax array (a list for a repeatable slot) of what the op computes."""
        with jax.enable_x64(True):
            inputs = tree(jnp.asarray, self.inputs if inputs is None else inputs)
            key = jax.random.key(7) if self.definition.random else None
            return tree(jnp.asarray, self.definition(inputs, self.attrs, key))

    @cached_property
    def outputs(self) -> dict[str, Any]:
        return self.forward()

    @cached_property
    def cotangents(self) -> dict[str, Any]:
        """Gradients of the outputs that the sample differentiates, as the recorder feeds them; others have none."""
        found, index = {}, 0
        for slot in self.sample.outputs:
            value = self.outputs[slot]
            arrays = value if isinstance(value, list) else [value]
            given = []
            for array in arrays:
                begins = self.sample.starts_gradient(slot, array)
                given.append(cotangent(array.shape, index, array.dtype) if begins else None)
                index += begins
            if any(g is not None for g in given):
                found[slot] = given if isinstance(value, list) else given[0]
        return found

    def gradients(self) -> dict[str, Any]:
        """input slot -> gradient, from the gradient op at exactly the variables that it names."""
        with jax.enable_x64(True):
            definition = self.definition
            if definition.reuse:
                return {k: v for r in definition.reuse for k, v in self._reused(r).items()}
            assert definition.grad is not None, f"{definition.type} has no gradient"
            ins = {slot: self._origin(origin) for slot, origin in definition.grad.takes.items()}
            counts = {s: len(v) if isinstance(v := self.inputs.get(o), list) else 1 for s, o in definition.grad.gives.items()}
            outs = lookup(definition.grad.type)({s: v for s, v in ins.items() if v is not None}, self.attrs, wanted=counts)
            return {origin: outs[slot] for slot, origin in definition.grad.gives.items()}

    def _origin(self, origin: str) -> Any:
        """The value that a slot's origin stands for."""
        if origin in self.inputs:
            return tree(jnp.asarray, {"": self.inputs[origin]})[""]
        if origin in self.outputs:
            return self.outputs[origin]
        value = self.cotangents.get(origin.removesuffix(GRAD))
        if isinstance(value, list):
            return [None if v is None else jnp.asarray(v) for v in value]
        return None if value is None else jnp.asarray(value)

    def _reused(self, reuse: Reuse) -> dict[str, Any]:
        """The gradients that an ordinary op computes."""
        made = reuse.attrs({**self.definition.defaults, **self.attrs})
        ins = {slot: self._origin(origin) for slot, origin in reuse.ins.items()}
        result = lookup(reuse.type)({s: v for s, v in ins.items() if v is not None}, made)
        grads = {}
        for slot, origin in reuse.outs.items():
            wrt = origin.removesuffix(GRAD)
            grads[wrt] = [result[slot]] * len(self.inputs[wrt]) if reuse.each else result[slot]
        return grads
