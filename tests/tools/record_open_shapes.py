"""Record which op samples Paddle 1.8.5 refuses to build when dimensions of their inputs are open
(runs on 1.8.5).

    python3.8 tests/tools/record_open_shapes.py

Writes tests/data/open_shapes_1.8.5.json: {op: {digest of a sample: [opening, ...]}} of the openings
that 1.8.5 refuses. An opening is "X.0.1" (dimension 1 of variable 0 in slot X is -1), "X.0.*" (all
of its dimensions) or "*" (all of all). Samples that 1.8.5 does not build as they are, and those of
later Paddles, are left out.
"""

import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), ROOT]

import record_ops as ops  # noqa: E402

from tests.ops.samples import all_samples  # noqa: E402

TARGET = os.path.join(ROOT, "tests", "data", "open_shapes_1.8.5.json")


def openings(shapes):
    """{slot: [shape, ...]} -> the names of all openings"""
    for slot in sorted(shapes):
        for i, shape in enumerate(shapes[slot]):
            for dim in range(len(shape)):
                yield "%s.%d.%d" % (slot, i, dim)
            if len(shape) > 1:
                yield "%s.%d.*" % (slot, i)
    yield "*"


def opened(shape, slot, index, opening):
    """the shape of a variable under an opening"""
    if opening == "*":
        return [-1] * len(shape)
    where = opening.rsplit(".", 2)
    if where[:2] != [slot, str(index)]:
        return list(shape)
    return [-1 if where[2] in ("*", str(d)) else n for d, n in enumerate(shape)]


class Opened(ops.Net):
    opening = None

    def data(self, slot, index, name, array):
        array = ops.np.asarray(array)
        shape = opened(array.shape, slot, index, self.opening)
        return self.block.create_var(
            name=name,
            shape=shape,
            dtype=str(array.dtype),
            is_data=True,
            lod_level=len(self.sample.lod_of(slot, index) or ()),
            stop_gradient=True,
        )


def builds(sample, opening):
    Opened.opening = opening
    try:
        Opened(sample, {})
    except Exception as e:
        return ops.explain(e)
    return None


def one(sample):
    """the refused openings, or None where the sample itself is refused"""
    shapes = {s: [ops.np.shape(a) for _, a in sample.variables(s)] for s in sample.inputs}
    if builds(sample, ".0.-"):
        return None
    return [o for o in openings(shapes) if builds(sample, o)]


def main():
    table = {}
    for _, _, sample in all_samples():
        found = one(sample) if sample.paddle and sample.paddle != ops.LATER else None
        if found is not None:
            table.setdefault(sample.op, {})[str(sample.digest())] = found
    with open(TARGET, "w") as f:
        lines = [
            "%s:%s" % (json.dumps(k), json.dumps(v, separators=(",", ":")))
            for k, v in sorted(table.items())
        ]
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(
        sum(len(o) for v in table.values() for o in v.values()),
        "refused of",
        sum(map(len, table.values())),
        "samples",
    )


if __name__ == "__main__":
    main()
