"""Names that fluid.layers had in Paddle 1.8.5 and fluidjax lacks, with what to use instead."""

from __future__ import annotations

_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "reads data inside the program, which is not there; feed it, or use fluid.io.DataLoader",
        "create_py_reader_by_data double_buffer load py_reader read_file",
    ),
)
HINTS = {name: hint for hint, names in _GROUPS for name in names.split()}
