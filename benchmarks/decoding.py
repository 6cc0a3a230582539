"""Beam searches beside Paddle 1.8.5's, and how many programs searches of varied inputs compile."""

from __future__ import annotations

import fluidjax as fluid

from . import beside
from .page import Table, shown
from .peers import searching

SEARCHES = 12


def compilations() -> int:
    """How many programs compile for searches of four sentences each."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        found = searching.net(fluid)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for seed in range(SEARCHES):
        exe.run(
            main,
            feed=searching.feed(fluid, 4, seed),
            fetch_list=found,
            scope=scope,
            return_numpy=False,
        )
    return len(exe.compilations(main))


def table() -> list[Table]:
    """Both."""
    title = "Programs compiled for searches of 4 sentences each"
    rows = ([f"{SEARCHES} searches", str(made)] for made in (compilations(),))
    return [beside.searching(), shown("programs of searches", title, ["of", "programs"], rows)]
