"""The ops ``jax.*`` as files of programs know them: their slots, attributes and defaults, which no
later version may change.

    python -m tests.tracing.test_declared     adds what is new to tests/data/jax_ops.txt
"""

from __future__ import annotations

from pathlib import Path

from fluidjax.ops.attributes import REQUIRED
from fluidjax.ops.catalog import REGISTRY

PATH = Path(__file__).parents[1] / "data" / "jax_ops.txt"


def declared() -> list[str]:
    """A line for each type: ``jax.top_k(X; k: INT, axis: INT = -1) -> Out Indices``."""
    found = []
    for kind, op in sorted(REGISTRY.lax().items()):
        ins, outs = (
            " ".join(slot.name + "*" * slot.many for slot in each)
            for each in (op.inputs, op.outputs)
        )
        attrs = (
            f"{a.name}: {a.type}" + ("" if a.default is REQUIRED else f" = {a.default!r}")
            for a in op.attrs.values()
        )
        found.append(f"{kind}({ins}; {', '.join(attrs)}) -> {outs}")
    return found


def test_what_files_hold_of_an_op_stays() -> None:
    """A program that was written yesterday means today what it meant: no op, slot or default goes
    or changes.
    """
    lost = set(PATH.read_text().splitlines()) - set(declared())
    assert not lost


if __name__ == "__main__":
    PATH.write_text("\n".join(declared()) + "\n")
