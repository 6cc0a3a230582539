"""Every trait of every op was decided: it stands on the declaration, or a rule that traits.py
states answers for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.dist.spmd.data_parallel import DataParallel
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from fluidjax.ops import registry, ring
from fluidjax.ops.control_interface import ControlOp
from fluidjax.ops.registry import REGISTRY, OpDef, traits
from fluidjax.ops.rows import makes_lod
from fluidjax.ops.statistics import fixed_statistics
from fluidjax.ops.traits import (
    ByValues,
    Given,
    Mixing,
    Reduction,
    RowWise,
    Runs,
    Sequences,
    SparseGradient,
    StaysSparse,
    Traits,
    mixes,
)
from fluidjax.passes.match import written_back

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fluidjax"
FORWARD = {kind: d for kind, d in REGISTRY.items() if d.forward is None}
INDEX_SLOTS = {"Ids", "Index", "Label", "Labels"}


def ins(definition: OpDef) -> set[str]:
    return {s.name for s in definition.inputs}


def outs(definition: OpDef) -> set[str]:
    return {s.name for s in definition.outputs}


def rows_undecided(d: OpDef) -> bool:
    """Not needed where nobody runs it on arrays, where it has no input, and where it updates
    parameters.
    """
    return d.fn is not None and bool(d.inputs) and d.traits.update is None and d.traits.rows is None


def bounds_undecided(d: OpDef) -> bool:
    return d.fn is not None and bool(INDEX_SLOTS & ins(d)) and d.traits.bounds is None


def update_undecided(d: OpDef) -> bool:
    return {"Param"} <= ins(d) and "ParamOut" in outs(d) and d.traits.update is None


def ranks_undecided(d: OpDef) -> bool:
    """An op that says for how many ranks it is, or on which ring."""
    return (
        d.fn is not None
        and bool({"ring_id", "nranks"} & set(d.attrs))
        and not d.traits.ranks.together
        and d.type not in ALONE
    )


def heavy_undecided(d: OpDef) -> bool:
    """An op with a filter."""
    return d.fn is not None and "Filter" in ins(d) and not d.traits.heavy


# These name a ring and talk to nobody.
ALONE = {
    "c_sync_comm_stream": "data flow orders here what streams order in Paddle",
    "c_arrival_order": "a draw for nranks arrivals, the same on all ranks",
}

SAY: dict[str, tuple[Callable[[OpDef], bool], str]] = {
    "rows": (
        rows_undecided,
        "write rows=row_wise(...), elementwise(...), reduces(...), mixes(...) or knows_rows(...)",
    ),
    "bounds": (
        bounds_undecided,
        "write bounds=Bounds(slot, name, high) with a bound of ops/bounds.py, or bounds=FREE",
    ),
    "update": (
        update_undecided,
        "write update=updates_elements(...) or updates_whole(...) with the slots of its state",
    ),
    "heavy": (heavy_undecided, "write heavy=True"),
    "ranks": (
        ranks_undecided,
        "write ranks=collective(...), or give the op a line in ALONE with the reason",
    ),
}


@pytest.mark.parametrize("trait", SAY)
def test_each_op_was_decided(trait: str) -> None:
    undecided, what = SAY[trait]
    found = sorted(kind for kind, d in FORWARD.items() if undecided(d))
    assert not found, (
        f"op {', '.join(found)}: trait {trait} is not decided; {what} on its declaration"
        " (fluidjax/ops/traits.py)"
    )


def test_a_new_op_without_a_decision_is_found() -> None:
    """Each of the questions is answered yes by an op that says nothing."""
    attrs = {"nranks": None}
    new = OpDef(
        "new",
        lambda **_: None,
        registry.parse_slots("Param Ids Filter"),
        registry.parse_slots("ParamOut"),
        attrs,
    )  # type: ignore
    assert [trait for trait, (undecided, _) in SAY.items() if undecided(new)] == list(SAY)


def test_ops_that_talk_are_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    """No op asks for the ring that does not say so; found by the names that its code refers to."""
    asks = {"ring", "ring_of", "rooted", "mean_over", "gathered", "_from_root", "_split"}
    talking = {
        k for k, d in FORWARD.items() if d.fn is not None and asks & set(d.fn.__code__.co_names)
    }
    assert ring.__name__ == "fluidjax.ops.ring" and len(talking) > 12
    assert talking == {k for k, d in FORWARD.items() if d.traits.ranks.together}


def test_control_ops_say_who_runs_them() -> None:
    """An op without a function is not of the step unless it says how it is lowered."""
    for kind, d in REGISTRY.items():
        if d.fn is None:
            stepped = d.traits.runs in (Runs.STEP, Runs.EFFECT)
            assert not stepped or d.control.lower, (
                f"op {kind!r} has no function: write runs=Runs.HOST or REMOTE, or"
                " ControlOp(lower=...)"
            )
        else:
            assert d.traits.runs is Runs.STEP and d.control == ControlOp(), kind


SLOTS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    # trait, the input slots and the output slots that a value of it names
    ("rows", lambda r: _names(r, "over", "beside", "lod"), lambda r: _names(r, "outs", "shared")),
    ("sparse", lambda r: _names(r, "scalar", "table"), lambda r: ()),
    ("ranks", lambda r: r.follows.values(), lambda r: {*r.agree, *r.follows} - {"*"}),
    ("bounds", lambda r: {r.slot} - {""}, lambda r: ()),
    ("update", lambda r: (*r.state, *r.powers), lambda r: ()),
    ("unchanged", lambda r: r.outs.values(), lambda r: r.outs),
    ("carries", lambda r: [r], lambda r: ["Out"]),
    ("counters", lambda r: r, lambda r: ()),
    ("sizes", lambda r: r.slots, lambda r: ()),
    ("shape_of", lambda r: r, lambda r: ()),
    ("chosen", lambda r: r.slots, lambda r: ()),
]


def _names(value: Any, *fields: str) -> set[str]:
    found: set[str] = set()
    for field in fields:
        given = getattr(value, field, None) or ()
        if callable(given):  # told by the attributes (box_coder's LoD)
            continue
        found.update((given,) if isinstance(given, str) else given)
    if isinstance(value, Sequences) and not callable(value.levels):
        found.update(value.levels.values() if "over" in fields else value.levels)
    return found


@pytest.mark.parametrize("trait", [row[0] for row in SLOTS])
def test_traits_name_slots_of_the_op(trait: str) -> None:
    _, reads, writes = next(row for row in SLOTS if row[0] == trait)
    for kind, d in REGISTRY.items():
        value = getattr(d.traits, trait)
        if value is not None:
            assert set(reads(value)) <= ins(d), kind
            assert set(writes(value)) <= outs(d), kind


def test_ops_that_know_rows_have_slots_for_them() -> None:
    """And the others have none: what an op does to rows is said once. An op may also make the LoD
    of a plain value.
    """
    for kind, d in FORWARD.items():
        assert (
            any(s.ragged for s in d.inputs)
            or makes_lod(d)
            or not isinstance(d.traits.rows, Sequences)
        ), kind
        assert isinstance(d.traits.rows, Sequences) or not any(s.ragged for s in d.inputs), kind
        assert not isinstance(d.traits.sparse, ByValues) or not any(s.selected for s in d.inputs), (
            kind
        )
        assert not isinstance(d.traits.sparse, StaysSparse) or all(s.selected for s in d.inputs), (
            kind
        )


def test_gradient_ops_go_by_the_rule() -> None:
    """They say nothing of sparse rows or bounds, and of rows only that they mix them though their
    forward op does not, or that they know them; the sparse gradient of an embedding is said by the
    embedding.
    """
    for kind, d in REGISTRY.items():
        if d.forward is not None:
            by_rows = isinstance(REGISTRY[d.forward].traits.rows, RowWise)
            known = isinstance(d.traits.rows, Sequences) and any(s.ragged for s in d.inputs)
            assert d.traits.rows is None or (by_rows and (known or d.traits.rows == mixes())), kind
            assert d.traits.sparse is None and d.traits.bounds is None, kind


def test_traits_are_frozen_values() -> None:
    one = traits("relu")
    assert hash(one) == hash(traits("relu6")) and one == traits("relu6")
    with pytest.raises(AttributeError):
        one.rows = mixes()  # type: ignore[misc]
    assert traits("no_such_op") == traits("mul_grad")


def test_each_kind_of_rule_is_there() -> None:
    rows = {type(d.traits.rows) for d in FORWARD.values()}
    assert {RowWise, Reduction, Mixing, Sequences} <= rows
    assert {ByValues, StaysSparse, SparseGradient} <= {
        type(d.traits.sparse) for d in FORWARD.values()
    }


# is_test, use_global_stats, trainable_statistics -> whether the running statistics are used and
# stay as they are
STATES = {
    (False, False, False): False, (True, False, False): True, (False, True, False): True, (True, True, False): True,
    (False, False, True): False, (True, False, True): False, (False, True, True): True, (True, True, True): True,
}  # fmt: skip
NORM = (
    {"X": ("x",), "Mean": ("m",), "Variance": ("v",)},
    {"Y": ("y",), "MeanOut": ("m",), "VarianceOut": ("v",)},
)


@pytest.mark.parametrize("kind", ["batch_norm", "inplace_abn", "sync_batch_norm"])
@pytest.mark.parametrize("state", STATES)
def test_all_readers_agree_when_statistics_are_kept(
    kind: str, state: tuple[bool, bool, bool]
) -> None:
    """trainable_statistics takes those of the batch even in test mode, so they are those of all
    ranks where asked for.
    """
    want = STATES[state]
    attrs = dict(zip(("is_test", "use_global_stats", "trainable_statistics"), state, strict=True))
    op = OpDesc(1, kind, *map(FrozenMap, NORM), FrozenMap(attrs))
    assert fixed_statistics(attrs) is want
    assert written_back(op) == ({"m", "v"} if want else set())
    unchanged = traits(kind).unchanged
    assert unchanged is not None and unchanged.holds(op) is want
    x = np.arange(12, dtype="float32").reshape(3, 4)
    inputs = {"X": x, **{s: np.ones(4, "float32") for s in ("Scale", "Bias", "Mean", "Variance")}}
    definition = REGISTRY[kind]
    with ring.bound(ring.Ring(None, 1)):
        moved = definition(inputs, {**definition.defaults, **attrs})["MeanOut"]
    assert (np.asarray(moved) == inputs["Mean"]).all() == want
    if kind == "batch_norm":
        desc = ProgramDesc((BlockDesc(FrozenMap({n: VarDesc(n) for n in "xymv"}), (op,)),))
        synced = (
            DataParallel(2, sync_batch_norm=True)
            .rewrite(desc, {}, frozenset())
            .desc.blocks[0]
            .ops[0]
        )
        assert synced.type == ("batch_norm" if want else "sync_batch_norm")


def test_the_page_tells_of_every_trait() -> None:
    """docs/op-traits.md has a row for each, and the files that it names are there."""
    page = (ROOT / "docs" / "op-traits.md").read_text()
    section = page[page.index("| trait |") : page.index("## Control ops")]
    assert (
        re.findall(r"^\| `(\w+)`", section, re.M)
        == [f.name for f in fields(Traits)]
        == list(Given.__annotations__)
    )
    missing = [
        path
        for path in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", section)
        if not any((r / path).exists() for r in (ROOT, PACKAGE))
    ]
    assert not missing
