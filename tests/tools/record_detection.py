"""Record the losses of a detector and their gradients from the real Paddle 1.8.5 (CPU).

    python3.8 tests/tools/record_detection.py

Writes tests/data/detection_1.8.5.npz: "CASE/0" is the loss, "CASE/1" and "CASE/2" its gradients.
"""

import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, ROOT)

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

from tests.layers.detection_cases import CASES, ssd_loss  # noqa: E402

found = {
    "%s/%d" % (name, i): v
    for name, attrs in CASES.items()
    for i, v in enumerate(ssd_loss(fluid, **attrs))
}
np.savez_compressed(os.path.join(ROOT, "tests", "data", "detection_1.8.5.npz"), **found)
