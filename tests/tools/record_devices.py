"""Record the devices of ops (op_device) of Paddle 1.8.5: tests/data/devices_1.8.5.json.

python3.8 tests/tools/record_devices.py
"""

import json
import os
import sys

import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import device_nets  # noqa: E402

if __name__ == "__main__":
    with open(os.path.join(HERE, "..", "data", "devices_1.8.5.json"), "w") as file:
        json.dump(device_nets.devices(fluid), file)
        file.write("\n")
