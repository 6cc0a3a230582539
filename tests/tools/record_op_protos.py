"""Record the slots, attributes and defaults of every op of the real Paddle 1.8.5 (runs on Paddle
1.8.5).

    python3.8 tests/tools/record_op_protos.py [OUTPUT.json]

One op a line: {"in": ["X", "Bias?", "Xs*"], "out": ["Out", "XShape~"], "attrs": {name: [TYPE,
default]}}; "*" marks a slot that is repeatable, "?" an optional one, "~" an intermediate one. An
attribute without a default is required.
"""

import json
import os
import re
import sys

import paddle.fluid as fluid
from paddle.fluid import core
from paddle.fluid.proto import framework_pb2

TARGET = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "data", "op_protos_1.8.5.json"
)
BOOKKEEPING = {"op_callstack", "op_device", "op_namescope", "op_role", "op_role_var"}
DUMMY = {
    "INT": 1,
    "FLOAT": 1.0,
    "STRING": "s",
    "BOOLEAN": True,
    "LONG": 1,
    "INTS": [1],
    "FLOATS": [1.0],
    "STRINGS": ["s"],
    "BOOLEANS": [True],
    "LONGS": [1],
}
# values that pass the checks of single attributes
VALID = {
    "pooling_type": "max",
    "unpooling_type": "max",
    "pooltype": "max",
    "variances": [0.1] * 4,
    "win_size": 2,
    "functor_list": ["relu", "elementwise_add"],
    "dtype": 5,
}


def type_name(attr):
    return framework_pb2.AttrType.Name(attr.type)


def slot(var, output=False):
    marks = "*" * var.duplicable + "?" * var.dispensable + "~" * (output and var.intermediate)
    return var.name + marks


def defaults(kind, types):
    """{attribute: default} of those that have one: Paddle tells the required ones one by one"""
    required = {}
    while True:
        program = fluid.Program()
        op = program.desc.block(0).append_op()
        op.set_type(kind)
        for name in required:
            if types[name] in DUMMY:
                op._set_attr(name, VALID.get(name, DUMMY[types[name]]))
            elif types[name] == "BLOCK":
                op.set_block_attr(name, program.desc.block(0))
            else:
                op.set_blocks_attr(name, [program.desc.block(0)])
        try:
            op.check_attrs()
        except Exception as error:
            missing = re.search(r"Attribute '(.*?)' is required", str(error))
            if not missing or missing.group(1) in required:
                raise
            required[missing.group(1)] = True
            continue
        return {name: op.attr(name) for name in op.attr_names() if name not in required}


def facts(proto):
    types = {a.name: type_name(a) for a in proto.attrs}
    known = defaults(proto.type, types)
    return {
        "in": [slot(v) for v in proto.inputs],
        "out": [slot(v, True) for v in proto.outputs],
        "attrs": {
            n: [t] + ([known[n]] if n in known else [])
            for n, t in sorted(types.items())
            if n not in BOOKKEEPING
        },
    }


def main(target=TARGET):
    lines = []
    for text in core.get_all_op_protos():
        proto = framework_pb2.OpProto.FromString(text)
        try:
            lines.append(
                "%s: %s" % (json.dumps(proto.type), json.dumps(facts(proto), separators=(",", ":")))
            )
        except Exception as error:
            print("%s: %s" % (proto.type, str(error).strip().splitlines()[-1]), flush=True)
    with open(target, "w") as f:
        f.write("{\n" + ",\n".join(sorted(lines)) + "\n}\n")
    print("%d ops" % len(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
