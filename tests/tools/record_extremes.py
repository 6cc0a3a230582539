"""Record the answers of the real Paddle to the audit's cases (runs on Paddle 1.8.5, CPU; families
later_* on 3.3.1).

    python3.8 tests/tools/record_extremes.py [--show] [FAMILY...]

Writes tests/data/extremes/FAMILY.npz, a family always as a whole. Cases that 1.8.5 refuses, or dies
of, are printed and kept as refused. --show prints the values instead and writes nothing.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

import numpy as np  # noqa: E402

from tests.ops.extremes import FAMILIES, cases_of  # noqa: E402
from tests.ops.extremes.recorded import Answer, path, write  # noqa: E402
from tests.tools.record_ops import LATER, VERSION, Net, fluid, forked  # noqa: E402

SCALAR = 3  # elements: too few for a vector


def answer(case):
    net = Net(case, {})
    values = net.run([(key, v) for key, _, v in net.compared()])
    wanted = [(key, v) for key, _, v in net.compared()]
    if case.grad:
        net = Net(case, {k: str(v.dtype) for k, v in values.items()})
        wanted = [(key, v) for key, _, v in net.compared()] + net.add_gradients(values)
        values = net.run(wanted)
    scalar = scalars(net, wanted, values) if case.pointwise else {}
    return values, scalar


def scalars(net, wanted, values):
    """{key: (positions, values)} of the elements that differ if few are computed at a time"""
    exe, size = fluid.Executor(fluid.CPUPlace()), len(next(iter(net.feed.values())))
    found = {key: [] for key, _ in wanted}
    with fluid.scope_guard(fluid.Scope()):
        for start in range(0, size, SCALAR):
            feed = {k: v[start : start + SCALAR] for k, v in net.feed.items()}
            for (key, _), value in zip(
                wanted, exe.run(net.main, feed=feed, fetch_list=[v for _, v in wanted])
            ):
                found[key].append(value)
    table = {}
    for key, parts in found.items():
        whole, parts = values[key].reshape(-1), np.concatenate(parts).reshape(-1)
        at = np.flatnonzero(bits(whole) != bits(parts))
        at = at[~(isnan(whole[at]) & isnan(parts[at]))]
        if at.size:
            table[key] = (at, parts[at])
    return table


def isnan(array):
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)


def bits(array):
    return array.view("int%d" % (8 * array.dtype.itemsize)) if array.dtype.kind == "f" else array


def record(family, show):
    answers = {}
    for case in cases_of(family):
        assert case.name not in answers, "two cases named " + case.name
        result, error = forked(case, answer)
        if error:
            print("%s: %s\n    %s" % (family, case.name, error), flush=True)
            answers[case.name] = Answer({}, {}, re.sub(r" at \(/paddle.*", "", error)[:160])
        else:
            answers[case.name] = Answer(*result)
            if show:
                print(case.name, result)
    if not show:
        write(family, cases_of(family), answers)
        print(
            "%s: %d cases, %d bytes" % (family, len(answers), os.path.getsize(path(family))),
            flush=True,
        )


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--show"]
    for name in arguments or [f for f in FAMILIES if f.startswith("later_") == (VERSION == LATER)]:
        record(name, "--show" in sys.argv)
