"""Program: Fluid's mutable handle over the frozen descs of ir/desc.py, and the default programs
that layers go to.

A handle only holds a desc and replaces it. Passes, the compiler and the printers work on the frozen
value :attr:`Program.desc`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.loc import warn
from ..base.roles import OpRole
from ..base.within import InForce
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..ir import edit, text
from ..ir.desc import EMPTY, FrozenMap, ProgramDesc, serializers
from ..lower.sizes import SizeNeeds
from ..ops.registry import attr_type
from ..partition.explain import Explanation, explained_cut, explained_sizes
from .block import Block
from .info import ProgramInfo
from .operator import Operator
from .variable import Parameter, Variable, check_flags, names_of

if TYPE_CHECKING:
    from ..look.diff import ProgramDiff
    from ..look.graph import Graph

_numbers = itertools.count()
_seed_of_new = [0]  # the value that global_seed set


def _no_report(*_: Any) -> Any:
    raise UnsupportedError("fluidjax makes reports and profiles; import fluidjax first")


# memory/, which is of a higher level, sets this function
memory_reporter: Callable[..., Any] = _no_report
profile_maker: Callable[..., Any] = _no_report  # profiler.py sets this one


class Program:
    """A static program: blocks of ops over named variables. Print it, rewrite it, run it."""

    def __init__(self) -> None:
        self.serial = next(_numbers)  # programs are numbered as they are made
        self.blocks: list[Block] = [Block(self, 0)]
        self.current_block_idx = 0
        self._seed = _seed_of_new[0]
        self._op_role: int = int(OpRole.Forward)
        self._op_role_var: list[str] = []
        self._uid = 0
        self._version = 0
        self._whole: tuple[int, Program] | None = None
        self.info = ProgramInfo()
        self._desc: ProgramDesc | None = None

    def touch(self) -> None:
        self._version += 1
        self._desc = None

    @property
    def version(self) -> int:
        """A number that changes with every edit of the program."""
        return self._version

    def update_info(self, **changes: Any) -> None:
        """Replace fields of `info`, the ProgramInfo that goes with the program and its copies."""
        self.info = replace(self.info, **changes)

    # Fluid's names for the attributes that nccl2 mode sets on a program; fleet scripts read them.
    @property
    def _trainers_endpoints(self) -> list[str]:
        return list(self.info.trainers_endpoints)

    @property
    def _nccl_comm_num(self) -> int:
        return self.info.nccl_comm_num

    @property
    def _use_hierarchical_allreduce(self) -> bool:
        return self.info.use_hierarchical_allreduce

    @property
    def _hierarchical_allreduce_inter_nranks(self) -> int:
        return self.info.hierarchical_allreduce_inter_nranks

    def _sync_with_cpp(self) -> None:
        """Does nothing: a program has no second form that must follow it."""

    def next_uid(self) -> int:
        self._uid += 1
        return self._uid - 1

    @property
    def desc(self) -> ProgramDesc:
        """The frozen value of the program's current state."""
        if self._desc is None:
            self._desc = ProgramDesc(tuple(b.desc for b in self.blocks), self._seed)
        return self._desc

    def memory_report(
        self,
        batch_size: int | None = None,
        fetch_list: Any = None,
        feed_shapes: Any = None,
        compiled: bool = True,
        lengths: Any = None,
    ) -> Any:
        """The memory that one run of the program needs, found without running it: a
        ``memory.MemoryReport``.

            print(main.memory_report(batch_size=64, fetch_list=[loss]))

        See ``fluidjax.memory.memory_report``.
        """
        return memory_reporter(self, batch_size, fetch_list, feed_shapes, compiled, lengths)

    def profile(
        self,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Any = None,
        steps: int = 3,
        scope: Any = None,
    ) -> Any:
        """Run the program op by op and time each op. Returns a ``runtime.costs.Profile``.

            print(main.profile(feed))
            # op            time   part  runs  line
            # conv2d 0   1.93 ms  41.2%     1  train.py:12

        feed, fetch_list: as for Executor.run. steps: the number of steps to average, after one that
        compiles. scope: the scope of the values, default global_scope(); they are copied, so
        nothing in it changes. Raises FluidValueError for fewer than 1 step, if a profile is running
        already, and if the program computes nothing; also the errors of Executor.run.
        """
        return profile_maker(self, feed, fetch_list, steps, scope)

    def explain(self, feed: Mapping[str, Any] | None = None) -> Explanation:
        """Report the ops with sizes that depend on data: one entry for each op, with the way in
        which it is run and the reason.

            print(main.explain({"n": np.array([3])}))
            fill_constant (train.py:7): specialised; ShapeTensor follows from the feed 'n' = [3], so
            a step is compiled ...

        static: constants and shapes decide the size. specialised: feeds decide it, so a step is
        compiled for each of their values. bounded: the data decide it below a known bound, and
        fetches have their true sizes. cut: something else decides it, or the op cannot be traced (a
        loop whose values change their shapes); Executor.run then runs segments. Nothing is run.
        feed: values to show with the reasons; if all feeds are given the step is traced to find the
        first cut.
        """
        found = explained_sizes(SizeNeeds.of_program(self.desc), feed)
        more = [
            t for t in explained_cut(self.desc, feed or {}) if t[:3] not in [f[:3] for f in found]
        ]
        return replace(found, ops=(*found, *more))

    @classmethod
    def from_desc(cls, desc: ProgramDesc, like: Program | None = None) -> Program:
        """A program that holds `desc`; parameters take their Python-side attributes from the
        parameters of `like`.
        """
        program = cls()
        program.blocks = []
        program._seed = desc.seed
        known = {p.name: p for p in like.all_parameters()} if like is not None else {}
        for idx, b in enumerate(desc.blocks):
            block = Block(program, idx, b.parent, b.forward)
            for name, d in b.vars.items():
                extra = known[name].extra() if name in known else {}
                block.vars[name] = (
                    Parameter(block, d, **extra) if d.is_parameter else Variable.of(block, d)
                )
            block.ops = [Operator(block, o) for o in b.ops]
            program.blocks.append(block)
        program._uid = 1 + edit.max_uid(desc)
        program._desc = desc
        return program

    def set_desc(self, desc: ProgramDesc) -> None:
        """Replace the program's desc in place; handles of variables that still exist stay valid."""
        fresh = Program.from_desc(desc, like=self)
        for old, new in zip(self.blocks, fresh.blocks, strict=False):
            for name, var in old.vars.items():
                if name in new.vars and type(var) is type(new.vars[name]):
                    var.desc, var.block = new.vars[name].desc, new
                    new.vars[name] = var
        for block in fresh.blocks:
            block.program = self
        self.blocks, self._seed, self._uid = fresh.blocks, fresh._seed, max(self._uid, fresh._uid)
        self.current_block_idx = min(self.current_block_idx, len(self.blocks) - 1)
        self.touch()

    @property
    def random_seed(self) -> int:
        """0 means a new seed in every process; with another seed, runs of the program repeat
        exactly.
        """
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int):
            raise FluidValueError("Program.random_seed's input seed must be an integer")
        self._seed = seed
        self.touch()

    def global_seed(self, seed: int = 0) -> None:
        """Set random_seed of this program and of all programs made from now on."""
        self.random_seed = seed
        _seed_of_new[0] = seed

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    def global_block(self) -> Block:
        return self.blocks[0]

    def block(self, index: int) -> Block:
        return self.blocks[index]

    def current_block(self) -> Block:
        return self.blocks[self.current_block_idx]

    def _create_block(self, parent_idx: int | None = None) -> Block:
        parent = self.current_block_idx if parent_idx is None else parent_idx
        block = Block(self, len(self.blocks), parent)
        self.blocks.append(block)
        self.current_block_idx = block.idx
        self.touch()
        return block

    def _rollback(self) -> None:
        self.current_block_idx = self.current_block().parent_idx

    def list_vars(self) -> Iterator[Variable]:
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        return [p for block in self.blocks for p in block.all_parameters()]

    def state_dict(self, mode: str = "all", scope: Any = None) -> dict[str, Any]:
        """The values of Parameters ("param"), of other persistable variables ("opt"), or of both,
        in the global scope or the given one.
        """
        from . import values

        return values.held(self.list_vars(), mode, scope)

    def set_state_dict(self, state_dict: Mapping[str, Any], scope: Any = None) -> None:
        """Store values by name in the global scope or the given one. Names that are not persistable
        variables of the program are ignored with a warning.

        Raises FluidTypeError for anything but a dict, FluidValueError for a value of another shape;
        then nothing is set.
        """
        from . import values

        values.put(self.list_vars(), state_dict, scope)

    def clone(self, for_test: bool = False) -> Program:
        """A copy that is independent of this program; `for_test` drops backward and update ops and
        sets is_test.
        """
        copy = self.copy_with(edit.for_test(self.desc) if for_test else self.desc)
        whole = self.info.whole
        if for_test and whole is not None and whole[0] == self.desc:
            copy.update_info(whole=(copy.desc, edit.for_test(whole[1])))
        return copy

    def holding(self, names: Iterable[str]) -> Program:
        """A program in which these variables keep their values: this program, or its state before
        memory_optimize.

        Raises FetchError for a variable whose memory is reused if the program was changed after
        memory_optimize.
        """
        lost = sorted({*names} & self.info.reused.keys()) if self.info.reused else []
        whole = self.info.whole
        if not lost:
            return self
        if whole is None or whole[0] != self.desc:
            self.info.refuse_lost(lost)
        if self._whole is None or self._whole[0] != self._version:
            warn(
                f"memory_optimize gave away the memory of {lost[0]!r}, so the program is also"
                " compiled as it was before, for runs that fetch such a variable; name it in"
                " skip_opt_set of memory_optimize",
                RuntimeWarning,
            )
            program = self.copy_with(whole[1])  # type: ignore[index]
            program.update_info(reused=FrozenMap(), whole=None)
            program._version = self._version
            self._whole = self._version, program
        return self._whole[1]

    def copy_with(self, desc: ProgramDesc) -> Program:
        copy = Program.from_desc(desc, like=self)
        copy._uid = max(copy._uid, self._uid)
        copy.current_block_idx = min(self.current_block_idx, len(copy.blocks) - 1)
        copy.info = self.info
        copy._op_role, copy._op_role_var = self._op_role, list(self._op_role_var)
        return copy

    def _prune(self, targets: Any) -> Program:
        """The ops that `targets` (variables, ops, names) need, as a new program."""
        return self._prune_with_input([], targets)

    def _prune_with_input(self, feeded_var_names: Sequence[str], targets: Any) -> Program:
        """As _prune, but fed variables are not computed."""
        for name in feeded_var_names:
            if not isinstance(name, str):
                raise FluidValueError(
                    f"_prune_with_input takes names in feeded_var_names, not {name!r}"
                )
        names: list[str] = []
        for t in targets if isinstance(targets, list | tuple) else [targets]:
            if isinstance(t, Operator):
                names += [n for n in t.output_arg_names if n != EMPTY]
            elif isinstance(t, Variable | str):
                names.append(t if isinstance(t, str) else t.name)
            else:
                raise FluidValueError(
                    "All targets of Program._prune_with_input() can only be Variable or Operator,"
                    f" but received {type(t)}."
                )
        program = self.holding(names)
        for name in [*names, *feeded_var_names]:
            program.global_block()._var_recursive(name)
        return program.copy_with(edit.prune(program.desc, names, tuple(feeded_var_names)))

    def _inference_optimize(self, prune_read_op: bool = True) -> Program:
        """A copy with is_test set and without the ops up to a py_reader's `read`, unless
        `prune_read_op` is false; backward and update ops stay.
        """
        desc = edit.map_ops(self.desc, edit.testing)
        ops = desc.blocks[0].ops
        reads = [at for at, op in enumerate(ops) if op.type == "read"]
        return self.copy_with(
            edit.replace_ops(desc, 0, ops[reads[0] + 1 :]) if prune_read_op and reads else desc
        )

    def _copy_param_info_from(self, other: Program) -> None:
        """Turn variables of the first block that have the names of another program's Parameters
        into Parameters like them. Raises FluidTypeError for anything but a Program.
        """
        if not isinstance(other, Program):
            raise FluidTypeError(
                f"_copy_param_info_from takes a source Program, not {type(other).__name__}"
            )
        block = self.global_block()
        for param in other.global_block().all_parameters():
            if param.name in block.vars:
                desc = replace(
                    block.vars[param.name].desc,
                    is_parameter=True,
                    persistable=True,
                    trainable=param.trainable,
                    stop_gradient=param.stop_gradient,
                )
                block._adopt(Parameter(block, desc, **param.extra()))

    def _copy_dist_param_info_from(self, other: Program) -> None:
        """Take over another program's facts about the job that it belongs to. Raises FluidTypeError
        for anything but a Program.
        """
        if not isinstance(other, Program):
            raise FluidTypeError(
                f"_copy_dist_param_info_from takes a source Program, not {type(other).__name__}"
            )
        self.update_info(pserver_plan=other.info.pserver_plan)

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """The printed program, which parses; `with_details`: also the call stacks of a program that
        Paddle saved and, as comments, the attributes of its variables that no desc holds.
        """
        check_flags(throw_on_error, with_details)
        printed = text.to_text(self.desc, callstacks=with_details)
        return (
            printed + "".join(block.details() for block in self.blocks) if with_details else printed
        )

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<{text.summary(self.desc)}>"

    def _repr_html_(self) -> str:
        from ..look import program

        return program.to_html(self.desc)

    def save_page(self, path: str | Path, title: str = "", engine: str = "own") -> Path:
        """Write the program as a self-contained page for a browser, and return the path.

            main.save_page("net.html")

        title: default the file's name. engine: the layout of the page's graph, as in `graph`.
        Raises FluidValueError if the file cannot be written, and the errors of `graph`.
        """
        from ..look.program import to_page
        from ..saved.files import write_text

        where = Path(path)
        write_text(where, to_page(self.desc, title or where.stem, engine=engine))
        return where

    def graph(self, engine: str = "own") -> Graph:
        """The ops as a graph in layers, folded by the roles and scopes of its parts; its `save`
        writes .svg, .html, .pdf, ...

            main.graph()

        engine: the layout engine: "own" needs no other software and gives the same layout
        everywhere, "graphviz" is its ``dot``, "auto" is graphviz if it is installed and else "own";
        the graph's `engine` is the one that was used. Raises FluidValueError for another engine,
        UnsupportedError if graphviz is requested but not installed, or fails.
        """
        from ..look.graph import graph

        return graph(self.desc, engine=engine)

    def diff(
        self, other: Program | ProgramDesc, names: tuple[str, str] = ("before", "after")
    ) -> ProgramDiff:
        """The differences between this program and `other`, a later one: printed as a unified diff,
        in notebooks side by side.

            before = main.clone()
            fluid.memory_optimize(main)
            before.diff(main)

        It is false if the two are equal. Raises FluidTypeError for anything but a program.
        """
        from ..look.diff import ProgramDiff

        if not isinstance(other, Program | ProgramDesc):
            raise FluidTypeError(f"Program.diff takes a Program, not {type(other).__name__}")
        return ProgramDiff(self.desc, other.desc if isinstance(other, Program) else other, names)

    def serialize_to_string(self) -> bytes:
        """The program as Paddle's ProgramDesc protobuf (what ``__model__`` and ``.pdmodel`` files
        hold).
        """
        return self.desc.serialize_to_string()

    @staticmethod
    def parse_from_string(data: bytes) -> Program:
        """The program in Paddle's ProgramDesc protobuf, of 1.x to 3.x.

        Raises ParseError for bytes that hold no program, UnsupportedError for unknown versions of
        op types.
        """
        from ..ir import proto
        from ..passes.later_files import adapted

        program = Program.from_desc(adapted(*proto.read(data)))
        program.update_info(loaded=True)
        return program

    @contextlib.contextmanager
    def _role(self, role: int, role_var: Iterable[Any] = ()) -> Iterator[None]:
        """Ops appended within the block get this op_role and op_role_var."""
        old = self._op_role, self._op_role_var
        self._op_role, self._op_role_var = int(role), list(names_of(list(role_var)))
        try:
            yield
        finally:
            self._op_role, self._op_role_var = old

    def _optimized_guard(self, param_and_grads: Any) -> Any:
        return self._role(OpRole.Optimize, param_and_grads)

    def _backward_role_guard(self) -> Any:
        return self._role(OpRole.Backward)

    def _lr_schedule_guard(self, is_with_opt: bool = False) -> Any:
        return self._role(OpRole.LRSched | (OpRole.Optimize if is_with_opt else 0))


_main = InForce("main program", Program())
_startup = InForce("startup program", Program())


def default_main_program() -> Program:
    """The program that layers are appended to."""
    return _main.get()


def default_startup_program() -> Program:
    """The program that initialises the parameters."""
    return _startup.get()


def switch_main_program(program: Program) -> Program:
    """Make `program` the default main program; return the old one.

    Within a program_guard of this thread it is the default until the end of the block, otherwise
    for the whole process.
    """
    return _main.switch(program)


def switch_startup_program(program: Program) -> Program:
    """Make `program` the default startup program, as switch_main_program does; return the old
    one.
    """
    return _startup.switch(program)


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Append layers within the block to these programs, in this thread. startup_program None: keep
    the default startup program.
    """
    for what, p in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(p, Program) and not (p is None and what == "startup_program"):
            raise FluidTypeError(f"program_guard's {what} is a Program, not {type(p).__name__}")
    with (
        _main.within(main_program),
        (
            _startup.within(startup_program)
            if startup_program is not None
            else contextlib.nullcontext()
        ),
    ):
        yield


def _serialized(desc: ProgramDesc) -> bytes:
    from ..ir import proto

    return proto.to_bytes(desc, attr_type)


serializers.append(_serialized)


def as_program(program: Program | None) -> Program:
    """`program`, or the default main program for None. Raises FluidTypeError for anything else."""
    if program is None:
        return default_main_program()
    if not isinstance(program, Program):
        raise FluidTypeError(f"expected a Program, got {type(program).__name__}")
    return program
