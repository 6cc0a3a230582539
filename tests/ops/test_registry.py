"""The whole registry against the op declarations of Paddle 1.8.5."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.ops.later import SLOTS
from fluidjax.ops.registry import GRAD, HINTS, REGISTRY, REQUIRED, OpDef, Slot, lookup

from ..lower import sparse_cases
from .protos import DATA, LATER, PROTOS, paddles
from .samples import all_samples

pytestmark = pytest.mark.once

GRADS: dict[str, Any] = json.loads((DATA / "grad_protos_1.8.5.json").read_text())

# Op types that Paddle does not have, and why they are there. Of an op with samples, these say it
# (`paddle=False`, with a note); a control op is described by its `doc`.
OURS: dict[str, str] = {
    "optax_init": "an optax optimizer's state; tests/optimizers/test_optimizer_optax.py",
    "optax_update": "one step of an optax optimizer; tests/optimizers/test_optimizer_optax.py",
    "c_table_owned": "tables are on pservers in 1.8.5; tests/dist",
    "c_arrival_order": "the order in which messages reach asynchronous pservers; tests/dist",
    **{s.op: s.note for _, _, s in all_samples() if s.op not in PROTOS and s.paddle is False},
}
# Gradients that differ from 1.8.5's on purpose.
OTHER_GRADIENTS: dict[str, str] = {
    "split_byref": (
        "1.8.5 says sum, which is not the derivative; transpilers write the op after backward"
    ),
    "split_selected_rows": (
        "1.8.5 says sum, which is not the derivative; transpilers write the op after backward"
    ),
    "sequence_conv": (
        "1.8.5 has PaddingData@GRAD too where the padding is trained, which is not in the recording"
    ),
    "pyramid_hash": "1.8.5's changes W by itself, which no slot names; asking for it is refused",
    "data_norm": (
        "1.8.5 also names the three sums as outputs, which its GPU kernel updates and its CPU"
        " kernel leaves"
    ),
}

# 1.8.5 shows an op's defaults only where no attribute is required; these have required ones.
UNKNOWN_DEFAULTS = {"conditional_block", "feed", "fetch", "print", *LATER}

FORWARD = sorted(k for k, d in REGISTRY.items() if d.forward is None)
PADDLES = sorted(paddles())
DIFFERENTIATED = {k for k, d in REGISTRY.items() if k in GRADS or d.grad}
SAMPLED = {sample.op for _, _, sample in all_samples()} | {
    case[0] for case in sparse_cases.OPS.values()
}


def marks(slots: Iterable[Slot]) -> set[str]:
    """Slots as the recording writes them, in no order."""
    return {s.name + "*" * s.many + "?" * s.optional + "~" * s.intermediate for s in slots}


def thawed(value: Any) -> Any:
    return [thawed(v) for v in value] if isinstance(value, tuple) else value


def test_slots_are_paddles() -> None:
    """But for those that later Paddles added (ops/later.py)."""
    for kind in PADDLES:
        definition, later = lookup(kind), SLOTS.get(kind, ())
        ins = marks(s for s in definition.inputs if s.name not in later)
        outs = marks(s for s in definition.outputs if s.name not in later)
        assert (ins, outs) == (set(PROTOS[kind]["in"]), set(PROTOS[kind]["out"])), kind


def test_attributes_are_paddles() -> None:
    """Declared are all of Paddle's but hints to kernels, with its types and defaults."""
    for kind in PADDLES:
        definition, attrs = lookup(kind), PROTOS[kind]["attrs"]
        for name, (type_name, *default) in attrs.items():
            if name in HINTS and name not in definition.attrs:
                continue
            assert name in definition.attrs, f"{kind}: attribute {name} is missing"
            assert definition.attrs[name].type == type_name, (kind, name)
            required = definition.attrs[name].default is REQUIRED
            if kind in UNKNOWN_DEFAULTS:
                continue
            known = [] if required else [thawed(definition.defaults[name])]
            assert known == default, (kind, name)
        assert set(definition.attrs) <= set(attrs), kind


def test_hints_have_paddles_types() -> None:
    for kind in PADDLES:
        for name in HINTS.keys() & PROTOS[kind]["attrs"].keys() - lookup(kind).attrs.keys():
            assert HINTS[name] == PROTOS[kind]["attrs"][name][0], f"{kind}.{name}"


def test_gradients_are_paddles() -> None:
    """The gradient ops' types, slots and where these come from. A double gradient need not be there
    at all.
    """
    for kind in sorted(DIFFERENTIATED - OTHER_GRADIENTS.keys() - LATER.keys() - OURS.keys()):
        definition = lookup(kind)
        if definition.forward is None or definition.grad is not None or definition.reuse:
            assert ours(definition) == differentiated(kind), kind


def ours(definition: OpDef) -> list[dict[str, Any]]:
    if definition.reuse:
        return [
            {"type": r.type, "in": dict(r.ins), "out": {s: bare(o) for s, o in r.outs.items()}}
            for r in definition.reuse
        ]
    if definition.grad is None:
        return []
    takes = {
        s: o
        for s, o in definition.grad.taken({}).items()
        if s not in SLOTS.get(definition.type, ())
    }
    gives = {s: origin + GRAD for s, origin in definition.grad.given(takes).items()}
    return [{"type": definition.grad.type, "in": takes, "out": gives}]


def differentiated(kind: str) -> list[dict[str, Any]]:
    """The recording in the same form; ops that are written once for each variable count as one."""
    found: list[dict[str, Any]] = []
    for entry in GRADS.get(kind, []):
        wiring = entry.get("wiring", {})
        plain = {
            "type": entry["type"],
            "in": {s: bare(wiring.get(s, [s])[0]) for s in entry["inputs"]},
            "out": {s: bare(wiring.get(s, [s])[0]) for s in entry["outputs"]},
        }
        if not found or found[-1] != plain:
            found.append(plain)
    return found


def bare(origin: str) -> str:
    """X@GRAD#1 is of the repeatable slot X."""
    return origin.partition("#")[0]


def test_docstrings_begin_with_a_formula() -> None:
    """Its first paragraph says what an output is: "Out = ...", "Y, XShape = ...", or what a host op
    does to a named slot.
    """
    for kind in FORWARD:
        definition = lookup(kind)
        first = definition.formula
        slots = {s.name for s in [*definition.inputs, *definition.outputs]}
        assert "=" in first or slots & set(re.findall(r"\w+", first)), (kind, first)
        assert first.endswith((".", ":")), (kind, first)


def test_each_has_a_sample() -> None:
    assert not {kind for kind in PADDLES if lookup(kind).fn is not None} - SAMPLED


def test_an_op_that_paddle_lacks_says_why_it_is_there() -> None:
    for kind in set(FORWARD) - paddles() - OURS.keys():
        assert lookup(kind).fn is None and lookup(kind).doc, (
            f"Paddle has no op {kind}: give it a sample with paddle=False and the reason in its note"
        )


def test_own_ops_are_not_paddles() -> None:
    assert not OURS.keys() & PROTOS.keys()
    assert OURS.keys() <= REGISTRY.keys()


def test_there_are_many_ops() -> None:
    assert len(FORWARD) >= 150
