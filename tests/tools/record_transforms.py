"""Record what Paddle 2.6.2's transforms of images give: tests/data/transforms_2.6.2.npz, arrays "CASE/k".

    python3.8 tests/tools/record_transforms.py
"""
import os
import sys

import numpy as np
import paddle

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "paddle"))
import transform_cases  # noqa: E402

if __name__ == "__main__":
    found = {}
    for name, text in transform_cases.CASES.items():
        try:
            for k, array in enumerate(transform_cases.results(paddle.vision.transforms, text)):
                found["%s/%d" % (name, k)] = array
        except Exception as exc:
            print(name, repr(exc)[:300])
    np.savez_compressed(os.path.join(HERE, "..", "data", "transforms_2.6.2.npz"), **found)
