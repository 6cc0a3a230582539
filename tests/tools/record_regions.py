"""Record the training of a small two-stage detector by Paddle 1.8.5: python3.8
tests/tools/record_regions.py

Writes tests/data/regions_1.8.5.json, what tests/lower/region_nets.py gives.
"""

import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, ROOT)

import paddle.fluid as fluid  # noqa: E402

from tests.lower import region_nets  # noqa: E402

if __name__ == "__main__":
    with open(os.path.join(ROOT, "tests", "data", "regions_1.8.5.json"), "w") as f:
        json.dump(region_nets.trained(fluid)[1], f)
