"""Every op type that fluidjax has, by family. Importing this package fills the registry."""

from __future__ import annotations

import importlib

OPS_MODULES = (
    "math",
    "matrix",
    "elementwise",
    "activation",
    "reduce",
    "compare",
    "manip",
    "slicing",
    "layout",
    "index",
    "interp",
    "conv",
    "pool",
    "pool_index",
    "norm",
    "norm_rare",
    "norm_sync",
    "loss",
    "distance",
    "embed",
    "sparse",
    "sequence",
    "rnn",
    "crf",
    "random",
    "fill",
    "metric",
    "optim",
    "optax_bridge",
    "collective",
    "sharding",
    "dealing",
    "table",
    "rpc",
    "control",
    "grad",  # last: it ties ops of several families together
)

for _name in OPS_MODULES:
    importlib.import_module(f"{__name__}.{_name}")
