"""Record the declarations of some op types of Paddle 2.x, and what it added to those of 1.8.5; run with Paddle 3.3.1.

Writes tests/data/op_protos_2x.json and tests/data/op_additions_3.3.1.json: {op type: {"in": slots, "attrs": {name: type}}}.
"""

import json
import os

from paddle.base.proto import framework_pb2
from paddle.framework import core

OPS = (
    "bicubic_interp_v2 bilinear_interp_v2 flatten_contiguous_range linear_interp_v2 matmul_v2 nearest_interp_v2 trilinear_interp_v2"
).split()
SHARED = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", "op_proto_version"}
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def marks(v):
    return v.name + "*" * v.duplicable + "?" * v.dispensable + "~" * v.intermediate


def declared(proto):
    types = {a.name: framework_pb2.AttrType.Name(a.type) for a in proto.attrs if a.name not in SHARED}
    return {
        "in": [marks(v) for v in proto.inputs],
        "out": [marks(v) for v in proto.outputs],
        "attrs": {n: [t] for n, t in sorted(types.items())},
    }


def added(now, before):
    slots = {s.rstrip("*?~") for s in before["in"]}
    found = {
        "in": [s for s in now["in"] if s.rstrip("*?~") not in slots],
        "attrs": {n: t for n, (t,) in now["attrs"].items() if n not in before["attrs"]},
    }
    return {k: v for k, v in found.items() if v}


def write(name, table):
    with open(os.path.join(DATA, name), "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items())) + "\n}\n")


def main():
    protos = [framework_pb2.OpProto.FromString(data) for data in core.get_all_op_protos()]
    now = {p.type: declared(p) for p in protos}
    with open(os.path.join(DATA, "op_protos_1.8.5.json")) as f:
        before = json.load(f)
    write("op_protos_2x.json", {k: now[k] for k in OPS})
    both = {k: added(now[k], before[k]) for k in now.keys() & before.keys()}
    write("op_additions_3.3.1.json", {k: v for k, v in both.items() if v})


if __name__ == "__main__":
    main()
