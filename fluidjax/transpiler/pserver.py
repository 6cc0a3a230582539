"""The pserver's program: block 0 listens, the other blocks update the variables that this pserver
owns.

Blocks, in order: the learning rate's, if it changes; one for every parameter block; one each for
updating, looking up and saving the rows of a distributed table. Accumulators keep their names and
get the shape of the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..base.loc import warn
from ..dist.pserver_plan import ParamBlock, PlannedParam
from ..errors import UnsupportedError
from ..ir import edit, walk
from ..ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ops.kinds import is_lookup
from .layout import Layout
from .making import Maker, renamed
from .sparse_table import prefetch_vars, sent_parts
from .startup import Part
from .trainer import renamed_grads

RPC_THREADS = {"rpc_get_thread_num": 12, "rpc_send_thread_num": 12, "rpc_prefetch_thread_num": 12}
Parts = dict[str, tuple[Part, ...]]


def serve(layout: Layout, endpoint: str) -> tuple[ProgramDesc, Parts]:
    """The main program of a pserver, and the parts of variables that it has.

    Warns if a pserver has nothing to update. Raises UnsupportedError for an update that needs a
    variable that the pserver does not have.
    """
    build = _Server(layout, endpoint)
    build.receive()
    build.schedule()
    build.parent = len(build.blocks) - 1
    build.update()
    if layout.table is not None:
        build.serve_table()
    if len(build.blocks) == 1:
        warn(f"pserver {endpoint} has nothing to update", RuntimeWarning)
        build.block([], -1)
    return build.finished(), build.parts


@dataclass
class _Server:
    """A pserver's program while it is built."""

    layout: Layout
    endpoint: str
    blocks: list[BlockDesc] = field(default_factory=lambda: [BlockDesc()])
    vars: dict[str, VarDesc] = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)
    received: list[str] = field(default_factory=list)
    optimize: list[int] = field(default_factory=list)
    grad_blocks: list[str] = field(default_factory=list)
    prefetches: list[str] = field(default_factory=list)
    by_rows: list[str] = field(default_factory=list)
    attrs: dict[str, int | bool] = field(default_factory=dict)
    temporaries: int = 0
    parent: int = 0  # the parent of the updating blocks: the learning rate's last block

    def __post_init__(self) -> None:
        request = self.layout.request
        self.index = request.endpoints.index(self.endpoint)
        self.make = Maker(self.layout.stride * (len(request.endpoints) + 1))
        self.main = self.layout.main
        self.renames = renamed_grads(self.layout, request.trainer_id)
        self.computed = {
            n for op in self.layout.schedule for n in walk.writes_with_subblocks(self.main, op)
        }

    def owned(self) -> list[tuple[PlannedParam, ParamBlock]]:
        return [(p, b) for p in self.layout.params for b in p.blocks if b.endpoint == self.endpoint]

    def block(
        self,
        ops: list[OpDesc],
        parent: int,
        vars: Mapping[str, VarDesc] | None = None,
        optimizes: bool = True,
    ) -> int:
        """Append a block below `parent` (-1: the last one); its number."""
        at = len(self.blocks)
        self.blocks.append(
            BlockDesc(FrozenMap(vars or {}), tuple(ops), at - 1 if parent < 0 else parent)
        )
        if optimizes:
            self.optimize.append(at)
        return at

    def part(self, original: str, part: Part) -> None:
        if part not in self.parts.get(original, ()):
            self.parts[original] = (*self.parts.get(original, ()), part)

    def original(self, name: str) -> VarDesc:
        return self.main.blocks[0].vars[name]

    def keep(self, name: str) -> None:
        """Declare a variable, persistable: each run of a block reads its value from the run
        before.
        """
        if name not in self.vars:
            var = self.original(name)
            self.vars[name] = replace(
                var, persistable=True, is_parameter=False, stop_gradient=False
            )
            self.part(name, Part(name, var.shape))

    def receive(self) -> None:
        """The variables of parameters and gradients; with merging, one gradient for each
        trainer.
        """
        order = {name: at for at, name in enumerate(self.layout.sends)}
        for param, block in sorted(self.owned(), key=lambda pair: order[pair[0].name]):
            kind = "SELECTED_ROWS" if param.sparse else "LOD_TENSOR"
            self.vars[block.name] = VarDesc(block.name, block.shape, param.dtype, persistable=True)
            self.part(param.name, _part_of(block.name, block, len(param.blocks) > 1))
            merged = VarDesc(block.grad, block.shape, param.dtype, kind, persistable=True)
            self.vars[block.grad] = merged
            for name in self.arriving(block.grad):
                self.vars.setdefault(name, replace(merged, name=name, persistable=False))
                self.received.append(name)

    def arriving(self, grad: str) -> list[str]:
        """The names under which trainers send a gradient."""
        request = self.layout.request
        return (
            [f"{grad}.trainer_{i}" for i in range(request.trainers)] if request.merged else [grad]
        )

    def schedule(self) -> None:
        """The block that computes the learning rate; the blocks of its ops follow."""
        if not self.layout.schedule:
            return
        for op in self.layout.schedule:
            for name in (*op.reads, *op.writes):
                self.keep(name)
        at = self.block([], 0)
        self.attrs["lr_decay_block_id"] = at
        ops = tuple(self.below(op, at) for op in self.layout.schedule)
        self.blocks[at] = replace(self.blocks[at], ops=ops)

    def below(self, op: OpDesc, parent: int) -> OpDesc:
        """`op` with its blocks copied behind the last one."""
        moved = {}
        for old in op.blocks:
            block = self.main.blocks[old]
            at = moved[old] = self.block([], parent, block.vars, optimizes=False)
            self.blocks[at] = replace(
                self.blocks[at], ops=tuple(self.below(o, at) for o in block.ops)
            )
            for name in (
                *walk.captured(self.main, old).reads,
                *walk.captured(self.main, old).writes,
            ):
                if name in self.main.blocks[0].vars:
                    self.keep(name)
        return edit.move_blocks(op, moved)

    def update(self) -> None:
        """One block for each parameter block."""
        here: set[str] = set()
        steps = [op.attrs["op_role_var"][0] for op in self.layout.updates if op.input("Param")]
        order = {name: at for at, name in enumerate(steps)}
        for param, block in sorted(
            self.owned(), key=lambda pair: order.get(pair[0].name, len(order))
        ):
            # a second block of one parameter, whose accumulators need names of their own
            again = param.name in here
            here.add(param.name)
            at = len(self.blocks)
            local: dict[str, VarDesc] = {}
            ops = self.merging(block)
            grad = block.grad
            if self.layout.request.dc_asgd:
                late, grad = self.compensated(param, block, local)
                ops += late
            ops += self.stepping(param, block, grad, again)
            self.block(ops, self.parent, local)
            self.grad_blocks.append(f"{block.grad}:{at}")
            stepped = [
                op.input("Grad") for op in self.layout.updates_of[param.name] if op.input("Param")
            ]
            # with weight decay the update takes a dense gradient
            if param.sparse and (param.grad,) in stepped:
                self.by_rows.append(f"{block.grad}:{block.name}")

    def merging(self, block: ParamBlock) -> list[OpDesc]:
        request = self.layout.request
        if not request.merged:
            return []
        total = self.make.op(
            "sum", {"X": self.arriving(block.grad)}, {"Out": block.grad}, use_mkldnn=False
        )
        return [
            total,
            self.make.op(
                "scale", {"X": block.grad}, {"Out": block.grad}, scale=1.0 / request.trainers
            ),
        ]

    def stepping(
        self, param: PlannedParam, block: ParamBlock, grad: str, again: bool
    ) -> list[OpDesc]:
        """The ops that update a parameter, on one block of it."""
        names = {param.name: block.name, self.renames.get(param.grad, param.grad): grad}
        written = {param.name, *names, *self.computed}
        ops = []
        for op in (edit.rename_op(op, self.renames) for op in self.layout.updates_of[param.name]):
            self.check(op, param, written)
            written.update(op.writes)
            for name in (*op.reads, *op.writes):
                if name not in names:
                    names[name] = self.state(name, param, block, again)
            uid = self.make.uid() if again else op.uid + block.index * self.layout.stride
            ops.append(renamed(op, names, uid))
        return ops

    def check(self, op: OpDesc, param: PlannedParam, written: set[str]) -> None:
        for name in op.reads:
            var = self.main.find_var(name)
            elsewhere = name in self.layout.by_name and name != param.name
            if elsewhere or (name not in written and (var is None or not var.persistable)):
                raise UnsupportedError(
                    f"op '{op.type}' ({op.loc}) of the update of {param.name!r} reads {name!r},"
                    " which its pserver does not have; in pserver mode an update uses the"
                    " parameter, its gradient, the learning rate and accumulators"
                )

    def state(self, name: str, param: PlannedParam, block: ParamBlock, again: bool) -> str:
        """The name here of an accumulator or temporary of an update; one with the parameter's shape
        is cut like the parameter.
        """
        if name in self.layout.shared or name in self.computed:
            self.keep(name)
            return name
        var = self.original(name)
        cut = len(param.blocks) > 1 and var.shape == param.shape
        new = f"{name}.block{block.index}" if again else name
        shape = block.shape if cut else var.shape
        self.vars[new] = replace(
            var, name=new, shape=shape, persistable=True, is_parameter=False, stop_gradient=False
        )
        self.part(
            name,
            (
                _part_of(new, block, True)
                if cut
                else Part(new, shape, number=block.index if again else 0)
            ),
        )
        return new

    def compensated(
        self, param: PlannedParam, block: ParamBlock, local: dict[str, VarDesc]
    ) -> tuple[list[OpDesc], str]:
        """grad + (param - param as the trainer saw it) * grad * grad; returns the ops and the name
        of the result.
        """
        like = VarDesc(block.name, block.shape, param.dtype)
        baks = [f"{block.name}.trainer_{i}_bak" for i in range(self.layout.request.trainers)]
        self.vars.update({n: replace(like, name=n) for n in baks})
        seen, who = f"{block.name}.local_bak", "@TRAINER_ID@"
        temps = [f"tmp_dc_output_{self.temporaries + i}" for i in range(4)]
        self.temporaries += 4
        local.update({n: replace(like, name=n) for n in (seen, *temps)})
        local[who] = VarDesc(who, (1,), "int64")
        steps = [
            ("sub", block.name, seen),
            ("mul", temps[0], block.grad),
            ("mul", temps[1], block.grad),
            ("add", block.grad, temps[2]),
        ]
        ops = [self.make.op("ref_by_trainer_id", {"X": baks, "TrainerId": who}, {"Out": seen})]
        ops += [
            self.make.op(f"elementwise_{kind}", {"X": x, "Y": y}, {"Out": out})
            for (kind, x, y), out in zip(steps, temps, strict=True)
        ]
        return ops, temps[3]

    def serve_table(self) -> None:
        """The blocks of the distributed table: update rows, look rows up, save them."""
        request, table = self.layout.request, self.layout.table
        assert table is not None
        rows = VarDesc(
            table.name, (table.rows, table.shape[1]), table.dtype, "SELECTED_ROWS", persistable=True
        )
        self.vars[table.name] = rows
        self.part(table.name, Part(table.name, rows.shape, number=self.index, alternate=True))
        self.keep(table.learning_rate)
        grad = VarDesc(table.grad, table.shape, table.dtype, "SELECTED_ROWS", persistable=True)
        ops: list[OpDesc] = []
        if request.sync:
            parts = [
                sent_parts(table, True, t, len(request.endpoints))[self.index]
                for t in range(request.trainers)
            ]
            self.vars.update({n: replace(grad, name=n, persistable=False) for n in parts})
            ops.append(self.make.op("sum", {"X": parts}, {"Out": grad.name}, use_mkldnn=False))
        else:
            grad = replace(
                grad, name=sent_parts(table, False, 0, len(request.endpoints))[self.index]
            )
        self.vars[grad.name] = grad
        step = {"Param": table.name, "Grad": grad.name, "LearningRate": table.learning_rate}
        ops.append(self.make.op("sgd", step, {"ParamOut": table.name}))
        at = self.block(ops, self.parent)
        self.grad_blocks.append(f"{grad.name}:{at}")
        self.answer(table.name, at)

    def answer(self, table: str, parent: int) -> None:
        """The blocks that answer a trainer's prefetch, and save the table."""
        lookups = [
            op for op in self.main.blocks[0].ops if is_lookup(op.type) and op.input("W") == (table,)
        ]
        ids, out = lookups[0].input("Ids")[0], lookups[0].output("Out")[0]
        asked, answer = (
            vars[self.index]
            for vars in prefetch_vars(self.main, ids, out, len(self.layout.request.endpoints))
        )
        # the shape that Paddle infers
        answer = replace(answer, shape=(len(asked.shape or ()), *(answer.shape or ())[-1:]))
        self.vars.update({asked.name: asked, answer.name: answer})
        look = self.make.op(
            "lookup_sparse_table",
            {"Ids": asked.name, "W": table},
            {"Out": answer.name},
            padding_idx=-1,
        )
        at = self.block([look], parent, optimizes=False)
        self.prefetches.append(f"{asked.name}:{at}")
        path = "kLookupTablePath"
        self.vars[path] = VarDesc(path, kind="RAW", persistable=True)
        save = self.make.op("save", {"X": table}, {}, file_path="none")
        self.attrs["checkpint_block_id"] = self.block([save], parent, optimizes=False)

    def finished(self) -> ProgramDesc:
        request = self.layout.request
        listen = self.make.op(
            "listen_and_serv", {"X": self.received}, {}, endpoint=self.endpoint, pserver_id=self.index, Fanin=request.trainers,
            distributed_mode=request.distributed_mode, dc_asgd=request.dc_asgd,
            optimize_blocks=[BlockRef(i) for i in self.optimize],
            grad_to_block_id=self.grad_blocks, sparse_grad_to_param=self.by_rows, prefetch_var_name_to_block_id=self.prefetches,
            **RPC_THREADS, **self.attrs,
        )  # fmt: skip
        root = replace(self.blocks[0], vars=FrozenMap(self.vars), ops=(listen,))
        return ProgramDesc((root, *self.blocks[1:]), self.main.seed)


def _part_of(name: str, block: ParamBlock, cut: bool) -> Part:
    return Part(name, block.shape, block.rows if cut else None, block.index)
