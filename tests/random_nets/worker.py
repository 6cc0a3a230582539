"""Runs in the real Paddle 1.8.5 (Python 3.8): draws nets and writes what they are, what programs
they make and what they compute.

    python3.8 -m tests.random_nets.worker FOLDER FIRST COUNT [SAMPLER]

For each seed FOLDER/SEED.json (the net, its programs, the lines that Paddle refused) and
FOLDER/SEED.npz: the values, those of a second run in memory that was filled with other bytes (what
differs is not deterministic), and those of a run with all floats moved by 1e-6 of themselves (how
far rounding carries). FOLDER/now says what is being tried, so that who restarts this process knows
what ended it.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import warnings

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["FLAGS_use_system_allocator"] = "1"

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
from paddle.fluid import core  # noqa: E402

from . import kinds, nets, training  # noqa: E402
from .draw import Draw, last_line  # noqa: E402

NUDGE = 1e-6
M_PERTURB = -6
libc = ctypes.CDLL("libc.so.6")
DTYPES = {int(getattr(core.VarDesc.VarType, k)): n for k, n in (
    ("BOOL", "bool"), ("INT32", "int32"), ("INT64", "int64"), ("UINT8", "uint8"), ("INT8", "int8"), ("INT16", "int16"),
    ("FP16", "float16"), ("FP32", "float32"), ("FP64", "float64"))}  # fmt: skip


RUNS = [
    [["train", 0]],
    [["train", 0], ["train", 1]],
    [["train", 0], ["test", 1], ["train", 1]],
    [["test", 0], ["train", 0], ["test", 0]],
    [["train", 0], ["train", 0], ["train", 1], ["test", 2]],
]


def clean(v):
    if isinstance(v, (list, tuple)):
        return [clean(x) for x in v]
    return v if isinstance(v, (bool, int, float, str)) or v is None else int(v)


def defaults(kind):
    for name in (kind, kind[:-5] if kind.endswith("_grad") else kind):
        found = core.get_op_attrs_default_value(name.encode())
        if found:
            return {n: clean(v) for n, v in found.items()}
    return {}


def attributes(op):
    out, known = {}, defaults(op.type)
    for n in sorted(op.attr_names):
        if n in nets.HINTS or (n == "op_namescope" and op.attr(n) == "/"):
            continue
        is_block = op.desc.attr_type(n) == core.AttrType.BLOCK
        value = {"block": op._block_attr_id(n)} if is_block else clean(op.desc.attr(n))
        if not (n in known and known[n] == value):
            out[n] = value
    return out


def variable(v):
    kind = str(v.type).split(".")[-1]
    if v.type not in (core.VarDesc.VarType.LOD_TENSOR, core.VarDesc.VarType.SELECTED_ROWS):
        return [kind, None, None, v.persistable, v.stop_gradient, None]
    return [
        kind,
        DTYPES.get(int(v.dtype)),
        list(v.shape),
        v.persistable,
        v.stop_gradient,
        v.lod_level,
    ]


def dump(program):
    return [
        {
            "parent": b.parent_idx,
            "ops": [
                [
                    op.type,
                    {k: op.input(k) for k in op.input_names if op.input(k)},
                    {k: op.output(k) for k in op.output_names if op.output(k)},
                    attributes(op),
                ]
                for op in b.ops
            ],
            "vars": {n: variable(v) for n, v in b.vars.items()},
        }
        for b in program.blocks
    ]


def one(seed, note, sampler=None):
    """The net of a seed; what it computes."""
    d = Draw(fluid, seed, note)
    steps = d.number(2, 6)
    if sampler:
        for _ in range(8):
            if d.step(sampler):
                break
        steps -= 1
    for _ in range(3 * steps):
        if len(d.used) >= steps:
            break
        d.step()
    net = d.net
    if not d.used:
        return None, None, d.refused
    net["runs"] = d.of(RUNS)
    net["samplers"] = d.used
    forward = list(net["fetch"])
    for _ in range(3):  # where 1.8.5 cannot train, perhaps it can otherwise
        net["train"], fetch = training.train(d)
        net["fetch"] = forward + fetch
        note(json.dumps([seed, net]))
        try:
            built = nets.Built(fluid, net)
            libc.mallopt(M_PERTURB, 0x55)
            values = nets.run(built)
            libc.mallopt(M_PERTURB, 0xAA)
            again = nets.run(built)
            nudged = nets.run(built, NUDGE)
            break
        except Exception as exc:
            d.refused.append(dict(net, error=[type(exc).__name__, last_line(exc)], sampler="train"))
    else:
        return None, None, d.refused
    arrays = {}
    for prefix, found in (("v", values), ("a", again), ("n", nudged)):
        for key, (array, lod) in found.items():
            arrays[prefix + ":" + key] = array
            if prefix == "v":
                arrays["l:" + key] = np.array(json.dumps(lod))
    dumps = {"main": dump(built.main), "startup": dump(built.startup)}
    if built.test is not None:
        dumps["test"] = dump(built.test)
    return dict(net, programs=dumps), arrays, d.refused


def main(folder, first, count, sampler=None):
    warnings.simplefilter("ignore")
    if not os.environ.get("NETS_STDERR"):
        sys.stderr = open(os.devnull, "w")

    def note(text):
        with open(os.path.join(folder, "now"), "w") as f:
            f.write(text)

    for seed in range(int(first), int(first) + int(count)):
        net, arrays, refused = one(seed, note, sampler)
        if net is not None:
            np.savez(os.path.join(folder, "%d.npz" % seed), **arrays)
        with open(os.path.join(folder, "%d.json.tmp" % seed), "w") as f:
            json.dump({"net": net, "refused": refused}, f)
        os.rename(
            os.path.join(folder, "%d.json.tmp" % seed), os.path.join(folder, "%d.json" % seed)
        )


_ = kinds
if __name__ == "__main__":
    main(*sys.argv[1:])
