"""Names that fluid.contrib had in Paddle 1.8.5 and fluidjax lacks, with what to use instead."""

from __future__ import annotations

_GROUPS: tuple[tuple[str, str], ...] = (
    ("is not supported; apply the passes of fluid.contrib.slim.quantization and train by Executor.run", "Compressor"),
    (
        "is a tool for tables of parameter servers; fluid.io.load_persistables loads tables too",
        "convert_dist_to_sparse_program load_persistables_for_increment load_persistables_for_inference get_inference_model",
    ),
    ("is not supported; use fluidjax.reader", "distributed_batch_reader"),
)  # fmt: skip
HINTS = {name: hint for hint, names in _GROUPS for name in names.split()}
