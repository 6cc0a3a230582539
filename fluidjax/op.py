"""fluid.op: the declarations of op types. Its operators outside of programs are not supported: they
can be imported, but a call raises an error.
"""

from __future__ import annotations

from .base.stand_in import fill
from .framework import get_all_op_protos

NAMES = (
    "CondOp DynamicRecurrentOp OpDescCreationMethod OpInfo Operator OperatorFactory RecurrentOp"
    " create_op_creation_method get_all_op_protos is_str"
)

fill(
    __name__,
    {"": NAMES},
    "operators outside of programs are not supported; append ops to a program by fluid.layers",
    there={"get_all_op_protos": get_all_op_protos},
)
