"""Record which outputs take the LoD of which input in the real Paddle 1.8.5, over all op samples.

    python3.8 tests/tools/record_lod_sharing.py

Writes tests/data/lod_sharing_1.8.5.json: {"OP DIGEST": {input slot: [output slots]}}, DIGEST being
the sample's: with LoD lengths [1, rows - 1] on this input alone, these of the compared outputs
carry the same LoD; "SLOT!" carries another one. Input slots that cannot be ragged (one row, or
refused with a LoD) are left out.
"""

import copy
import json
import os

import record_ops
from record_ops import Net, forked, np
from tests.ops.samples import FAMILIES, samples_of

FILE = os.path.join(record_ops.ROOT, "tests", "data", "lod_sharing_1.8.5.json")


def shared(sample, lengths):
    """output slots that carry a LoD after one run of the sample"""
    net = Net(sample, {})
    exe = record_ops.fluid.Executor(record_ops.fluid.CPUPlace())
    with record_ops.fluid.scope_guard(record_ops.fluid.Scope()):
        got = exe.run(
            net.main,
            feed=net.feed,
            fetch_list=[v for _, _, v in net.compared()],
            return_numpy=False,
        )
    found = []
    for (key, _, _), value in zip(net.compared(), got):
        lod = value.recursive_sequence_lengths()
        if lod:
            found.append(key if lod == [lengths] else key + "!")
    return found


def lengths_of(sample, slot):
    value = sample.inputs[slot]
    first = value[0] if isinstance(value, (list, tuple)) else value
    rows = np.shape(first)[0] if np.ndim(first) else 0
    return [1, rows - 1] if rows > 1 else None


def record(sample):
    table = {}
    for slot in sample.inputs:
        lengths = lengths_of(sample, slot)
        if lengths is None or sample.lod:
            continue
        ragged = copy.copy(sample)
        many = isinstance(sample.inputs[slot], (list, tuple))
        ragged.lod = {
            slot: [[lengths]] + [None] * (len(sample.inputs[slot]) - 1) if many else [lengths]
        }
        table[slot], error = forked(ragged, lambda s, lengths=lengths: shared(s, lengths))
        if error:
            del table[slot]
    return table


def main():
    out = {}
    for family in FAMILIES:
        for sample in samples_of(family):
            if sample.paddle is True:
                table = record(sample)
                if table:
                    out["%s %d" % (sample.op, sample.digest())] = table
        print(family, len(out), flush=True)
    with open(FILE, "w") as f:
        rows = ["%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in out.items()]
        f.write("{\n%s\n}\n" % ",\n".join(rows))


if __name__ == "__main__":
    main()
