"""Record the declarations of some op types of Paddle 2.x (tests/data/op_protos_2x.json); run with a Paddle of 3.x."""

import json
import os

from paddle.base.proto import framework_pb2
from paddle.framework import core

OPS = (
    "bicubic_interp_v2 bilinear_interp_v2 flatten_contiguous_range linear_interp_v2 matmul_v2 nearest_interp_v2 trilinear_interp_v2"
).split()
SHARED = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", "op_proto_version"}
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "op_protos_2x.json")


def marks(v):
    return v.name + "*" * v.duplicable + "?" * v.dispensable + "~" * v.intermediate


def main():
    found = {}
    for data in core.get_all_op_protos():
        proto = framework_pb2.OpProto.FromString(data)
        if proto.type in OPS:
            types = {a.name: framework_pb2.AttrType.Name(a.type) for a in proto.attrs if a.name not in SHARED}
            found[proto.type] = {
                "in": [marks(v) for v in proto.inputs],
                "out": [marks(v) for v in proto.outputs],
                "attrs": {n: [t] for n, t in sorted(types.items())},
            }
    with open(OUT, "w") as f:
        json.dump(found, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
