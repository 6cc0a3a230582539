"""What Paddle 1.8.5's transpilers made of small networks, rebuilt here and compared op by op."""

from __future__ import annotations

import functools
import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fluidjax as fluid
from fluidjax.base.dtypes import VarType, enum_of
from fluidjax.ops.registry import HINTS

from ..nets import fresh, resolve

DATA = Path(__file__).parents[1] / "data" / "transpiler"
IGNORED = (set(HINTS) - {"op_role", "op_role_var"}) | {"is_test_", "use_global_stats_"}


def _load(name: str) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress((DATA / name).read_bytes())))


@functools.cache
def programs() -> dict[str, Any]:
    """case -> the case, and the programs of its trainers and pservers, or how 1.8.5 failed."""
    return _load("programs_1.8.5.json.gz")


@functools.cache
def tables() -> dict[str, Any]:
    """Slices and dispatches, types of errors, signatures."""
    return _load("tables_1.8.5.json.gz")


def build(case: dict[str, Any]) -> tuple[fluid.Program, fluid.Program]:
    """The training program of a case and its startup program."""
    with fresh(case.get("random_seed", 0)) as (main, startup), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # set_gradient_clip
        env: dict[str, Any] = {}
        for step in case["net"]["steps"]:
            result = resolve({"@": step["fn"], "args": step.get("args", {})}, env)
            out = step.get("out")
            env.update(zip(out, result, strict=True) if isinstance(out, list) else [(out, result)])
        if case.get("clip"):
            fluid.clip.set_gradient_clip(resolve(case["clip"], env))
        if case.get("optimizer"):
            resolve(case["optimizer"], env).minimize(env[case["net"]["loss"]])
    return main, startup


def config_of(case: dict[str, Any]) -> Any:
    config = fluid.DistributeTranspilerConfig()
    given = case.get("config") or {}
    # others may be refused while it is True
    for name in sorted(given, key=lambda n: n != "sync_mode"):
        value = given[name]
        setattr(config, name, getattr(fluid.transpiler, value) if name == "split_method" else value)
    return config


def transpile(
    case: dict[str, Any], trainer_id: int = 0, **changes: Any
) -> tuple[Any, fluid.Program, fluid.Program]:
    """A transpiler that transpiled a fresh build of the case, and the two programs."""
    main, startup = build(case)
    given = {**case["transpile"], **case.get("per_trainer", {}).get(str(trainer_id), {}), **changes}
    with fluid.unique_name.guard():
        t = getattr(fluid.transpiler, case.get("transpiler", "DistributeTranspiler"))(
            config=config_of(case)
        )
        t.transpile(trainer_id=trainer_id, program=main, startup_program=startup, **given)
    return t, main, startup


def mode(case: dict[str, Any]) -> str:
    return (case.get("config") or {}).get("mode", "pserver")


def recorded(name: str) -> Iterator[tuple[str, fluid.Program, dict[str, Any]]]:
    """(what, ours, Paddle's) of every program of a case that 1.8.5 could make."""
    record = programs()[name]
    case = record["case"]
    for number, want in record["trainers"].items():
        if "error" not in want:
            t, main, startup = transpile(case, int(number))
            main = t.get_trainer_program() if mode(case) == "pserver" else main
            yield f"trainer {number} main", main, want["main"]
            yield f"trainer {number} startup", startup, want["startup"]
    for endpoint, want in record.get("pservers", {}).items():
        if "error" not in want:
            main, startup = transpile(case)[0].get_pserver_programs(endpoint)
            yield f"pserver {endpoint} main", main, want["main"]
            yield f"pserver {endpoint} startup", startup, want["startup"]


def difference(program: fluid.Program, want: dict[str, Any]) -> str | None:
    """The first difference between a program and a recorded one; None if there is none."""
    if len(program.blocks) != len(want["blocks"]):
        return f"{len(program.blocks)} blocks, not {len(want['blocks'])}"
    controls: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for block, theirs in zip(program.blocks, want["blocks"], strict=True):
        if block.parent_idx != theirs["parent"]:
            return f"block {block.idx} lies below {block.parent_idx}, not {theirs['parent']}"
        types, wanted = [op.type for op in block.ops], [op["type"] for op in theirs["ops"]]
        if types != wanted:
            return f"block {block.idx}: ops {types}, not {wanted}"
        for at, (op, other) in enumerate(zip(block.ops, theirs["ops"], strict=True)):
            if found := _op_difference(op, other, controls):
                return f"block {block.idx}, op {at} {op.type}: {found}"
        for var in theirs["vars"]:
            if found := _var_difference(block, var):
                return f"block {block.idx}, variable {var['name']}: {found}"
    return None


def _op_difference(
    op: Any, want: dict[str, Any], controls: tuple[dict[str, str], dict[str, str]]
) -> str | None:
    ours = ({k: op.input(k) for k in op.input_names}, {k: op.output(k) for k in op.output_names})
    theirs = (want["inputs"], want["outputs"])
    if (got := _counted(ours, controls[0])) != (expected := _counted(theirs, controls[1])):
        return f"{got}, not {expected}"
    for name, value in want["attrs"].items():
        if name in IGNORED:
            continue
        if not op.has_attr(name):
            return f"there is no attribute {name}"
        if not _same(name, _plain(op.attr(name)), value):
            return f"{name} = {_plain(op.attr(name))!r}, not {value!r}"
    return None


def _counted(slots: Any, names: dict[str, str]) -> Any:
    """Slots with control variables numbered as they come: their names are random in Paddle."""

    def counted(name: str) -> str:
        return (
            names.setdefault(name, f"control {len(names)}")
            if name.startswith("__control_var")
            else name
        )

    return [
        {slot: [counted(n) for n in held] for slot, held in side.items() if held} for side in slots
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return (
            {"blocks": [v.idx for v in value]}
            if value and hasattr(value[0], "idx")
            else [_plain(v) for v in value]
        )
    return {"block": value.idx} if hasattr(value, "idx") else value


def _same(name: str, got: Any, want: Any) -> bool:
    if name == "grad_to_block_id":  # made from a set in Paddle
        return sorted(got) == sorted(want)
    if isinstance(want, list) and isinstance(got, list):
        return len(got) == len(want) and all(
            _same("", g, w) for g, w in zip(got, want, strict=True)
        )
    if isinstance(want, float):
        return abs(got - want) <= 1e-6 * max(1.0, abs(want))
    return bool(got == want) or (got == {"blocks": []} and want == [])


def _var_difference(block: Any, want: dict[str, Any]) -> str | None:
    if want["name"].startswith("__control_var"):
        return None
    if want["name"] not in block.vars:
        return "is not there"
    var = block.vars[want["name"]].desc
    kind = want["type"] if isinstance(want["type"], str) else VarType(want["type"]).name
    if var.kind != kind:
        return f"is a {var.kind}, not {kind}"
    if var.persistable != want["persistable"]:
        return f"persistable {var.persistable}"
    if kind in ("LOD_TENSOR", "SELECTED_ROWS"):
        if "shape" in want and list(var.shape or ()) != [max(n, -1) for n in want["shape"]]:
            return f"has shape {var.shape}, not {want['shape']}"
        dtype = (
            None if _lost_dtype(block, want["name"]) else VarType.__members__.get(want.get("dtype"))
        )
        if dtype is not None and enum_of(var.dtype) != dtype:
            return f"is {var.dtype}, not {want['dtype']}"
    return None


def _lost_dtype(block: Any, name: str) -> bool:
    """1.8.5's local SGD makes its snapshots without dtype, and spoils that of the parameters; it
    gives none to MaxIndex.
    """
    if name.startswith("sequence_pool") and name.endswith("tmp_1"):
        return True
    return name + "@SNAPSHOT" in block.vars or name.endswith("@SNAPSHOT")
