"""Ops that only the lowering runs (fluidjax/lower/control.py): their slots and attributes."""

from __future__ import annotations

from .registry import Attr, control_op
from .traits import Runs


def _attrs(**given: tuple[str, object]) -> dict[str, Attr]:
    return {name: Attr(name, *value) for name, value in given.items()}


control_op("feed", ins="X", outs="Out", attrs={"col": Attr("col", "INT")}, doc="Out = the fed value number col.", runs=Runs.HOST)
control_op("delete_var", ins="X*", doc="The values of X are no longer needed.", runs=Runs.HOST)
control_op("fetch", ins="X", outs="Out", attrs={"col": Attr("col", "INT")}, doc="Out[col] = X, returned to the caller.", runs=Runs.HOST)
control_op(
    "conditional_block",
    ins="Cond* Input*",
    outs="Out* Scope",
    attrs={
        "sub_block": Attr("sub_block", "BLOCK"),
        "is_scalar_condition": Attr("is_scalar_condition", "BOOLEAN", False),
        "skip_eager_deletion_vars": Attr("skip_eager_deletion_vars", "STRINGS", ()),
    },
    doc="Out = the values that sub_block gives its outer variables if Cond holds, else their old ones.",
    runs=Runs.STEP,
)
control_op(
    "print",
    ins="In",
    outs="Out",
    attrs=_attrs(
        first_n=("INT", -1), message=("STRING", ""), summarize=("INT", 20), print_tensor_name=("BOOLEAN", True),
        print_tensor_type=("BOOLEAN", True), print_tensor_shape=("BOOLEAN", True), print_tensor_lod=("BOOLEAN", True),
        print_phase=("STRING", "BOTH"), is_forward=("BOOLEAN", True),
    ),
    doc="Out = In, printed while the step runs.",
    runs=Runs.EFFECT,
)  # fmt: skip
