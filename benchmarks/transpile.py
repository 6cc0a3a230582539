"""How long DistributeTranspiler takes on programs of 1k to 10k parameters."""

from __future__ import annotations

import time
from collections.abc import Iterable

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.ir import edit
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from fluidjax.transpiler.making import Maker

from .page import Table, shown

SIZES = (1_000, 2_000, 5_000, 10_000)
SHAPES = ((256, 128), (128,), (64, 64), (64,))  # the first is cut in two
PSERVERS, TRAINERS = 8, 4


def training(count: int) -> tuple[Program, Program]:
    """A training program of `count` parameters: x * w for each, their gradients, and Adam."""
    make = Maker(0)
    names = [f"w_{i}" for i in range(count)]
    shapes = {name: SHAPES[i % len(SHAPES)] for i, name in enumerate(names)}
    state = [v for name in names for v in _states(name, shapes[name])]
    vars = [
        VarDesc(n, s, "float32", persistable=True, is_parameter=True) for n, s in shapes.items()
    ]
    more = [VarDesc(n + end, s, "float32") for n, s in shapes.items() for end in ("@GRAD", ".out")]
    rate = VarDesc("learning_rate_0", (1,), "float32", persistable=True)
    ops = [make.op("scale", {"X": n}, {"Out": n + ".out"}) for n in names]
    ops += [
        make.op(
            "scale",
            {"X": n + ".out"},
            {"Out": n + "@GRAD"},
            edit.BACKWARD,
            op_role_var=[n, n + "@GRAD"],
        )
        for n in reversed(names)
    ]
    ops += [_adam(make, n) for n in names]
    main = ProgramDesc((BlockDesc(_mapped([*vars, *more, *state, rate]), tuple(ops)),))
    every = [*vars, *state, rate]
    fills = [
        make.op("fill_constant", {}, {"Out": v.name}, shape=v.shape, value=0.0, dtype=5)
        for v in every
    ]
    startup = ProgramDesc((BlockDesc(_mapped(every), tuple(fills)),))
    return Program.from_desc(main), Program.from_desc(startup)


def _mapped(vars: Iterable[VarDesc]) -> FrozenMap:
    return FrozenMap({v.name: v for v in vars})


def _states(name: str, shape: tuple[int, ...]) -> list[VarDesc]:
    kinds = {"moment1": shape, "moment2": shape, "beta1_pow_acc": (1,), "beta2_pow_acc": (1,)}
    return [
        VarDesc(f"{name}_{kind}_0", s, "float32", persistable=True) for kind, s in kinds.items()
    ]


def _adam(make: Maker, name: str) -> OpDesc:
    slots = {
        "Moment1": "moment1",
        "Moment2": "moment2",
        "Beta1Pow": "beta1_pow_acc",
        "Beta2Pow": "beta2_pow_acc",
    }
    held = {slot: f"{name}_{kind}_0" for slot, kind in slots.items()}
    ins = {"Param": name, "Grad": name + "@GRAD", "LearningRate": "learning_rate_0", **held}
    outs = {"ParamOut": name, **{slot + "Out": var for slot, var in held.items()}}
    return make.op("adam", ins, outs, edit.OPTIMIZE, op_role_var=[name, name + "@GRAD"])


def seconds(count: int) -> dict[str, float]:
    """Seconds of transpile, and of making the programs of one trainer, one pserver and all
    pservers.
    """
    main, startup = training(count)
    endpoints = ",".join(f"127.0.0.1:{6174 + i}" for i in range(PSERVERS))
    t = fluid.DistributeTranspiler()
    taken = {}
    start = time.perf_counter()
    t.transpile(0, program=main, startup_program=startup, pservers=endpoints, trainers=TRAINERS)
    taken["transpile"] = time.perf_counter() - start
    start = time.perf_counter()
    t.get_trainer_program()
    taken["get_trainer_program"] = time.perf_counter() - start
    start = time.perf_counter()
    for endpoint in endpoints.split(","):
        t.get_pserver_programs(endpoint)
        taken.setdefault("get_pserver_programs", time.perf_counter() - start)
    taken["... of all pservers"] = time.perf_counter() - start
    return taken


def table() -> list[Table]:
    """Seconds by the number of parameters."""
    columns = [seconds(count) for count in SIZES]
    title = (
        f"DistributeTranspiler: seconds on Adam programs of many parameters, {PSERVERS} pservers,"
        f" {TRAINERS} trainers"
    )
    rows = ([name, *(f"{taken[name]:.2f}" for taken in columns)] for name in columns[0])
    return [shown("transpile", title, ["parameters", *(f"{count:,}" for count in SIZES)], rows)]
