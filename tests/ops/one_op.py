"""A program of one op's sample and its gradient ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax.ops.registry import lookup

from .recorded import recorded
from .sample import Sample


@dataclass(frozen=True)
class Named:
    """A sample, and where it stands."""

    family: str
    index: int
    sample: Sample

    def __str__(self) -> str:
        return f"{self.family}-{self.sample.op}-{self.index}"


class Net:
    """A program of one sample: what it is fed and what is fetched."""

    def __init__(self, named: Named | None) -> None:
        self.main, self.scope = fluid.Program(), fluid.Scope()
        self.feed: dict[str, Any] = {}
        self.block = self.main.global_block()
        with fluid.program_guard(self.main, fluid.Program()):
            if named is None:
                x = self._given("X", 0, "x", np.ones(3, np.float32), None)
                self.fetched = [fluid.layers.scale(x, 2.0)]
            else:
                self._build(named)

    def _build(self, named: Named) -> None:
        sample, definition = named.sample, lookup(named.sample.op)
        ins = {
            s: [self._given(s, i, n, a, sample) for i, (n, a) in enumerate(sample.variables(s))]
            for s in sample.inputs
        }
        outs: dict[str, list[Any]] = {}
        for slot in definition.outputs:
            if slot.name in sample.inplace:
                outs[slot.name] = [ins[sample.inplace[slot.name]][0]]
            elif slot.name in sample.outputs or not slot.optional or sample.op == "rnn":
                count = sample.outputs.get(slot.name) or 1
                outs[slot.name] = [
                    self.block.create_var(name=f"out.{slot.name}.{i}", stop_gradient=False)
                    for i in range(count)
                ]
        self.block.append_op(type=sample.op, inputs=ins, outputs=outs, attrs=dict(sample.attrs))
        between = {s.name for s in definition.outputs if s.intermediate}
        shown = [v for s in sample.outputs for v in outs[s] if s not in between]
        self.fetched = shown or [v for s in sample.outputs for v in outs[s]]
        if sample.grad:
            self._differentiate(named, ins, outs)

    def _differentiate(
        self, named: Named, ins: dict[str, list[Any]], outs: dict[str, list[Any]]
    ) -> None:
        sample = named.sample
        answer = recorded(named.family, named.index, sample) if sample.paddle else {}
        targets, flows = [], []
        for slot in sample.outputs:
            values = answer.get(slot)
            for i, target in enumerate(outs[slot]):
                value = values[i] if isinstance(values, list) else values
                value = (
                    np.zeros([max(n, 1) for n in target.shape], np.float32)
                    if value is None
                    else value
                )
                if sample.starts_gradient(slot, value):
                    known = target.shape == value.shape and not (
                        target.lod_level or sample.lod or sample.rows
                    )
                    # of rows that may be padded, ones
                    targets.append(target if known else fluid.layers.reduce_sum(target))
                    flows.append(
                        self._given("", 0, f"flow.{target.name}", np.ones_like(value), None)
                        if known
                        else None
                    )
        wrt = [v for slot in sample.grad for v in ins[slot]]
        self.fetched = [
            *self.fetched,
            *(g for g in fluid.gradients(targets, wrt, flows) if g is not None),
        ]

    def _given(self, slot: str, index: int, name: str, array: Any, sample: Sample | None) -> Any:
        lod, array = sample.lod_of(slot, index) if sample else None, np.asarray(array)
        state = sample is not None and slot in sample.inplace.values()
        if state:
            self.scope.var(name).set(array)
        else:
            self.feed[name] = (
                fluid.create_lod_tensor(array, lod, fluid.CPUPlace()) if lod else array
            )
        shape = (-1, *array.shape[1:]) if lod else array.shape
        return self.block.create_var(
            name=name, shape=shape, dtype=str(array.dtype), is_data=not state, persistable=state, lod_level=len(lod or ()),
            stop_gradient=sample is None or slot not in sample.grad,
        )  # fmt: skip
