"""create_py_reader, create_double_buffer_reader, read: the executor runs them around a step, which
takes its batch as a feed.
"""

from __future__ import annotations

from ..control_interface import ControlOp
from ..registry import Attr, control_op
from ..traits import Runs

_INTS = ("dtypes", "lod_levels", "need_check_feed", "ranks", "shape_concat")
_FLAGS = ("drop_last", "infer_out", "throw_eof_exp")

control_op(
    "create_py_reader", ins="blocking_queue", outs="Out*", runs=Runs.HOST, control=ControlOp(outside=("blocking_queue",)),
    attrs={
        **{n: Attr(n, "INTS") for n in _INTS}, "use_data_config": Attr("use_data_config", "BOOLEAN", True),
        "device_index": Attr("device_index", "INT", 0), "device_count": Attr("device_count", "INT", 1),
    },
    doc="Out = a reader of the batches that a Python generator gives.",
)  # fmt: skip
control_op(
    "create_double_buffer_reader", ins="UnderlyingReader", outs="Out", runs=Runs.HOST, attrs={"place": Attr("place", "STRING", "AUTO")},
    doc="Out = the reader, whose batches are on the device ahead of their use.",
)  # fmt: skip
control_op(
    "read", ins="Reader", outs="Out*", runs=Runs.HOST, attrs={n: Attr(n, "BOOLEAN", True) for n in _FLAGS},
    doc="Out = the next batch of the reader; core.EOFException is raised at the end.",
)  # fmt: skip
