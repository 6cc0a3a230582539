"""Record how far the averaging ops of the real Paddle 1.8.5 lie from float64 (its own, run in
float64).

    python3.8 tests/tools/record_averages.py

Writes tests/data/averages_1.8.5.json: {"OP SHAPE RATIO": {output or gradient: error}} of
tests/ops/averages.py.
"""

import copy
import json
import os

import record_ops
from record_ops import answer, np
from tests.ops.averages import RATIOS, SHAPES, error, samples

FILE = os.path.join(record_ops.ROOT, "tests", "data", "averages_1.8.5.json")


def widened(sample):
    wide = copy.copy(sample)
    wide.inputs = {s: np.asarray(a, "float64") for s, a in sample.inputs.items()}
    return wide


def exactly(sample):
    """Paddle's answer in float64; it has no such kernel of squared_l2_norm."""
    if sample.op == "squared_l2_norm":
        return {"Out": np.sum(np.asarray(sample.inputs["X"], "float64") ** 2)}
    return answer(widened(sample))


def main():
    table = {}
    for shape in SHAPES:
        for ratio in RATIOS:
            for name, sample in samples(shape, ratio).items():
                exact, got = exactly(sample), answer(sample)
                key = "%s %s %d" % (name, "x".join(map(str, shape)), ratio)
                table[key] = {k: float("%.1e" % error(v, exact[k], k)) for k, v in got.items()}
                print(key, table[key], flush=True)
    with open(FILE, "w") as f:
        json.dump(table, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
