"""Programs that the API builds equal those that Paddle 1.8.5 built: ops, slots, names, order,
attributes, variables.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.base.dtypes import VarType, enum_of
from fluidjax.ops.registry import HINTS

from .nets import build_forward, fresh, resolve

DATA = Path(__file__).parent / "data"
RECORDS = {
    path.stem: json.loads(path.read_text())
    for folder in ("golden", "golden_extra")
    for path in sorted((DATA / folder).glob("*.json"))
}
CASES = sorted(n for n, r in RECORDS.items() if ("net" in r or "builder_source" in r))
ROLES = {"op_role", "op_role_var"}
# What 1.8.5 does not know while it builds, and we do.
# dtype of gradients()' shape ops, and of int32 masks and indices
UNTYPED = (
    "_shape",
    "max_pool2d_with_index_0.tmp_1",
    *(f"sequence_pool_{i}.tmp_1" for i in range(6)),
)
UNSHAPED = ("expand_as",)
pytestmark = [
    pytest.mark.once,
    # ours warn where 1.8.5 does something surprising
    *(
        pytest.mark.filterwarnings(f"ignore:{start}")
        for start in ("set_gradient_clip", "Ftrl", "no gradient is clipped")
    ),
]
# of Python functions, in the order in which a process made them
NUMBERS = {"forward_callable_id", "backward_callable_id"}
IGNORED = (set(HINTS) - ROLES) | NUMBERS | {"is_test_", "use_global_stats_"}


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-6)
    return value


def op_view(op: fluid.framework.Operator) -> tuple[str, dict[str, list[str]], dict[str, list[str]]]:
    ins = {k: op.input(k) for k in op.input_names if op.input(k)}
    outs = {k: op.output(k) for k in op.output_names if op.output(k)}
    return settled(op.type, ins, outs)


def settled(
    kind: str, ins: dict[str, list[str]], outs: dict[str, list[str]]
) -> tuple[str, dict[str, list[str]], dict[str, list[str]]]:
    """Paddle captures the names of a block as a set, whose order depends on the hashes of strings;
    here they are sorted.
    """
    if kind.removesuffix("_grad") in ("conditional_block", "while"):
        ins, outs = (
            {slot: sorted(names) for slot, names in slots.items()} for slots in (ins, outs)
        )
    if kind.removesuffix("_grad") == "recurrent":
        ins, outs = (
            {slot: sorted(n) if slot.startswith("parameters") else n for slot, n in slots.items()}
            for slots in (ins, outs)
        )
    return kind, ins, outs


def in_order(ops: Any, key: Any) -> list[Any]:
    """The ops, with neighbouring sums in the order of what they write: sums in front of one op
    stand as its inputs do.
    """
    found: list[Any] = []
    for same, group in itertools.groupby(ops, lambda op: key(op)[0] == "sum"):
        members = list(group)
        found += sorted(members, key=key) if same else members
    return found


def compare_ops(got: Any, want: dict[str, Any], what: str) -> None:
    mine = in_order(got.ops, lambda op: (op.type, op.output_arg_names))
    theirs = in_order(want["ops"], lambda op: (op["type"], op["outputs"].get("Out", [])))
    assert [op.type for op in mine] == [op["type"] for op in theirs], what
    for i, (op, w) in enumerate(zip(mine, theirs, strict=True)):
        where = f"{what}: op {i} {op.type}"
        assert op_view(op) == settled(w["type"], w["inputs"], w["outputs"]), where
        for name, value in w["attrs"].items():
            if isinstance(value, dict):
                assert op.desc.blocks == tuple(
                    value["blocks"] if "blocks" in value else [value["block"]]
                ), where
            if name in IGNORED or isinstance(value, dict):
                continue
            assert op.has_attr(name), f"{where}: no attribute {name}"
            have = op.attr(name)
            if name == "original_output_grad":
                assert sorted(value) == sorted(op.attr(name)), where
            elif isinstance(value, list):
                assert [plain(v) for v in value] == have, f"{where}: {name}"
            else:
                assert plain(value) == have, f"{where}: {name}"


def compare_vars(got: Any, want: dict[str, Any], what: str) -> None:
    for w in want.get("vars", ()):
        if w.get("type") not in ("LOD_TENSOR", "SELECTED_ROWS"):
            continue
        assert w["name"] in got.vars, f"{what}: no variable {w['name']}"
        var = got.vars[w["name"]]
        where = f"{what}: variable {w['name']}"
        assert var.desc.kind == w["type"], where
        assert bool(var.persistable) == w["persistable"], where
        assert isinstance(var, fluid.framework.Parameter) == w.get("parameter", False), where
        if "shape" in w and not w["name"].startswith(UNSHAPED):
            assert [max(d, -1) for d in w["shape"]] == list(var.shape), where
        if (
            w.get("dtype") in VarType.__members__
            and var.desc.dtype is not None
            and not w["name"].endswith(UNTYPED)
        ):
            assert VarType[w["dtype"]] == enum_of(var.desc.dtype), where
        assert var.stop_gradient == w["stop_gradient"], where


def compare(program: fluid.Program, want: dict[str, Any], what: str) -> None:
    assert len(program.blocks) == len(want["blocks"]), what
    for got, w in zip(program.blocks, want["blocks"], strict=True):
        compare_ops(got, w, f"{what}, block {got.idx}")
        compare_vars(got, w, f"{what}, block {got.idx}")


@pytest.mark.parametrize("name", CASES)
def test_forward_startup_and_test_clone(name: str) -> None:
    record = RECORDS[name]
    with fresh() as (main, startup):
        build_forward(record)
    compare(main, record["forward"], "forward")
    compare(startup, record["startup"], "startup")
    compare(main.clone(for_test=True), record["clone_for_test_before_backward"], "test clone")
    assert main.clone().desc == main.desc


@pytest.mark.parametrize("name", [n for n in CASES if "append_backward" in RECORDS[n]])
def test_append_backward(name: str) -> None:
    record = RECORDS[name]["append_backward"]
    with fresh() as (main, _):
        loss, _ = build_forward(RECORDS[name])
        pairs = fluid.backward.append_backward(loss)
    compare(main, record["program"], "append_backward")
    assert [[p.name, g.name] for p, g in pairs] == record["params_grads"]


MINIMIZED = [(n, o) for n in CASES for o in RECORDS[n].get("minimize", {})]


@pytest.mark.parametrize(("name", "optimizer"), MINIMIZED)
def test_minimize(name: str, optimizer: str) -> None:
    record = RECORDS[name]["minimize"][optimizer]
    with fresh() as (main, startup):
        loss, _ = build_forward(RECORDS[name])
        if record.get("clip"):
            fluid.clip.set_gradient_clip(resolve(record["clip"], {}))
        _, pairs = resolve(record["optimizer"], {}).minimize(loss)
    if "main" in record:
        compare(main, record["main"], "main")
        compare(startup, record["startup"], "startup")
    if "main_optimize_part" in record:
        part = [op for op in main.global_block().ops if op.attr("op_role") & 2]
        assert [op_view(op) for op in part] == [
            (w["type"], w["inputs"], w["outputs"]) for w in record["main_optimize_part"]
        ]
    if "params_grads" in record:
        assert [[p.name, g.name] for p, g in pairs] == record["params_grads"]
    if "clone_for_test_after_minimize_ops" in record:
        got = [[op.type for op in b.ops] for b in main.clone(for_test=True).blocks]
        assert got == record["clone_for_test_after_minimize_ops"]


def test_every_recorded_network_is_there() -> None:
    """The list of cases cannot silently shrink."""
    assert {
        "mlp",
        "lenet",
        "lenet_bn",
        "dropout",
        "word_emb_dense",
        "double_grad",
        "shared_param",
    } <= set(CASES)
    assert len(MINIMIZED) >= 30
