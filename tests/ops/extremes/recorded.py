"""What Paddle 1.8.5 answered to the cases of a family: tests/data/extremes/FAMILY.npz
(tests/tools/record_extremes.py).

The file is compact: all arrays of a dtype lie one after the other in one, and a JSON index says
where. Of the answers of scalar code (Extreme.pointwise) only the elements are there in which they
differ.
"""

import functools
import json
import os

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "extremes")


class Answer(object):
    """Either `refused` says why 1.8.5 would not run it, or `values` are {key: array}: "Out",
    "Out#1", "X@GRAD".

    scalar: {key: (positions, values)} where scalar code answers otherwise.
    """

    def __init__(self, values, scalar, refused=None):
        self.values, self.scalar, self.refused = values, scalar, refused


def path(family):
    return os.path.join(FOLDER, family + ".npz")


def write(family, cases, answers):
    """answers: {case name: Answer}"""
    flat, index = {}, {}

    def put(array):
        parts = flat.setdefault(str(array.dtype), [])
        start = sum(p.size for p in parts)
        parts.append(np.ascontiguousarray(array).reshape(-1))
        return [str(array.dtype), start, list(array.shape)]

    for case in cases:
        answer = answers[case.name]
        entry = index[case.name] = {"digest": case.digest()}
        if answer.refused:
            entry["refused"] = answer.refused
            continue
        entry["values"] = {k: put(v) for k, v in sorted(answer.values.items())}
        entry["scalar"] = {
            k: [put(at.astype("int32")), put(v)] for k, (at, v) in sorted(answer.scalar.items())
        }
    os.makedirs(FOLDER, exist_ok=True)
    text = json.dumps(index, sort_keys=True).encode()
    arrays = {k: np.concatenate(v) for k, v in sorted(flat.items())}
    np.savez_compressed(path(family), index=np.frombuffer(text, "uint8"), **arrays)


@functools.lru_cache(maxsize=None)
def _file(family):
    with np.load(path(family)) as data:
        arrays = {k: data[k] for k in data.files}
    return json.loads(arrays.pop("index").tobytes().decode()), arrays


def recorded(family, case):
    """The answer to a case. One that has changed since it was recorded is refused."""
    index, arrays = _file(family)
    entry = index.get(case.name)
    if entry is None or entry["digest"] != case.digest():
        raise ValueError(
            "%s: %r is not recorded as it is: run tests/tools/record_extremes.py %s"
            % (family, case.name, family)
        )
    if "refused" in entry:
        return Answer({}, {}, entry["refused"])

    def get(place):
        dtype, start, shape = place
        return arrays[dtype][start : start + int(np.prod(shape))].reshape(shape)

    return Answer(
        {k: get(p) for k, p in entry["values"].items()},
        {k: (get(at), get(v)) for k, (at, v) in entry["scalar"].items()},
    )


def names(family):
    return set(_file(family)[0])
