"""Traits `sizes` and `shape_of`, over the registry: an op needs the values that its declaration
names, and no others.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluidjax.errors import UnsupportedError
from fluidjax.ir.desc import FrozenMap, OpDesc
from fluidjax.ops.registry import REGISTRY, lookup

from .running import NOT_TRACEABLE, Run
from .sample import Sample
from .samples import all_samples


def distinct() -> dict[str, Sample]:
    """A sample of each op for each set of inputs, of those that take integers or say that values
    decide sizes.
    """
    found: dict[Any, tuple[str, Sample]] = {}
    for family, index, sample in all_samples():
        definition = lookup(sample.op)
        if sample.lod or definition.fn is None or definition.traits.ranks.together:
            continue
        arrays = [a for slot in sample.inputs for _, a in sample.variables(slot)]
        if (
            definition.traits.sizes
            or definition.traits.shape_of
            or any(np.asarray(a).dtype.kind in "iu" for a in arrays)
        ):
            attrs = {n: v for n, v in sample.attrs.items() if n in ("maxlen", "decrease_axis")}
            key = (sample.op, *sorted(sample.inputs), str(attrs))
            found.setdefault(key, (f"{family}-{sample.op}-{index}", sample))
    return dict(found.values())


CASES = distinct()
SIZED = {
    n: s
    for n, s in CASES.items()
    if lookup(s.op).traits.sizes and set(lookup(s.op).traits.sizes.slots) & set(s.inputs)
}
SHAPED = {n: s for n, s in CASES.items() if lookup(s.op).traits.shape_of}


# Slots whose value an op needs for some values of others, which are not known beforehand.
PERHAPS = {
    ("crop_tensor", "Offsets"): "for a -1 in ShapeTensor",
    ("crop_tensor", "OffsetsTensor"): "for a -1 in Shape or ShapeTensor",
}
# Slots without a sample here: the op's slot that the same function reads, or a case of
# tests/sizes/cases.py.
LIKE = {
    ("crop_tensor", "Offsets"): ("crop_tensor", "OffsetsTensor"),
    ("gaussian_random", "ShapeTensorList"): ("fill_constant", "ShapeTensorList"),
    ("randint", "ShapeTensor"): ("fill_constant", "ShapeTensor"), ("randint", "ShapeTensorList"): ("fill_constant", "ShapeTensorList"),
    ("strided_slice", "EndsTensorList"): ("slice", "EndsTensorList"), ("strided_slice", "StridesTensorList"): ("slice", "EndsTensorList"),
    ("empty", "ShapeTensor"): ("fill_constant", "ShapeTensor"), ("empty", "ShapeTensorList"): ("fill_constant", "ShapeTensorList"),
    ("reduce_all", "AxisTensor"): ("reduce_any", "AxisTensor"), ("reduce_all", "AxisTensorList"): ("reduce_any", "AxisTensorList"),
    ("reduce_any", "AxisTensor"): ("test_later", "axes"), ("reduce_any", "AxisTensorList"): ("test_later", "axes"),
    ("lod_reset", "Y"): ("sizes", "sequences_by_fed_offsets"), ("uniform_random", "ShapeTensor"): ("fill_constant", "ShapeTensor"),
}  # fmt: skip


def needed(sample: Sample) -> list[tuple[str, int]]:
    """What the declaration says of a sample's op as a program has it."""
    ins = {slot: tuple(name for name, _ in sample.variables(slot)) for slot in sample.inputs}
    decides = lookup(sample.op).traits.sizes
    return (
        decides.needed(OpDesc(0, sample.op, FrozenMap(ins), attrs=FrozenMap(Run(sample).attrs)))
        if decides
        else []
    )


def traced(sample: Sample, known: list[tuple[str, int]]) -> Any:
    """The op's outputs for these inputs as they are, and all others known by shape alone."""
    run = Run(sample)
    flat = {
        (s, i): a
        for s, v in run.inputs.items()
        for i, a in enumerate(v if isinstance(v, list) else [v])
    }
    there = {at: flat[at] for at in known}
    key = jax.random.key(0) if run.definition.random else None

    def compute(hidden: dict[str, Any]) -> Any:
        given = {at: there[at] if at in there else hidden[f"{at[0]}/{at[1]}"] for at in flat}
        inputs = {
            s: [given[s, i] for i in range(len(v))] if isinstance(v, list) else given[s, 0]
            for s, v in run.inputs.items()
        }
        return jax.tree.map(jnp.asarray, run.definition(inputs, run.attrs, key))

    with jax.enable_x64(True):
        return jax.eval_shape(
            compute, {f"{s}/{i}": a for (s, i), a in flat.items() if (s, i) not in there}
        )


@pytest.mark.parametrize("name", CASES)
def test_no_other_value_is_needed(name: str) -> None:
    """With the values that the trait names, an op is traced; a value that it needs besides has to
    be named.
    """
    sample = CASES[name]
    try:
        traced(sample, needed(sample))
    except NOT_TRACEABLE as error:
        pytest.fail(
            f"op {sample.op} needs the value of an input while it is traced: {error}; name the slot"
            " in sizes=sizes_from(...) on its declaration (fluidjax/ops/traits.py), or compute"
            " without it"
        )


@pytest.mark.parametrize("name", SIZED)
def test_each_value_that_is_named_is_needed(name: str) -> None:
    """A slot that is named for nothing would have a program compiled for each of its values."""
    sample = SIZED[name]
    places = needed(sample)
    for at in (p for p in places if (sample.op, p[0]) not in PERHAPS):
        with pytest.raises((UnsupportedError, jax.errors.JAXTypeError)):
            traced(sample, [p for p in places if p != at])


@pytest.mark.parametrize("name", SHAPED)
def test_only_the_shape_is_looked_at(name: str) -> None:
    """Other numbers in the slot give the same results."""
    sample = SHAPED[name]
    run, slots = Run(sample), lookup(sample.op).traits.shape_of
    key = jax.random.key(0) if run.definition.random else None
    other = {s: np.full_like(v, 3) if s in slots else v for s, v in run.inputs.items()}
    with jax.enable_x64(True):
        ours, theirs = (run.definition(given, run.attrs, key) for given in (run.inputs, other))
    for slot in ours:
        np.testing.assert_array_equal(ours[slot], theirs[slot])


def test_every_op_whose_values_decide_sizes_has_a_sample() -> None:
    """By slot: else nothing above would look at it."""
    seen = {(s.op, slot) for s in SIZED.values() for slot, _ in needed(s)}
    declared = {
        (k, slot)
        for k, d in REGISTRY.items()
        if d.traits.sizes and d.forward is None
        for slot in d.traits.sizes.slots
    }
    assert declared - seen == set(LIKE), f"no sample has {sorted(declared - seen - set(LIKE))}"
    assert {k for k, d in REGISTRY.items() if d.traits.shape_of} == {s.op for s in SHAPED.values()}
