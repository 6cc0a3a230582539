"""Record what Fluid's small names give on Paddle 1.8.5: tests/data/small_names_1.8.5.json.

    python3.8 tests/tools/record_small_names.py

op_freq_statistic of 1.8.5 needs Python 2's dicts, so their methods are given to it here.
"""

import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import paddle  # noqa: E402
import paddle.compat  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
import paddle.fluid.average  # noqa: E402
import paddle.fluid.contrib.model_stat  # noqa: E402
import paddle.fluid.contrib.op_frequence as op_frequence  # noqa: E402
from small_names import CASES  # noqa: E402

source = re.sub(
    r"(\w+)\.has_key\(([\w.]+)\)", r"(\2 in \1)", open(op_frequence.__file__).read()
).replace(".iteritems()", ".items()")
scope = {
    "__name__": op_frequence.__name__,
    "__package__": "paddle.fluid.contrib",
    "OrderedDict": collections.OrderedDict,
}
exec(compile(source, "op_frequence", "exec"), scope)
fluid.contrib.op_freq_statistic = scope["op_freq_statistic"]

path = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "data", "small_names_1.8.5.json"
)
with open(path, "w") as f:
    json.dump(
        {name: case(fluid, paddle) for name, case in sorted(CASES.items())},
        f,
        indent=0,
        sort_keys=True,
    )
    f.write("\n")
