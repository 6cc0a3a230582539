"""Record what 1.8.5's DetectionMAP says of several batches (runs on Paddle 1.8.5, CPU).

    python3.8 tests/tools/record_detection_map.py

Writes tests/data/detection_map_1.8.5.npz: for each case of tests/layers/detection_map_cases.py the means
batch by batch, [batches, 2], and the state that is left: "CASE/state" [rows, 2], "CASE/lod".
"""

import os
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, ROOT)

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

from tests.layers import detection_map_cases  # noqa: E402

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {}
    for name, case in detection_map_cases.CASES.items():
        means, state, lod = detection_map_cases.run(fluid, fluid.evaluator, **case)
        found.update({name + "/means": means, name + "/state": state, name + "/lod": lod})
    np.savez_compressed(os.path.join(ROOT, "tests", "data", "detection_map_1.8.5.npz"), **found)
