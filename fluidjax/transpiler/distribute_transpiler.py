"""DistributeTranspiler: turns one training program into the programs of a job's trainers and
parameter servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dist.inner_updates import refuse_inner_updates
from ..dist.pserver_plan import PserverPlan
from ..errors import FluidTypeError
from ..graph.program import Program, default_main_program, default_startup_program
from .collective import transpile_collective
from .config import DistributeTranspilerConfig as DistributeTranspilerConfig
from .config import ServerRuntimeConfig as ServerRuntimeConfig
from .config import split_class
from .job import TranspiledJob, transpile_job
from .nccl2 import transpile_nccl2
from .refused import NotTranspiledError, TranspileAssertion
from .request import Request, endpoints_of, rank_of, trainer_count
from .slicing import slice_variable as slice_variable


@dataclass
class Programs:
    """The user's two programs, which a transpile rewrites in place."""

    main: Program
    startup: Program


class DistributeTranspiler:
    """Convert a training program to the programs of a distributed job.

    Parameter-server mode (the default): pservers own the parameters and update them, trainers send
    gradients.

        t = fluid.DistributeTranspiler()
        t.transpile(trainer_id=0, pservers="192.168.0.1:6174,192.168.0.2:6174", trainers=4)
        if role == "PSERVER":
            pserver_program, pserver_startup = t.get_pserver_programs(current_endpoint)
        elif role == "TRAINER":
            trainer_program = t.get_trainer_program()

    You can call the getters in any order, any number of times. `plan` lists the pserver of each
    block of each parameter (dist.pserver_plan.PserverPlan).

    nccl2 mode (`config.mode = "nccl2"`): the startup program joins the trainers, and the main
    program does not change. Collective mode (`config.mode = "collective"`): ops that average
    gradients ("grad_allreduce") or parameters ("local_sgd") over the trainers are inserted into the
    programs.

    config: a DistributeTranspilerConfig. Raises FluidTypeError for another type, TranspileAssertion
    for values that Fluid's transpilers refuse.
    """

    _geo = False

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        if config is None:
            config = DistributeTranspilerConfig()
        if not isinstance(config, DistributeTranspilerConfig):
            raise FluidTypeError(
                f"config is a DistributeTranspilerConfig, not {type(config).__name__}"
            )
        config.check()
        if config.split_method is None:
            config.split_method = config.dispatcher
        self.config = config
        self._programs: Programs | None = None
        self._job: TranspiledJob | None = None

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: int | str = 1,
        sync_mode: bool = True,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
        slice_var_up: bool | None = None,
        split_method: Any = None,
    ) -> None:
        """Rewrite `program` and `startup_program` in place for one trainer, and store the data for
        the getters.

        trainer_id: 0 to trainers - 1. program, startup_program: default the default programs.
        pservers: ``"ip:port,ip:port"``. trainers: their number; in nccl2 and collective mode the
        string of their endpoints. sync_mode: pservers wait for all trainers; False here or in the
        configuration makes the job asynchronous. current_endpoint: this trainer's, in nccl2 and
        collective mode. slice_var_up, split_method: override the configuration (Fluid 0.14 had
        these arguments).

        Raises FluidTypeError and FluidValueError for arguments that do not fit each other
        (endpoints malformed or twice, trainer_id out of range, ...), for a program without
        optimizer and for one that was transpiled before; UnsupportedError for updates that no
        pserver can make. Then the programs do not change.
        """
        programs = Programs(
            _program(program, default_main_program(), "program"),
            _program(startup_program, default_startup_program(), "startup_program"),
        )
        refuse_inner_updates(programs.main.desc, "DistributeTranspiler")
        config = self.config
        geo = self._geo or bool(config.geo_sgd_mode)
        if config.mode == "nccl2" and not geo:
            transpile_nccl2(
                config, programs.main, programs.startup, trainer_id, trainers, current_endpoint
            )
        elif config.mode == "collective" and not geo:
            transpile_collective(
                config, programs.main, programs.startup, trainer_id, trainers, current_endpoint
            )
        else:
            request = self._request(
                trainer_id, pservers, trainers, bool(sync_mode), slice_var_up, split_method, geo
            )
            self._job = transpile_job(request, programs.main, programs.startup)
            if config.print_log:
                print(self._job.summary())
        self._programs = programs

    def _request(
        self, trainer_id: int, pservers: str, trainers: Any, sync_mode: bool, slice_var_up: bool | None, split_method: Any,
        geo: bool,
    ) -> Request:  # fmt: skip
        config = self.config
        endpoints = endpoints_of(pservers, "pservers")
        if config.enable_dc_asgd and sync_mode and config.sync_mode:
            raise TranspileAssertion(
                "enable_dc_asgd corrects gradients that come late; set sync_mode to False with it"
            )
        count = trainer_count(trainers)
        return Request(
            rank_of(trainer_id, count), count, endpoints,
            config.dispatcher if split_method is None else split_class(split_method),
            sync=sync_mode and config.sync_mode and not geo,
            slice_var_up=bool(config.slice_var_up if slice_var_up is None else slice_var_up),
            min_block_size=config.min_block_size,
            runtime_split=config.runtime_split_send_recv and not geo, half_async=bool(config.half_async),
            completely_not_async=bool(config.completely_not_async), dc_asgd=bool(config.enable_dc_asgd) and not geo,
            geo=geo, push_every=config.geo_sgd_need_push_nums if geo else 1,
        )  # fmt: skip

    @property
    def plan(self) -> PserverPlan:
        """The owners of the job's blocks. Raises NotTranspiledError before transpile, and in modes
        without pservers.
        """
        return self._made("plan").plan

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program that was given to transpile, as the trainer's program: without updates. Its
        startup program is rewritten too.

        wait_port: ignored, because processes wait for each other when a program runs.

        Raises NotTranspiledError before transpile.
        """
        programs = self._rewritten("get_trainer_program")
        if self._job is not None:
            self._job.finish(programs.main, programs.startup)
        return programs.main

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program of the pserver `endpoint`: block 0 listens, every other block updates one
        block of a parameter.

        Raises NotTranspiledError before transpile, UnknownEndpointError (which names similar ones)
        for an endpoint that is not a pserver's.
        """
        return self._made("get_pserver_program").pserver(endpoint)[0]

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """Main and startup program of the pserver `endpoint`. Raises as get_pserver_program."""
        return self._made("get_pserver_programs").pserver(endpoint)

    def get_startup_program(
        self,
        endpoint: str,
        pserver_program: Program | None = None,
        startup_program: Program | None = None,
    ) -> Program:
        """The startup program of the pserver `endpoint`: it initialises the blocks that the pserver
        owns.

        pserver_program: ignored; Fluid takes the result of get_pserver_program. startup_program:
        initialise as this program does, instead of the one that was given to transpile.

        Raises NotTranspiledError before transpile, UnknownEndpointError for an endpoint that is not
        a pserver's, FluidTypeError for arguments of other types.
        """
        job = self._made("get_startup_program")
        for what, given in (
            ("pserver_program", pserver_program),
            ("startup_program", startup_program),
        ):
            if given is not None and not isinstance(given, Program):
                raise FluidTypeError(f"{what} is a Program, not {type(given).__name__}")
        if (
            startup_program is not None
            and startup_program is not self._rewritten("get_startup_program").startup
        ):
            job = job.with_startup(startup_program)
        return job.pserver(endpoint)[1]

    def _rewritten(self, what: str) -> Programs:
        if self._programs is None:
            raise NotTranspiledError(f"{what}: call transpile(...) first")
        return self._programs

    def _made(self, what: str) -> TranspiledJob:
        self._rewritten(what)
        if self._job is None:
            raise NotTranspiledError(
                f"{what}: in {self.config.mode} mode there are no pservers; run the program that"
                " was transpiled"
            )
        return self._job


def _program(given: Any, default: Program, what: str) -> Program:
    if given is None:
        return default
    if not isinstance(given, Program):
        raise FluidTypeError(f"{what} is a Program, not {given!r}")
    return given
