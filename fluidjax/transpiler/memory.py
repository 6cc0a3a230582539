"""memory_optimize and release_memory: Fluid's names for the passes, in place on a Program."""

from __future__ import annotations

from typing import Any

from ..errors import FluidTypeError, FluidValueError, near
from ..graph.fetches import kept_names
from ..graph.program import Program
from ..memory.budget import BudgetReport, Sizing, fit
from ..passes.memory_optimize import MemoryOptimize
from ..passes.release_memory import ReleaseMemory
from .apply import apply_in_place, become_fitted


def memory_optimize(
    input_program: Program,
    skip_opt_set: Any = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
    budget: int | float | str | None = None,
    batch_size: int | None = None,
    fetch_list: Any = None,
    feed_shapes: Any = None,
    lengths: Any = None,
) -> BudgetReport | None:
    """Let variables with disjoint lifetimes share names, in place, and compile the program for
    memory.

        fluid.memory_optimize(fluid.default_main_program(), skip_opt_set={loss.name, accuracy.name})

    Call it after minimize. skip_opt_set: variables or names (a set, list or tuple) that keep their
    values, mainly those to be fetched. A fetch of another variable whose memory is shared runs the
    program from before, with one warning; it raises FetchError if the program was changed since.
    print_log: print a line for every shared name, as Fluid 0.15 did. level: 0 shares among equal
    shapes, 1 among equal dtypes. skip_grads: do not share the gradients that optimizer ops take.

    passes.memory_optimize does the work; its plan is in passes.run("memory_optimize",
    program.desc).certificates.

    budget (not in Fluid): the most bytes, or text such as "800MB" or "2GiB", that a run may need,
    by the compiler's own figure (memory_report's total). Then no names are shared. Instead, the
    backward pass recomputes values of the forward pass, as few as needed, and a report of the
    search is returned (print_log prints it). batch_size, fetch_list, feed_shapes, lengths describe
    the run, as in memory_report.

        print(fluid.memory_optimize(main, budget="200MB", batch_size=64, fetch_list=[loss]))

    Raises FluidTypeError for arguments of other types, FluidValueError for another level or a name
    that the program does not have, for a budget that no tried way keeps (with the smallest figure)
    and for a budget of a program without gradients; then the program does not change.
    """
    skip = _checked(input_program, skip_opt_set)
    if budget is not None:
        report = fit(
            input_program, budget, Sizing(batch_size, feed_shapes, lengths), fetch_list, skip
        )
        become_fitted(input_program, report.chosen.way.desc, report.chosen.scheduler != "default")
        if print_log:
            print(report)
        return report
    if not all(given is None for given in (batch_size, fetch_list, feed_shapes, lengths)):
        raise FluidTypeError(
            "batch_size, fetch_list, feed_shapes and lengths belong to a budget, and there is none"
        )
    result = apply_in_place(
        input_program, MemoryOptimize(level=level, skip=skip, skip_grads=bool(skip_grads))
    )
    if print_log:
        print(*(line for plan in result.certificates for line in plan.log), sep="\n")
    return None


def release_memory(input_program: Program, skip_opt_set: Any = None) -> None:
    """Insert delete_var ops after last uses, in place.

    Only op-by-op execution needs them; a compiled step frees memory by itself and can still fetch
    any variable. Arguments and errors are those of memory_optimize.
    """
    apply_in_place(input_program, ReleaseMemory(skip=_checked(input_program, skip_opt_set)))


def _checked(program: object, skip_opt_set: Any) -> tuple[str, ...]:
    if not isinstance(program, Program):
        raise FluidTypeError(f"input_program is a Program, not {type(program).__name__}")
    if skip_opt_set is None:
        return ()
    if not isinstance(skip_opt_set, set | frozenset | list | tuple):
        raise FluidTypeError(
            "skip_opt_set is a set or list of variables or names, not"
            f" {type(skip_opt_set).__name__}"
        )
    known = {n for block in program.blocks for n in block.vars}
    names = kept_names(program, skip_opt_set, "skip_opt_set")
    for name in names:
        if name not in known:
            raise FluidValueError(
                f"skip_opt_set names {name!r}, which the program does not have{near(name, known)}"
            )
    return tuple(sorted(names))
