"""Record how the real Paddle 1.8.5 trains the recurrent networks of tests/layers/recurrent_nets.py.

    python3.8 tests/tools/record_recurrent.py

Writes tests/data/recurrent_1.8.5.json: {network: {"losses": [...], "parameters": {name: sum of
squares after}}}.
"""

import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, ROOT)

import paddle.fluid as fluid  # noqa: E402

from tests.layers.recurrent_nets import NETS, trained  # noqa: E402

with open(os.path.join(ROOT, "tests", "data", "recurrent_1.8.5.json"), "w") as out:
    json.dump({name: trained(fluid, name) for name in NETS}, out, indent=1, sort_keys=True)
