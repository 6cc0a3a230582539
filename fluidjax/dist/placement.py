"""Where the parameters of a transpiled trainer program live, read from the program itself."""

from __future__ import annotations

from ..ir.desc import ProgramDesc

Placement = dict[str, tuple[tuple[str, str], ...]]  # parameter -> (endpoint, name of the block there), in order of rows


def placement(main: ProgramDesc, startup: ProgramDesc) -> Placement:
    """Parameters and their blocks: what the startup program receives, and the tables that the main program looks up."""
    ops = startup.blocks[0].ops
    whole = {op.input("X"): op.output("Out")[0] for op in ops if op.type == "concat"}
    found: Placement = {}
    for op in ops:
        if op.type == "recv":
            names = op.output("Out")
            there = tuple(op.attrs.get("recv_varnames") or ()) or names
            name = whole.get(names, names[0])
            found[name] = tuple(zip(op.attrs["epmap"], there, strict=True))
    for op in main.blocks[0].ops:
        if op.type == "distributed_lookup_table":
            found[op.input("W")[0]] = tuple(zip(op.attrs["endpoints"], op.attrs["table_names"], strict=True))
    return found
