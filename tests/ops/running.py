"""Runs a sample's op, and its gradient op with the slots that Paddle's would get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidjax.base.dtypes import VarType
from fluidjax.errors import EnforceNotMet, UnsupportedError
from fluidjax.feeds.bucketing import bucketed, true_rows
from fluidjax.lod_tensor import create_lod_tensor
from fluidjax.lower.rows import is_ragged, treat
from fluidjax.ops.ragged import Ragged, like, rows_of
from fluidjax.ops.registry import GRAD, OpDef, Reuse, canonical, lookup

from .sample import Sample
from .together import Together, attempt, given

Results = tuple[dict[str, Any], dict[str, Any]]  # outputs by slot, gradients by input slot

# What an op raises that must know a value, not only its shape.
NOT_TRACEABLE = (UnsupportedError, EnforceNotMet, jax.errors.JAXTypeError, jax.errors.JAXIndexError)
_FLOAT_DTYPES = {VarType.FP32: VarType.FP64}
_DTYPE_ATTRS = ("dtype", "in_dtype", "out_dtype")


def tree(change: Callable[[Any], Any], slots: Mapping[str, Any]) -> dict[str, Any]:
    """Every array of the slots changed, rows of ragged values too; None stays."""

    def changed(value: Any) -> Any:
        if isinstance(value, Ragged):
            return replace(value, rows=change(value.rows))
        if isinstance(value, list | tuple):
            return [changed(v) for v in value]
        return None if value is None else change(value)

    return {slot: changed(value) for slot, value in slots.items()}


def widened(array: Any) -> np.ndarray:
    """float32 as float64, anything else as it is."""
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype == np.float32 else array


def ragged(sample: Sample, inputs: dict[str, Any], exact: bool = True) -> dict[str, Any]:
    """The inputs with the sample's LoDs."""

    def tensor(slot: str, index: int, array: Any) -> Any:
        lod = sample.lod_of(slot, index)
        return create_lod_tensor(array, lod) if lod else array

    flat = {
        (s, i): tensor(s, i, a)
        for s, v in inputs.items()
        for i, a in enumerate(v if isinstance(v, list) else [v])
    }
    given = bucketed(flat, exact)
    return {
        s: [given[s, i] for i in range(len(v))] if isinstance(v, list) else given[s, 0]
        for s, v in inputs.items()
    }


def _floats(value: Any) -> bool:
    return all(a.dtype.kind == "f" for a in (value if isinstance(value, list) else [value]))


@dataclass(frozen=True, eq=False)
class Run:
    """One execution of a sample: in the precision it is written in, or (`wide`) in float64;
    compiled with others of a batch.
    """

    sample: Sample
    wide: bool = False
    batch: Batch | None = None

    @property
    def definition(self) -> OpDef:
        return lookup(self.sample.op)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        names = {s.name for s in self.definition.inputs}
        assert set(self.sample.inputs) <= names, f"{self.sample.op} has the inputs {sorted(names)}"
        return ragged(self.sample, tree(widened if self.wide else np.asarray, self.sample.inputs))

    @cached_property
    def attrs(self) -> dict[str, Any]:
        given = {n: canonical(self.definition, n, v) for n, v in self.sample.attrs.items()}
        attrs = {**self.definition.defaults, **given}
        if self.wide:
            attrs.update(
                {n: _FLOAT_DTYPES.get(attrs[n], attrs[n]) for n in _DTYPE_ATTRS if n in attrs}
            )
        return attrs

    def execute(self, inputs: Mapping[str, Any]) -> Results:
        """Outputs by slot, and gradients by input slot if the sample asks for any."""
        key = jax.random.key(7) if self.definition.random else None
        # as a step runs such an op
        if is_ragged(inputs) and not any(s.ragged for s in self.definition.inputs):
            treated = treat(self.definition, inputs, self.definition.arguments(self.attrs))
            outputs = tree(
                jnp.asarray, treated.shown(self.definition(treated.inputs, self.attrs, key))
            )
            inputs = treated.inputs
        else:
            outputs = tree(jnp.asarray, self.definition(inputs, self.attrs, key))
        return outputs, Gradient(self, inputs, outputs).by_slot() if self.sample.grad else {}

    @cached_property
    def jitted(self) -> tuple[Any, tuple[str, ...]] | None:
        """execute() under jit, and the slots it takes. Integers that decide a shape are constants;
        None: it cannot be traced.
        """
        for slots in (tuple(self.inputs), tuple(s for s, v in self.inputs.items() if _floats(v))):
            fixed = {s: v for s, v in self.inputs.items() if s not in slots}
            run = jax.jit(lambda given, fixed=fixed: self.execute({**fixed, **given}))
            try:
                run.trace({s: self.inputs[s] for s in slots})
            except NOT_TRACEABLE:
                continue
            return run, slots
        return None

    @property
    def result(self) -> Results:
        assert self.batch is not None
        return given(self.batch.results[self])

    @property
    def outputs(self) -> dict[str, Any]:
        return self.result[0]

    @property
    def gradients(self) -> dict[str, Any]:
        return self.result[1]


def shown(value: Any) -> Any:
    """The rows as they are fetched: true ones alone."""
    if isinstance(value, list):
        return [shown(v) for v in value]
    return true_rows(value) if isinstance(value, Ragged) and value.padded else rows_of(value)


class Batch:
    """Executions of several samples in one compiled program; those that cannot be traced run
    eagerly.

    Samples that differ in the values of their inputs alone are computed by one piece of it, which
    runs for each.
    """

    def __init__(self, samples: Sequence[Sample], wide: bool = False) -> None:
        self.runs = [Run(sample, wide, self) for sample in samples]

    @cached_property
    def _jitted(self) -> dict[Run, Any]:
        """Of each run, its function and slots, None, or why there is none."""
        found: dict[Run, Any] = {}
        alike: dict[str, Any] = {}
        for run in self.runs:
            key = run.sample.program()
            found[run] = alike[key] if key in alike else attempt(lambda run=run: run.jitted)
            # no value of an input is in it
            if isinstance(found[run], tuple) and len(found[run][1]) == len(run.inputs):
                alike[key] = found[run]
        return found

    @cached_property
    def _pieces(self) -> list[list[Run]]:
        """The runs of each function."""
        pieces: dict[int, list[Run]] = {}
        for run, function in self._jitted.items():
            if isinstance(function, tuple):
                pieces.setdefault(id(function), []).append(run)
        return list(pieces.values())

    def _given(self, run: Run, inputs: Mapping[Run, Any]) -> tuple[dict[str, Any]]:
        return ({s: inputs[run][s] for s in self._jitted[run][1]},)

    @cached_property
    def _together(self) -> Together:
        originals = {run: run.inputs for run, *_ in self._pieces}
        return Together([(self._jitted[run][0], self._given(run, originals)) for run in originals])

    def at(self, inputs: Mapping[Run, Any]) -> dict[Run, Any]:
        """The results for these inputs of the runs; an exception for what raised one."""
        with jax.enable_x64(True):
            found = {r: f for r, f in self._jitted.items() if not isinstance(f, tuple)}
            found |= {
                r: attempt(lambda r=r: r.execute(tree(jnp.asarray, inputs[r])))
                for r, f in found.items()
                if f is None
            }
            for i in range(max(map(len, self._pieces), default=0)):
                there = [runs[min(i, len(runs) - 1)] for runs in self._pieces]
                found |= zip(
                    there, self._together([self._given(r, inputs) for r in there]), strict=True
                )
            return found

    @cached_property
    def results(self) -> dict[Run, Any]:
        return self.at({run: attempt(lambda run=run: run.inputs) for run in self.runs})


def cotangents(sample: Sample, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Gradients of the outputs that the sample differentiates, as the recorder feeds them; others
    have none.
    """
    found, index = {}, 0
    for slot in sample.outputs:
        value = outputs[slot]
        given = []
        for array in rows_of(value) if isinstance(value, list) else [rows_of(value)]:
            begins = sample.starts_gradient(slot, array)
            given.append(cotangent(sample, slot, index, array) if begins else None)
            index += begins
        if any(g is not None for g in given):
            found[slot] = given if isinstance(value, list) else given[0]
    return found


def cotangent(sample: Sample, slot: str, index: int, array: Any) -> Any:
    """What the recorder feeds; 0 behind the true rows of an output whose size is data."""
    count = sample.rows.get(slot, array.shape[0] if array.ndim else 0)
    true = sample.cotangent(
        slot, index, (count, *array.shape[1:]) if array.ndim else (), array.dtype
    )
    return (
        np.concatenate([true, np.zeros((array.shape[0] - count, *array.shape[1:]), true.dtype)])
        if array.ndim
        else true
    )


@dataclass(frozen=True)
class Gradient:
    """The gradient ops of a run, given exactly the variables that they name."""

    run: Run
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]

    def by_slot(self) -> dict[str, Any]:
        """input slot -> gradient."""
        definition = self.run.definition
        if definition.reuse:
            return {k: v for r in definition.reuse for k, v in self._reused(r).items()}
        assert definition.grad is not None, f"{definition.type} has no gradient"
        ins = {
            slot: self._origin(origin)
            for slot, origin in definition.grad.taken(self._attrs).items()
        }
        counts = {slot: self._count(origin) for slot, origin in definition.grad.gives.items()}
        given = {s: v for s, v in ins.items() if v is not None}
        for slot in (
            s.name
            for s in lookup(definition.grad.type).inputs
            if s.ragged and s.name.endswith(GRAD)
        ):
            given[slot] = like(self.outputs[slot.removesuffix(GRAD)], given[slot])
        outs = lookup(definition.grad.type)(given, self.run.attrs, wanted=counts)
        return {origin: outs[slot] for slot, origin in definition.grad.gives.items()}

    @cached_property
    def _cotangents(self) -> dict[str, Any]:
        return tree(jnp.asarray, cotangents(self.run.sample, self.outputs))

    @cached_property
    def _attrs(self) -> dict[str, Any]:
        return {**self.run.definition.defaults, **self.run.attrs}

    def _count(self, slot: str) -> int:
        value = self.inputs.get(slot)
        return len(value) if isinstance(value, list) else 1

    def _origin(self, origin: str) -> Any:
        """The value that a slot's origin stands for."""
        for values in (self.inputs, self.outputs):
            if origin in values:
                return values[origin]
        return self._cotangents.get(origin.removesuffix(GRAD))

    def _reused(self, reuse: Reuse) -> dict[str, Any]:
        """The gradients that an ordinary op computes."""
        made = reuse.attrs(self._attrs)
        ins = {slot: self._origin(origin) for slot, origin in reuse.ins.items()}
        result = lookup(reuse.type)({s: v for s, v in ins.items() if v is not None}, made)
        grads = {}
        for slot, origin in reuse.outs.items():
            wrt = origin.removesuffix(GRAD)
            grads[wrt] = [result[slot]] * self._count(wrt) if reuse.each else result[slot]
        return grads
