"""Run by test_proto.py under a Python that has paddle 1.8.5: loads program files and writes what
Paddle makes of them.

usage: python paddle_check.py FILE...; beside each FILE comes FILE.again, what Paddle serialises,
and on stdout one JSON line each: the op types of every block, each op's attribute types and values,
and the shapes of the variables.
"""

import json
import sys

import paddle.fluid as fluid

for path in sys.argv[1:]:
    with open(path, "rb") as file:
        program = fluid.Program.parse_from_string(file.read())
    with open(path + ".again", "wb") as file:
        file.write(program.desc.serialize_to_string())
    described = []
    for block in program.blocks:
        ops = []
        for op in block.ops:
            blocks = {"sub_block"}
            attrs = {
                n: [int(op.desc.attr_type(n)), None if n in blocks else op.attr(n)]
                for n in op.attr_names
            }
            ops.append(
                [
                    op.type,
                    {s: op.input(s) for s in op.input_names},
                    {s: op.output(s) for s in op.output_names},
                    attrs,
                ]
            )
        tensors = {
            n: list(v.shape)
            for n, v in block.vars.items()
            if v.type == fluid.core.VarDesc.VarType.LOD_TENSOR
        }
        described.append({"ops": ops, "shapes": tensors, "parent": block.parent_idx})
    print(json.dumps(described))
