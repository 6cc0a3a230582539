"""What Paddle answered to the op samples: 1.8.5, or 3.3.1 to ops of 2.x (tests/tools/record_ops.py
wrote it).
"""

import functools
import os

import numpy as np

from .sample import LATER

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "ops")


def path(family, later=False):
    return os.path.join(FOLDER, family + (".later.npz" if later else ".npz"))


@functools.lru_cache(maxsize=None)
def answers(family, later=False):
    """{sample index: {key: array}}, digests of all samples"""
    table = {}
    with np.load(path(family, later)) as data:
        digests = data["digests"]
        for name in set(data.files) - {"digests"}:
            index, _, key = name.partition("/")
            table.setdefault(int(index), {})[key] = data[name]
    return table, digests


def recorded(family, index, sample):
    """{slot: array, or list of arrays for a duplicable slot}, gradients under SLOT@GRAD.

    A sample that has changed since it was recorded is refused.
    """
    table, digests = answers(family, sample.paddle == LATER)
    answer = table.get(index)
    if answer is None:
        raise KeyError(
            "%s/%d is not recorded: run tests/tools/record_ops.py %s" % (family, index, family)
        )
    if int(digests[index]) != sample.digest():
        raise ValueError(
            "%s/%d (%s) changed since it was recorded: run tests/tools/record_ops.py %s"
            % (family, index, sample.op, family)
        )
    out = {}
    for key in sorted(answer, key=position):
        slot, mark, _ = key.partition("#")
        if mark and "@LOD" not in key:
            out.setdefault(slot, []).append(answer[key])
        else:
            out[key] = answer[key]
    return out


def position(key):
    slot, _, number = key.partition("#")
    return slot, int(number.partition("@")[0] or 0), key
