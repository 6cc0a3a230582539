"""What a net is here, beside what it was in the real Paddle: all that differs, as sentences, and
the reasons of what may.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax.ir.desc import BlockRef
from fluidjax.ops.registry import REGISTRY, lookup

from . import nets, reasons

EPSILON = {"float32": 2e-5, "float64": 1e-10}
CARRIED = 20  # times what the values move if all that is fed and held moves by 1e-6 of itself
Found = tuple[str, str | None]  # a difference, and its reason

# Names that 1.8.5 lists in the order of a set.
UNORDERED = {
    "conditional_block": {"Input", "Out"},
    "conditional_block_grad": {"Input", "Input@GRAD", "Out", "Out@GRAD"},
    "recurrent": {"parameters"},
    "recurrent_grad": {"parameters", "parameters@GRAD"},
    "while": {"X", "Out"},
    "while_grad": {"X", "X@GRAD", "Out", "Out@GRAD"},
}


def plain(value: Any) -> Any:
    if isinstance(value, BlockRef):
        return {"block": value.idx}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


def close(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, float | int) and isinstance(b, float | int)
        return numbers and (a == b or abs(a - b) <= 1e-6 * abs(b) + 1e-12)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return bool(a == b)


def defaults(kind: str) -> dict[str, Any]:
    for name in (kind, kind.removesuffix("_grad_grad").removesuffix("_grad")):
        if name in REGISTRY:
            return {n: plain(v) for n, v in lookup(name).defaults.items()}
    return {}


def slots(kind: str, named: Any) -> dict[str, list[str]]:
    unordered = UNORDERED.get(kind, ())
    return {s: sorted(n) if s in unordered else list(n) for s, n in sorted(named.items()) if n}


def open_beside_known(block: Any, op: Any) -> bool:
    """Whether inputs of one rank have an open size where others have a known one: 1.8.5 takes one
    or the other.
    """
    shapes = [v.shape for n in op.reads if (v := block.vars.get(n)) is not None and v.shape]
    return any(
        len(a) == len(b) and any((x == -1) != (y == -1) for x, y in zip(a, b, strict=True))
        for a in shapes
        for b in shapes
    )


def compare_programs(which: str, program: Any, want: list[dict[str, Any]]) -> Iterator[Found]:
    desc = program.desc
    if len(desc.blocks) != len(want):
        yield f"{which}: {len(desc.blocks)} blocks, in 1.8.5 {len(want)}", None
        return
    excused: dict[str, set[str]] = {}  # what follows from a difference with a reason
    for idx, (block, recorded) in enumerate(zip(desc.blocks, want, strict=True)):
        mine, theirs = unordered(desc, idx, list(block.ops)), unordered(desc, idx, recorded["ops"])
        if [op.type for op in mine] != [op[0] for op in theirs]:
            yield f"{which} {idx}: {differing_ops(mine, theirs)}", None
            continue
        for op, recorded_op in zip(mine, theirs, strict=True):
            after = set().union(*(excused.get(n, ()) for n in op.reads))
            if op.type != "while" and open_beside_known(block, op):
                after.add("shape")
            across = op.type == "softmax_with_cross_entropy" and op.attrs.get("axis", -1) not in (
                -1,
                rank_of(desc, idx, op.inputs["Logits"][0]) - 1,
            )
            for slot, names in op.outputs.items():
                for n in names:
                    excused.setdefault(n, set()).update(
                        after
                        | reasons.declared(op.type, slot)
                        | ({"lod_level"} if across else set())
                    )
            for text, why in compare_op(desc, idx, op, recorded_op, excused):
                yield f"{which} {idx}: {text}", why
        for text, why in compare_variables(block, recorded, excused):
            yield f"{which} {idx}: {text}", why


def differing_ops(mine: list[Any], theirs: list[Any]) -> str:
    a, b = [op.type for op in mine], [op[0] for op in theirs]
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    return f"ops {a[at : at + 3]}, in 1.8.5 {b[at : at + 3]} (op {at} of {len(b)})"


def unordered(desc: Any, idx: int, ops: list[Any]) -> list[Any]:
    """The ops of a block; what hands the gradients of Out to the block of a case goes by names, for
    Out is the order of a set.
    """
    if not any(
        op.type == "conditional_block_grad" and idx in op.blocks
        for b in desc.blocks
        for op in b.ops
    ):
        return ops
    kinds = [op.type if hasattr(op, "type") else op[0] for op in ops]
    first = next((i for i, kind in enumerate(kinds) if kind != "assign"), len(ops))
    read = lambda op: list((op.inputs if hasattr(op, "inputs") else op[1])["X"])  # noqa: E731
    return sorted(ops[:first], key=read) + ops[first:]


def rank_of(desc: Any, idx: int, name: str) -> int:
    var = desc.find_var(name, idx)
    return len(var.shape or ()) if var is not None else 0


def of_one_rank(desc: Any, idx: int, op: Any) -> bool:
    """Whether an elementwise op has operands of one rank, so that its axis says nothing."""
    x, y = (desc.find_var(op.inputs[slot][0], idx) for slot in "XY")
    return x is not None and y is not None and len(x.shape or ()) == len(y.shape or ())


def compare_op(
    desc: Any, idx: int, op: Any, recorded: Any, excused: dict[str, set[str]]
) -> Iterator[Found]:
    kind, ins, outs, attrs = recorded
    own, his = (
        [slots(kind, op.inputs), slots(kind, op.outputs)],
        [slots(kind, ins), slots(kind, outs)],
    )
    if own != his:
        yield (
            f"{kind} {own[0]} -> {own[1]}, in 1.8.5 {his[0]} -> {his[1]}",
            reasons.OUTPUTS if kind == "data_norm_grad" else None,
        )
    known = defaults(kind)
    for n in sorted((set(op.attrs) | set(attrs)) - nets.HINTS):
        a = plain(op.attrs[n]) if n in op.attrs else known.get(n)
        b = attrs.get(n, known.get(n))
        if n == "shape" and kind == "fill_constant" and b:  # 1.8.5 multiplies open sizes
            b = [max(size, -1) for size in b]
        if n == "original_output_grad" and a and b:
            a, b = sorted(a), sorted(b)
        neither = n in ("op_role", "op_namescope") and not (a and b) and (a or b) in (0, "/")
        if not close(a, b) and not neither:
            of_size = (
                reasons.of_variable("", "shape", a, b)
                if kind == "fill_constant" and n == "shape"
                else None
            )
            if n == "shape" and any(
                "shape" in excused.get(v.partition("@GRAD")[0], ()) for v in op.writes
            ):
                of_size = reasons.SIZES
            if (
                n == "axis"
                and kind.startswith("elementwise_")
                and {a, b} == {0, -1}
                and of_one_rank(desc, idx, op)
            ):
                # Python's operators take axis 0 where Y's first size is open
                of_size = reasons.SIZES
            of_dtype = n == "dtype" and any(
                "dtype" in excused.get(v, ()) or "@GRAD" in v for v in op.writes
            )
            of_dtype |= n == "in_dtype" and any("dtype" in excused.get(v, ()) for v in op.reads)
            yield (
                f"{kind}.{n} = {a!r}, in 1.8.5 {b!r}",
                of_size or (reasons.DTYPE if of_dtype else None),
            )


def compare_variables(block: Any, recorded: Any, excused: dict[str, set[str]]) -> Iterator[Found]:
    used = {n for op in block.ops for n in (*op.reads, *op.writes)} | set(block.vars)
    used |= {
        n
        for op in recorded["ops"]
        for side in (op[1], op[2])
        for names in side.values()
        for n in names
    }
    # 1.8.5 leaves some behind that no op touches
    theirs = {n: v for n, v in recorded["vars"].items() if n in used}
    makers = {
        n: f"{op.type}.{slot}"
        for op in reversed(block.ops)
        for slot, names in op.outputs.items()
        for n in names
    }
    for n in sorted(set(block.vars) ^ set(theirs)):
        yield f"variable {n} is only {'here' if n in block.vars else 'in 1.8.5'}", None
    for n in sorted(set(block.vars) & set(theirs)):
        v, (kind, dtype, shape, persistable, stop, lod) = block.vars[n], theirs[n]
        own: dict[str, Any] = {
            "kind": v.kind,
            "persistable": v.persistable,
            "stop_gradient": v.stop_gradient,
        }
        his: dict[str, Any] = {"kind": kind, "persistable": persistable, "stop_gradient": stop}
        if shape is not None:
            own |= {"dtype": v.dtype, "shape": list(v.shape or ()), "lod_level": v.lod_level}
            his |= {"dtype": dtype, "shape": [max(s, -1) for s in shape], "lod_level": lod}
        for key in own:
            if own[key] != his[key]:
                why = reasons.of_variable(n, key, own[key], his[key])
                why = why or (reasons.HEADING[key] if key in excused.get(n, ()) else None)
                yield (
                    (
                        f"{key} of {n} ({makers.get(n, 'no op')}) is {own[key]!r}, in 1.8.5"
                        f" {his[key]!r}"
                    ),
                    why,
                )


def compare_values(
    key: str, mine: Any, want: np.ndarray, again: np.ndarray, nudged: np.ndarray, lod: Any, net: Any
) -> Found | None:
    got, got_lod = mine
    if (
        not np.array_equal(want, again, equal_nan=want.dtype.kind == "f")
        or want.shape != nudged.shape
    ):
        return None  # 1.8.5 does not say the same twice, or rounding decides a size
    if got.shape != want.shape:
        # no variable that is declared here has this shape: nothing was written
        unwritten = want.shape == (0,) and reasons.GRADIENT.search(key)
        text = f"{key}: shape {got.shape}, in 1.8.5 {want.shape}"
        return text, reasons.OUTPUTS if unwritten else None
    if got.dtype != want.dtype:
        return f"{key}: {got.dtype}, in 1.8.5 {want.dtype}", None
    wrong = differing(
        got,
        want,
        nudged,
        EPSILON["float32" if rounded(net) else str(want.dtype)] if want.dtype.kind == "f" else 0,
    )
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
        clipped = (
            np.isnan(want[wrong]).all()
            and not np.isnan(got).any()
            and any(
                "ClipByNorm" in line or "clip_by_norm" in line
                for line in [*net["lines"], *net["train"]]
            )
        )
        text = (
            f"{key}: {wrong.sum()} of {wrong.size}, at {list(at)} {got[at]!r}, in 1.8.5"
            f" {want[at]!r}"
        )
        return text, reasons.CLIPPED if clipped else None
    if got_lod != lod:
        why = reasons.of_variable(key, "lengths", got_lod, lod) or (
            reasons.OTHER_ROWS
            if not got_lod and (moved_rows(net) or sum(lod[-1]) != want.shape[0])
            else None
        )
        return f"{key}: lengths {got_lod}, in 1.8.5 {lod}", why
    return None


def moved_rows(net: Any) -> bool:
    """Whether the net has an op to whose other rows 1.8.5 gives the LoD of those that it read."""
    ops = [op for block in net["programs"]["main"] for op in block["ops"]]
    return any(
        "lod_level" in reasons.declared(op[0], slot)
        for op in ops
        for slot in op[2]
        if slot != "XShape"
    )


def rounded(net: Any) -> bool:
    """Whether some of a net is float32, from which float64 may have been cast."""
    return any(
        v[1] == "float32" for block in net["programs"]["main"] for v in block["vars"].values()
    )


def differing(got: np.ndarray, want: np.ndarray, nudged: np.ndarray, epsilon: float) -> np.ndarray:
    """Where two arrays differ by more than rounding; where rounding decides an integer, nothing
    does.
    """
    if want.dtype.kind != "f":
        return np.asarray((got != want) & (want == nudged))
    finite = np.isfinite(want)
    scale = np.abs(want[finite]).max(initial=0)
    with np.errstate(all="ignore"):
        room = epsilon * (np.abs(want) + 0.1 * scale + 1e-2) + CARRIED * np.abs(nudged - want)
        equal = (got == want) | (np.isnan(got) & np.isnan(want))
        wrong = ~(equal | (np.abs(got - want) <= room))
        return np.asarray(wrong & (np.isfinite(nudged) == finite))


def differences(net: dict[str, Any], arrays: Any) -> Iterator[Found]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            built = nets.Built(fluid, net)
        except Exception as exc:
            yield f"build: {type(exc).__name__}: {exc}", None
            return
        programs = {"main": built.main, "startup": built.startup, "test": built.test}
        for which, want in net["programs"].items():
            yield from compare_programs(which, programs[which], want)
        try:
            values = nets.run(built)
        except Exception as exc:
            yield f"run: {type(exc).__name__}: {exc}", None
            return
    named = {key: variable(built, key) for key in values}
    sizes = {(key.partition("/")[0], named[key]): value[0].size for key, value in values.items()}
    astray = reasons.astray(net, lambda number, name: sizes.get((str(number), name)) == 0)
    clipped = False  # whether 1.8.5's state has a nan that a clip made
    # what stands at the end first: later runs began with some of it
    for key in sorted((k[2:] for k in arrays if k.startswith("v:")), key=lambda k: k[:3] != "end"):
        if key not in values:
            yield f"{key}: not there", None
            continue
        lod = json.loads(str(arrays["l:" + key]))
        found = compare_values(
            key, values[key], arrays["v:" + key], arrays["a:" + key], arrays["n:" + key], lod, net
        )
        when = key.partition("/")[0]
        if found is not None:
            followed = {} if when == "startup" else astray[-1 if when == "end" else int(when)]
            clipped |= found[1] == reasons.CLIPPED
            later = clipped and when not in ("startup", "0")
            yield (
                found[0],
                found[1] or followed.get(named[key]) or (reasons.CLIPPED if later else None),
            )
    yield from ((f"{key}: only here", None) for key in values if "v:" + key not in arrays)


def variable(built: Any, key: str) -> str:
    """The variable whose value a key names."""
    when, _, expression = key.partition("/")
    if when in ("startup", "end") or expression[0] == "@":
        return expression.removeprefix("@")
    found = built.variable(expression)
    return found if isinstance(found, str) else getattr(found, "name", "")


def compare(net: dict[str, Any], arrays: Any) -> tuple[list[str], set[str]]:
    """The differences of a net that have no reason, and the reasons of the others."""
    found = list(differences(net, arrays))
    return [text for text, why in found if why is None], {
        why for _, why in found if why is not None
    }


def refuse(net: dict[str, Any]) -> bool:
    """Whether what Paddle refused is refused here, while it is built or run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            nets.run(nets.Built(fluid, net))
        except Exception:
            return True
    return False
