"""What 1.8.5 builds with open dimensions builds here: every op, with -1 at any place of any input.

`python -m tests.ops.test_open_shapes` goes over all openings of all samples (some minutes); the
tests over one of each op and those that clashed once.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.base.dtypes import name_of
from fluidjax.errors import FluidError, ShapeError
from fluidjax.ir.desc import FrozenMap
from fluidjax.ops.infer import Spec, infer
from fluidjax.ops.registry import canonical, lookup

from .sample import Sample
from .samples import all_samples

RECORD: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "open_shapes_1.8.5.json").read_text()
)
SAMPLES = [
    s
    for _, _, s in all_samples()
    if str(s.digest()) in RECORD.get(s.op, ()) and lookup(s.op).fn is not None
]
# Refused here, but for one: nothing tells the sizes that would fit, and no program leaves them
# open.
HERE = {
    "conv2d_transpose": "output_size says little of an input of which nothing is known",
    "conv3d_transpose": "likewise",
    "depthwise_conv2d_transpose": "likewise",
    "auc": "statistics of unknown size",
    "unpool": "not refused, but slow to try; 1.8.5 builds it only with everything open",
    "gather_nd": "the depth of Index decides the rank of Out",
}
# Beside a constant, or as a whole: these were refused where every -1 was taken for one and the same
# size.
CLASHED = {
    "equal": "X.0.0", "cross_entropy": "Label.0.0", "accuracy": "Label.0.*", "softmax_with_cross_entropy": "*",
    "batch_norm": "Scale.0.0", "conv2d": "Filter.0.2", "conv3d": "Input.0.*", "huber_loss": "Y.0.0",
    "linear_chain_crf": "*", "partial_sum": "X.0.1", "average_accumulates": "param.0.0", "addmm": "Input.0.1",
}  # fmt: skip


def openings(sample: Sample) -> list[str]:
    """As tests/tools/record_open_shapes.py names them."""
    found = []
    for slot in sorted(sample.inputs):
        for i, (_, array) in enumerate(sample.variables(slot)):
            found += [f"{slot}.{i}.{d}" for d in range(np.ndim(array))] + [f"{slot}.{i}.*"] * (
                np.ndim(array) > 1
            )
    return [*found, "*"]


def opened(sample: Sample, opening: str) -> dict[str, Any]:
    """The sample's inputs as Specs, with -1 where the opening says."""

    def spec(slot: str, index: int, array: Any) -> Spec:
        array = np.asarray(array)
        where = opening.rsplit(".", 2)
        whole = opening == "*" or (where[:2] == [slot, str(index)] and where[2] == "*")
        here = where[:2] == [slot, str(index)]
        shape = [
            -1 if whole or (here and where[2] == str(d)) else n for d, n in enumerate(array.shape)
        ]
        return Spec(tuple(shape), name_of(array.dtype))

    specs = {}
    for slot, value in sample.inputs.items():
        found = tuple(spec(slot, i, a) for i, (_, a) in enumerate(sample.variables(slot)))
        specs[slot] = found if isinstance(value, list | tuple) else found[0]
    return specs


def build(sample: Sample, opening: str) -> None:
    definition = lookup(sample.op)
    attrs = {
        **definition.defaults,
        **{n: canonical(definition, n, v) for n, v in sample.attrs.items()},
    }
    infer(definition, FrozenMap(opened(sample, opening)), attrs)


def buildable() -> Iterator[tuple[Sample, str]]:
    """Samples with openings that 1.8.5 builds."""
    for sample in SAMPLES:
        if sample.op not in HERE:
            refused = RECORD[sample.op][str(sample.digest())]
            yield from ((sample, o) for o in openings(sample) if o not in refused)


def one_of_each_op() -> list[Any]:
    chosen: dict[str, tuple[int, Sample, str]] = {}
    for sample, opening in buildable():
        key = zlib.crc32(f"{sample.digest()}/{opening}".encode())
        if (
            CLASHED.get(sample.op, opening) == opening
            and key < chosen.get(sample.op, (1 << 32,))[0]
        ):
            chosen[sample.op] = key, sample, opening
    return [
        pytest.param(sample, opening, id=f"{kind}-{opening}")
        for kind, (_, sample, opening) in chosen.items()
    ]


@pytest.mark.first(40)
@pytest.mark.parametrize(("sample", "opening"), one_of_each_op())
def test_open_dimensions_are_no_mismatch(sample: Sample, opening: str) -> None:
    build(sample, opening)


def test_every_op_has_a_recording() -> None:
    assert len(one_of_each_op()) > 230
    assert set(CLASHED) <= {s.op for s in SAMPLES}


def equal(x: tuple[int, ...], y: tuple[int, ...]) -> Any:
    return infer(
        lookup("equal"), FrozenMap({"X": Spec(x, "float32"), "Y": Spec(y, "float32")}), {}
    )["Out"]


def test_what_an_open_dimension_may_be() -> None:
    assert equal((-1, 3), (3, -1)).shape == (3, 3)
    assert equal((-1, 3), (-1, 3)).shape == (-1, 3)
    label = {"Logits": Spec((-1, 5), "float32"), "Label": Spec((2, 1), "int64")}
    assert infer(lookup("softmax_with_cross_entropy"), FrozenMap(label), {})["Loss"].shape == (2, 1)
    filters = {"Input": Spec((-1, 4, 6, 6), "float32"), "Filter": Spec((3, 4, -1, 3), "float32")}
    attrs = {"strides": (1, 1), "paddings": (0, 0), "dilations": (1, 1), "groups": 1}
    assert infer(lookup("conv2d"), FrozenMap(filters), attrs)["Output"].shape == (-1, 3, -1, 4)


def test_a_refusal_speaks_of_sizes_that_were_written() -> None:
    with pytest.raises(ShapeError) as refused:
        equal((-1, 3), (2, 5))
    assert set(map(int, re.findall(r"-?\d+", str(refused.value).replace("float32", "")))) <= {
        -1,
        2,
        3,
        5,
    }
    with pytest.raises(FluidError) as refused:
        shapes = {
            "Input": Spec((-1, 4, -1, -1), "float32"),
            "Filter": Spec((3, 5, 3, 3), "float32"),
        }
        infer(
            lookup("conv2d"),
            FrozenMap(shapes),
            {"strides": (1, 1), "paddings": (0, 0), "dilations": (1, 1), "groups": 1},
        )
    assert "5040" not in str(refused.value)


if __name__ == "__main__":
    for sample, opening in buildable():
        try:
            build(sample, opening)
        except FluidError as error:
            print(sample, opening, error)
