"""What Paddle 1.8.5 answered to the op samples (tests/tools/record_ops.py wrote it)."""
import functools
import os

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "ops")


def path(family):
    return os.path.join(FOLDER, family + ".npz")


@functools.lru_cache(maxsize=None)
def answers(family):
    """{sample index: {key: array}}, digests of all samples"""
    table = {}
    with np.load(path(family)) as data:
        digests = data["digests"]
        for name in set(data.files) - {"digests"}:
            index, _, key = name.partition("/")
            table.setdefault(int(index), {})[key] = data[name]
    return table, digests


def recorded(family, index, sample=None):
    """{slot: array, or list of arrays for a duplicable slot}, gradients under SLOT@GRAD.

    With the sample given, one that has changed since it was recorded is refused.
    """
    table, digests = answers(family)
    answer = table.get(index)
    if answer is None:
        raise KeyError("%s/%d is not recorded: run tests/tools/record_ops.py %s" % (family, index, family))
    if sample is not None and int(digests[index]) != sample.digest():
        raise ValueError("%s/%d (%s) changed since it was recorded: run tests/tools/record_ops.py %s"
                         % (family, index, sample.op, family))
    out = {}
    for key in sorted(answer, key=position):
        slot, mark, _ = key.partition("#")
        if mark:
            out.setdefault(slot, []).append(answer[key])
        else:
            out[slot] = answer[key]
    return out


def position(key):
    slot, _, number = key.partition("#")
    return slot, int(number or 0)
