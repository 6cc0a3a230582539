"""The executor's methods for datasets, in a module of their own so that datasets are imported only
when they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RunsDatasets:
    """The part of Executor that runs a program over a dataset of files."""

    def train_from_dataset(
        self, program: Any = None, dataset: Any = None, scope: Any = None, thread: int = 0, debug: bool = False,
        fetch_list: Sequence[Any] | None = None, fetch_info: Sequence[str] | None = None, print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:  # fmt: skip
        """Run a program for every batch of a pass over `dataset`, from
        ``fluid.DatasetFactory().create_dataset``.

        program: default the main program. fetch_list, fetch_info: variables, and a label for each,
        that are printed every print_period batches. fetch_handler: a FetchHandler, which gets
        values at intervals of seconds. thread: accepted as in Fluid; steps run one after another,
        so that a run can be repeated. debug: print to stderr how long the steps waited for data.
        Raises the errors of `run`, and FluidTypeError, FluidValueError for arguments that do not
        fit and for errors in the files (file, line, what was expected), after the steps of the
        batches before.
        """
        from .running import run_over

        def step(feed: Any, fetches: Any) -> Any:
            return self.run(program, feed, fetches, scope=scope, return_numpy=False)  # type: ignore[attr-defined]

        run_over(step, dataset, fetch_list, fetch_info, print_period, fetch_handler, debug, thread)

    def infer_from_dataset(
        self, program: Any = None, dataset: Any = None, scope: Any = None, thread: int = 0, debug: bool = False,
        fetch_list: Sequence[Any] | None = None, fetch_info: Sequence[str] | None = None, print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:  # fmt: skip
        """As train_from_dataset. The program is not changed; if it has an optimizer, the optimizer
        runs, as in 1.8.5.
        """
        self.train_from_dataset(
            program,
            dataset,
            scope,
            thread,
            debug,
            fetch_list,
            fetch_info,
            print_period,
            fetch_handler,
        )


__all__ = ["RunsDatasets"]
