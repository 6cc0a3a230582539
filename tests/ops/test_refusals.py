"""Every op type, built wrongly: whatever is raised is a sentence of ours, and not what JAX or
Python said within.

Also constants beside values that only a running step knows: NumPy's arrays cannot be indexed by
those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError
from fluidjax.ops import ring
from fluidjax.ops.ragged import Ragged
from fluidjax.ops.registry import lookup

from .running import NOT_TRACEABLE, Run
from .sample import Sample
from .samples import all_samples

pytestmark = pytest.mark.once
OTHER = {"f": np.int64, "i": np.float32, "u": np.float32, "b": np.float32, "c": np.float32}
FOREIGN = re.compile(
    r"ncompatible shapes|ncompatible types|index out of range|NoneType|has no attribute|not"
    r" subscriptable|unsupported operand|"
    r"positional argument|zip\(\)|to"
    r" unpack|dot_general|broadcast_in_dim|\blax\.|\bjax\.|jnp\.|ShapedArray|Tracer|cannot reshape|"
    r"division by zero|modulo by zero|convert float|out of bounds for array|ndexer must|must be"
    r" real number"
)


def firsts() -> list[Sample]:
    """Of every op type that is not a gradient the first sample."""
    found: dict[str, Sample] = {}
    for _, _, sample in all_samples():
        if lookup(sample.op).forward is None:
            found.setdefault(sample.op, sample)
    return list(found.values())


def built(sample: Sample, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    """Append the op to a program."""
    main, definition = fluid.Program(), lookup(sample.op)
    with fluid.program_guard(main, fluid.Program()):
        block = main.global_block()
        ins = {
            s: [
                block.create_var(
                    name=f"{s}.{i}",
                    shape=a.shape,
                    dtype=str(a.dtype),
                    is_data=True,
                    lod_level=len(sample.lod_of(s, i) or ()),
                )
                for i, a in enumerate(v if isinstance(v, list) else [v])
            ]
            for s, v in inputs.items()
        }
        outs = {}
        for slot in definition.outputs:
            if slot.name in sample.inplace and sample.inplace[slot.name] in ins:
                outs[slot.name] = ins[sample.inplace[slot.name]][:1]
            elif slot.name in sample.outputs or not slot.optional:
                count = sample.outputs.get(slot.name) or 1
                outs[slot.name] = [
                    block.create_var(name=f"out.{slot.name}.{i}") for i in range(count)
                ]
        block.append_op(type=sample.op, inputs=ins, outputs=outs, attrs=attrs)


def wrong(sample: Sample) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Of each input another rank, no dimension, another dtype, another size, nothing; of attributes
    what cannot be meant.
    """
    given = {
        s: [np.asarray(a) for a in v] if isinstance(v, list) else np.asarray(v)
        for s, v in sample.inputs.items()
    }
    attrs = dict(sample.attrs)
    for slot, value in given.items():
        one = value[0] if isinstance(value, list) and value else value
        if isinstance(one, list):
            continue
        others = {
            "one dimension more": one[None], "no dimension": np.zeros((), one.dtype), "another dtype": one.astype(OTHER[one.dtype.kind]),
            "a longer last dimension": np.concatenate([one, one[..., :1]], -1) if one.ndim else one,
        }  # fmt: skip
        for what, new in others.items():
            yield (
                f"{slot}: {what}",
                {**given, slot: [new, *value[1:]] if isinstance(value, list) else new},
                attrs,
            )
        yield f"no {slot}", {s: v for s, v in given.items() if s != slot}, attrs
    for name, attr in lookup(sample.op).attrs.items():
        value = attrs.get(name, attr.default)
        if isinstance(value, list | tuple):
            yield f"{name} = ()", given, {**attrs, name: []}
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{name} = -7", given, {**attrs, name: -7}
        elif isinstance(value, float):
            yield f"{name} = nan", given, {**attrs, name: float("nan")}


@pytest.mark.first(1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", range(8))
def test_what_is_built_wrongly(part: int) -> None:
    found = []
    with ring.bound(ring.Ring(None, 1)):
        for sample in firsts()[part::8]:
            for what, inputs, attrs in wrong(sample):
                try:
                    built(sample, inputs, attrs)
                except FluidError as error:
                    if FOREIGN.search(str(error)):
                        found.append(f"{sample.op}, {what}: {error}")
                except Exception as error:  # what the test is about
                    found.append(f"{sample.op}, {what}: {type(error).__name__}: {error}")
    assert not found, "\n".join(found)


def constants(sample: Sample) -> str:
    """What tracing raises where only the first of the op's inputs is unknown, and where only the
    last is.
    """
    run = Run(sample)
    slots = [s for s, v in run.inputs.items() if not isinstance(v, Ragged | list)]
    for free in {*slots[:1], *slots[-1:]} if len(run.inputs) > 1 else ():
        fixed = {s: v for s, v in run.inputs.items() if s != free}
        if any(
            isinstance(v, Ragged) or (isinstance(v, list) and any(isinstance(r, Ragged) for r in v))
            for v in fixed.values()
        ):
            continue  # offsets are never constants
        try:
            jax.jit(lambda x, fixed=fixed, free=free: run.execute({**fixed, free: x})).trace(
                run.inputs[free]
            )
        except jax.errors.TracerArrayConversionError as error:
            return f"{sample.op}, {free} unknown: {error}".splitlines()[0]
        except (FluidError, *NOT_TRACEABLE):
            continue
        except Exception as error:  # what the test is about
            return f"{sample.op}, {free} unknown: {type(error).__name__}: {error}".splitlines()[0]
    return ""


@pytest.mark.slow
def test_constants_beside_values_that_only_a_running_step_knows() -> None:
    with ring.bound(ring.Ring(None, 1)), jax.enable_x64(True):
        found = [told for told in map(constants, firsts()) if told]
    assert not found, "\n".join(found)


IMAGE = np.ones((1, 2, 4, 4), "float32")
BOXES = {"X": np.ones((1, 14, 2, 2), "float32"), "ImgSize": np.ones((1, 2), "int32")}
SIZES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(("pool2d", {"X": IMAGE}, {"pooling_type": kind, "ksize": (n, 2), "strides": (2, 2)}) for kind in ("max", "avg") for n in (0, -1)),
    *(("pool2d", {"X": IMAGE}, {"pooling_type": "max", "ksize": (2, 2), "strides": (n, 2)}) for n in (0, -1)),
    *(("pool2d", {"X": IMAGE}, {"pooling_type": kind, "ksize": (2, n), "adaptive": True}) for kind in ("max", "avg") for n in (0, -1)),
    *(("yolo_box", BOXES, {"anchors": (1, 1, 2, 2), "class_num": 2, "downsample_ratio": n}) for n in (0, -1)),
    ("split_byref", {"X": np.ones((4, 2))}, {"sections": (5, -1)}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "inputs", "attrs"), SIZES)
def test_sizes_that_are_none(kind: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    """A window of no cells has no maximum; 1.8.5 divides by 0, or answers with the least number."""
    definition = lookup(kind)
    with pytest.raises(FluidError):
        definition(inputs, {**definition.defaults, **attrs})
