"""feed and fetch: the inputs and outputs of a saved program. Nothing runs these ops."""

from __future__ import annotations

from ..registry import Attr, control_op
from ..traits import Runs

control_op(
    "feed",
    ins="X",
    outs="Out",
    attrs={"col": Attr("col", "INT")},
    doc="Out = the fed value number col.",
    runs=Runs.HOST,
)
control_op(
    "fetch",
    ins="X",
    outs="Out",
    attrs={"col": Attr("col", "INT")},
    doc="Out[col] = X, returned to the caller.",
    runs=Runs.HOST,
)
