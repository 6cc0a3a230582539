"""Record the fields and enums of Paddle 1.8.5's framework_pb2, and a program with what its messages
say: tests/data/proto_1.8.5.json.gz.

    python3.8 tests/tools/record_proto.py
"""

import gzip
import json
import os


def described(d):
    """a message as its fields (name, number, type, label), what is nested, its enums"""
    fields = sorted(
        [
            f.name,
            f.number,
            f.type,
            1 + f.is_required + 2 * f.is_repeated if hasattr(f, "is_repeated") else f.label,
        ]
        for f in d.fields
    )
    return {
        "fields": fields,
        "nested": {n.name: described(n) for n in d.nested_types},
        "enums": {e.name: enum(e) for e in d.enum_types},
    }


def enum(e):
    return {v.name: v.number for v in e.values}


def module(m):
    return {
        "messages": {n: described(d) for n, d in m.DESCRIPTOR.message_types_by_name.items()},
        "enums": {n: enum(e) for n, e in m.DESCRIPTOR.enum_types_by_name.items()},
    }


if __name__ == "__main__":
    import paddle.fluid as fluid
    from paddle.fluid.proto import framework_pb2 as m

    x = fluid.data("x", [None, 3], lod_level=1)
    fluid.layers.array_write(fluid.layers.fc(x, 2), fluid.layers.fill_constant([1], "int64", 0))
    data = fluid.default_main_program().desc.serialize_to_string()
    text = str(m.ProgramDesc.FromString(data))
    path = os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "data", "proto_1.8.5.json.gz"
    )
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps(dict(module(m), program=data.hex(), text=text), sort_keys=True).encode())
