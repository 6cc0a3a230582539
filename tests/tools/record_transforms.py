"""Record what the transforms of images of Paddle 2.6.2 or 3.3.1 give:
tests/data/transforms_2.6.2.npz (3.3.1), arrays "CASE/k".

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
    later = paddle.__version__ == "3.3.1"
    for name, text in (transform_cases.LATER if later else transform_cases.CASES).items():
        try:
            for k, array in enumerate(transform_cases.results(paddle.vision.transforms, text)):
                found["%s/%d" % (name, k)] = array
        except Exception as exc:
            print(name, repr(exc)[:300])
    np.savez_compressed(
        os.path.join(HERE, "..", "data", "transforms_%s.npz" % paddle.__version__), **found
    )
