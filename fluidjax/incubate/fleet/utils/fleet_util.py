"""FleetUtil: output of the first worker, the AUC over all workers, programs in files."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ....base.absent import reporter
from ....devices.place import CPUPlace
from ....errors import FluidValueError, UnsupportedError
from ....graph.program import Program
from ....state.scope import Scope, global_scope
from ..base.over_workers import over_workers
from ..parameter_server.distribute_transpiler import fleet
from . import utils

_logger = logging.getLogger(__name__)
_PSLIB = (
    "load_fleet_model_one_table load_fleet_model save_fleet_model write_model_donefile"
    " write_xbox_donefile write_cache_donefile load_model save_model save_batch_model"
    " save_delta_model save_xbox_base_model save_cache_model save_cache_base_model"
    " pull_all_dense_params save_paddle_inference_model save_paddle_params get_last_save_xbox_base"
    " get_last_save_xbox get_last_save_model"
).split()


class FleetUtil:
    """mode: "transpiler", the fleet of parameter_server.distribute_transpiler; "pslib" is refused,
    and so are methods for its tables.

    Raises UnsupportedError, FluidValueError for another mode.
    """

    def __init__(self, mode: str = "pslib") -> None:
        if mode == "pslib":
            raise UnsupportedError(
                "FleetUtil: pslib's servers are not supported; use FleetUtil('transpiler')"
            )
        if mode != "transpiler":
            raise FluidValueError(f"FleetUtil has the modes 'pslib' and 'transpiler', not {mode!r}")

    def __getattr__(self, name: str) -> NoReturn:
        if name in _PSLIB:
            raise UnsupportedError(
                f"FleetUtil.{name} is for the tables of pslib, which is not supported; use"
                " fleet.save_persistables"
            )
        raise AttributeError(f"FleetUtil has no {name!r}")

    def rank0_print(self, s: Any) -> None:
        """Print on the first worker."""
        if fleet.worker_index() == 0:
            print(s, flush=True)

    def rank0_info(self, s: Any) -> None:
        """Log on the first worker, as info."""
        if fleet.worker_index() == 0:
            _logger.info(s)

    def rank0_error(self, s: Any) -> None:
        """Log on the first worker, as an error."""
        if fleet.worker_index() == 0:
            _logger.error(s)

    def set_zero(
        self,
        var_name: str,
        scope: Scope | None = None,
        place: Any = None,
        param_type: str = "int64",
    ) -> None:
        """Set a variable's value to zeros of its shape, of dtype param_type. Raises FluidValueError
        if it has no value.
        """
        found = (scope or global_scope()).find_var(var_name)
        if found is None or found.value is None:
            raise FluidValueError(
                f"FleetUtil.set_zero: variable {var_name!r} has no value in the scope"
            )
        found.get_tensor().set(
            np.zeros(np.asarray(found.value).shape, param_type), place or CPUPlace()
        )

    def get_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
    ) -> float | None:
        """The AUC of all workers' predictions together, from the buckets of layers.auc; every
        worker must call it.

        None, with a message of the first worker, if a scope lacks the buckets; 0.5 if there are no
        positive or no negative samples.
        """
        held = [(scope or global_scope()).find_var(name) for name in (stat_pos, stat_neg)]
        if any(var is None for var in held):
            self.rank0_print("not found auc bucket")
            return None
        # from the highest prediction down, in halves of at most 24 bits, which every device adds
        # exactly
        pos, neg = (
            self._summed(np.asarray(var.value)).reshape(-1)[::-1] for var in held if var is not None
        )
        above, total = np.cumsum(pos) - pos, float(pos.sum() * neg.sum())
        return float((neg * (above + pos / 2)).sum() / total) if total else 0.5

    def _summed(self, counts: np.ndarray) -> np.ndarray:
        halves, workers = np.divmod(counts.astype("int64"), 1 << 24), fleet.worker_num()
        parts = [over_workers(part.astype("int32"), "c_allreduce_sum", workers) for part in halves]
        return parts[0].astype("float64") * (1 << 24) + parts[1]

    def print_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Print get_global_auc on the first worker."""
        auc = self.get_global_auc(scope, stat_pos, stat_neg)
        self.rank0_print(f"{print_prefix} global auc = {auc}")

    def program_type_trans(self, prog_dir: str, prog_fn: str, is_text: bool) -> str:
        """utils.program_type_trans."""
        return utils.program_type_trans(prog_dir, prog_fn, is_text)

    def draw_from_program_file(
        self, model_filename: str, is_text: bool, output_dir: str, output_filename: str
    ) -> None:
        """Draw the first block of a program in a file, as utils.graphviz does."""
        self.draw_from_program(
            utils.load_program(model_filename, is_text), output_dir, output_filename
        )

    def draw_from_program(self, program: Program, output_dir: str, output_name: str) -> None:
        """Draw the first block of a program, as utils.graphviz does."""
        utils.graphviz(program.global_block(), output_dir, output_name)

    def check_two_programs(self, config: Any) -> bool:
        """utils.check_pruned_program_vars of two files; config: train_prog_path,
        is_text_train_program, pruned_prog_path, is_text_pruned_program, draw, draw_out_name (the
        pruned program is drawn beside its file).
        """
        train = utils.load_program(config.train_prog_path, config.is_text_train_program)
        pruned = utils.load_program(config.pruned_prog_path, config.is_text_pruned_program)
        if config.draw:
            self.draw_from_program(
                pruned, os.path.dirname(config.pruned_prog_path), config.draw_out_name
            )
        return utils.check_pruned_program_vars(train, pruned)

    def check_vars_and_dump(self, config: Any) -> list[Any]:
        """utils.check_saved_vars_try_dump; config: dump_model_dir, dump_program_filename,
        is_text_dump_program, feed_config, fetch_config, batch_size, save_params_filename.
        """
        return utils.check_saved_vars_try_dump(
            config.dump_model_dir, config.dump_program_filename, config.is_text_dump_program, config.feed_config, config.fetch_config,
            config.batch_size, config.save_params_filename,
        )  # fmt: skip

    def parse_program_proto(self, prog_path: str, is_text: bool, output_dir: str) -> None:
        """utils.parse_program of a program in a file."""
        utils.parse_program(utils.load_program(prog_path, is_text), output_dir)


__all__ = ["FleetUtil"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.utils.fleet_util", __all__)
