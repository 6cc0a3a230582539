"""``python -m tests.checkpoint.killed FOLDER``: save checkpoints of known values without end, until
killed.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import fluidjax as fluid

NAMES = [f"v{i}" for i in range(12)]


def program() -> Any:
    made = fluid.Program()
    for name in NAMES:
        made.global_block().create_var(
            name=name, shape=[300, 200], dtype="float32", persistable=True
        )
    return made


def main() -> None:
    exe, made, scope = fluid.Executor(fluid.CPUPlace()), program(), fluid.Scope()
    with fluid.io.Checkpoint(sys.argv[1], keep=2) as folder:
        step = -1 if folder.latest() is None else folder.latest()
        print("ready", flush=True)
        while True:
            step += 1
            for name in NAMES:
                scope.var(name).value = np.full((300, 200), step, "float32")
            folder.save(exe, made, step, scope=scope)
            print("begun", step, flush=True)


if __name__ == "__main__":
    main()
