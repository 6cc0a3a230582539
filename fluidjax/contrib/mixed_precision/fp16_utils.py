"""The rewrites of mixed precision: casts around ops, gradients exchanged in half precision, the
update of the scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import layers
from ...base.dtypes import VarType, enum_of, name_of
from ...base.loc import user_line, warn
from ...base.roles import OpRole
from ...errors import FluidValueError
from ...graph.block import Block
from ...graph.operator import Operator
from ...graph.program import Program
from ...graph.variable import Parameter, Variable
from ...layers.control_flow import Switch
from .fp16_lists import AutoMixedPrecisionLists

_CASTABLE = ("LOD_TENSOR", "SELECTED_ROWS", "LOD_TENSOR_ARRAY")
_SHORT = {VarType.FP16: "fp16", VarType.BF16: "bf16"}


def rewrite_program(
    main_prog: Program, amp_lists: AutoMixedPrecisionLists, dtype: Any = "float16"
) -> None:
    """Make white ops of block 0 compute in `dtype` and black ones in float32, by casts before them.

    A gray op follows its inputs: black if one comes from a black op, else white if one comes from a
    white op. Ops on no list are black. Only X and Y of batch_norm are cast. Outputs of white ops
    become `dtype`. Warns if no op of a traced program is white.
    """
    block, half = main_prog.global_block(), enum_of(dtype)
    black, white = _classes(block, amp_lists)
    if not white and any(op.type.startswith("jax.") for op in block.ops):
        warn(
            f"mixed precision changes nothing ({user_line()}): no op of the traced program's first"
            " block is on the white list; functions within jax.checkpoint, scan or kept calls stay"
            " in float32"
        )
    for op in list(block.ops):
        if id(op) in black:
            _cast_inputs(block, op, half, VarType.FP32)
        elif id(op) in white:
            _cast_inputs(block, op, VarType.FP32, half)
            _change_outputs(block, op, half)


def _classes(block: Block, lists: AutoMixedPrecisionLists) -> tuple[set[int], set[int]]:
    """The ids of black and of white ops."""
    ops = [op for b in block.program.blocks for op in b.ops]
    writer = {name: op for op in sorted(ops, key=lambda op: op.desc.uid) for name in op.desc.writes}
    black: set[int] = set()
    white: set[int] = set()
    for op in block.ops:
        if lists.black_varnames and not lists.black_varnames.isdisjoint(
            (*op.desc.reads, *op.desc.writes)
        ):
            black.add(id(op))
        elif op.type in lists.black_list:
            black.add(id(op))
        elif op.type in lists.white_list:
            white.add(id(op))
        elif op.type in lists.gray_list:
            before = [
                w
                for n in op.input_arg_names
                if (w := _maker(block, op, n, writer.get(n))) is not None
            ]
            if any(id(w) in black or w.type in lists.black_list for w in before):
                black.add(id(op))
            elif any(id(w) in white or w.type in lists.white_list for w in before):
                white.add(id(op))
        else:
            black.add(id(op))
    return black, white


def _maker(block: Block, op: Operator, name: str, writer: Operator | None) -> Operator | None:
    """The op that writes a variable; if `op` itself overwrites it, the only one before `op`."""
    return find_true_prev_op(block.ops, op, name) if writer is op else writer


def find_true_prev_op(ops: Sequence[Operator], cur_op: Operator, var_name: str) -> Operator | None:
    """The op before cur_op that writes a variable, or None. Raises FluidValueError if several do."""
    found = [
        op
        for op in ops[: next(i for i, op in enumerate(ops) if op is cur_op)]
        if var_name in op.desc.writes
    ]
    if len(found) > 1:
        raise FluidValueError(
            f"mixed precision: {len(found)} ops write {var_name!r} before op '{cur_op.type}'"
            " overwrites it; one may"
        )
    return found[0] if found else None


def find_true_post_op(
    ops: Sequence[Operator], cur_op: Operator, var_name: str
) -> list[Operator] | None:
    """The ops after cur_op that read a variable; None if there are none."""
    found = [
        op
        for op in ops[next(i for i, op in enumerate(ops) if op is cur_op) + 1 :]
        if var_name in op.desc.reads
    ]
    return found or None


def _cast_inputs(block: Block, op: Operator, old: VarType, new: VarType) -> None:
    """Cast an op's inputs of dtype `old`, each variable once for the whole block; the last cast
    comes first, as in Fluid.
    """
    at = op.idx
    for slot in op.input_names:
        if old == VarType.FP32 and op.type == "batch_norm" and slot != "X":
            continue
        for name in op.input(slot):
            var = block.var(name)
            if var.desc.kind not in _CASTABLE:
                continue
            if var.dtype == old:
                cast = _cast_of(block, at, var, new)
                op._rename_input(name, cast.name)
                op._rename_output(name, cast.name)
            elif op.has_attr("in_dtype"):
                op._set_attr("in_dtype", int(new))


def _cast_of(block: Block, at: int, var: Variable, dtype: VarType) -> Variable:
    """A variable in another dtype; its cast op is inserted at position `at` if there is none."""
    name = f"{var.name}.cast_{_SHORT.get(dtype, 'fp32')}"
    found = block.vars.get(name)
    if found is None or found.dtype != dtype:
        found = block.create_var(name=name, dtype=dtype, persistable=False, stop_gradient=False)
        attrs = {"in_dtype": int(var.dtype), "out_dtype": int(dtype)}
        block._insert_op(at, type="cast", inputs={"X": var}, outputs={"Out": found}, attrs=attrs)
    return found


def _change_outputs(block: Block, op: Operator, half: VarType) -> None:
    for slot in op.output_names:
        if op.type == "batch_norm" and slot != "Y":
            continue
        for var in map(block.var, op.output(slot)):
            if var.desc.kind in _CASTABLE and var.dtype == VarType.FP32:
                var.change(dtype=name_of(half))
                if op.has_attr("out_dtype"):
                    op._set_attr("out_dtype", int(half))
                if "preferred_element_type" in op.desc.attrs:  # jax.numpy's products set it
                    op._set_attr("preferred_element_type", name_of(half))


def update_role_var_grad(
    main_prog: Program, params_grads: Sequence[tuple[Parameter, Variable]]
) -> None:
    """Make the half-precision gradients the parameters' gradients (op_role_var), and the casts to
    float32 part of the update.

    Raises FluidValueError for a cast of a gradient that is not in the backward part, or that
    another op reads.
    """
    block = main_prog.global_block()
    for param, grad in params_grads:
        cast = [op for op in block.ops if grad.name in op.desc.writes][-1]
        if grad.dtype != VarType.FP32 or cast.type != "cast":
            continue
        if not (cast.attr("op_role") & int(OpRole.Backward) and cast.attr("op_role_var")):
            raise FluidValueError(
                f"the cast that gives {grad.name!r} is to be a backward op with op_role_var: {cast}"
            )
        cast._remove_attr("op_role_var")
        (name,) = cast.input("X")
        maker = find_true_prev_op(block.ops, cast, name)
        if maker is None:
            raise FluidValueError(
                f"no op computes the gradient {name!r} of parameter {param.name!r}"
            )
        maker._set_attr(
            "op_role_var",
            [param.name, name, *maker.attr("op_role_var")],
        )
        cast._set_attr("op_role", int(OpRole.Optimize))
        readers = find_true_post_op(block.ops, cast, grad.name)
        if readers:
            raise FluidValueError(
                f"{grad.name!r} is read by op '{readers[0].type}' before the update, so its cast"
                " cannot move"
            )
        block.ops.remove(cast)
        block.ops.append(cast)
        main_prog.touch()


def update_loss_scaling(
    is_overall_finite: Variable, prev_loss_scaling: Variable, num_good_steps: Variable, num_bad_steps: Variable,
    incr_every_n_steps: Variable, decr_every_n_nan_or_inf: Variable, incr_ratio: float, decr_ratio: float,
) -> None:  # fmt: skip
    """Append the update of the scale: multiplied by incr_ratio after incr_every_n_steps finite
    steps in a row (unless it becomes infinite), by decr_ratio, but not below 1, after
    decr_every_n_nan_or_inf other steps. Both counts are then reset, and each step resets the other
    count.
    """
    zero_steps = layers.fill_constant(shape=[1], dtype="int32", value=0)

    def set_to_zero(*counts: Variable) -> None:
        for count in counts:
            layers.assign(zero_steps, count)

    with Switch() as switch:
        with switch.case(is_overall_finite):
            grows = layers.less_than(incr_every_n_steps, num_good_steps + 1)
            with Switch() as inner:
                with inner.case(grows):
                    _grow(prev_loss_scaling, incr_ratio)
                    set_to_zero(num_good_steps, num_bad_steps)
                with inner.default():
                    layers.increment(num_good_steps)
                    set_to_zero(num_bad_steps)
        with switch.default():
            shrinks = layers.less_than(decr_every_n_nan_or_inf, num_bad_steps + 1)
            with Switch() as inner:
                with inner.case(shrinks):
                    _shrink(prev_loss_scaling, decr_ratio)
                    set_to_zero(num_good_steps, num_bad_steps)
                with inner.default():
                    set_to_zero(num_good_steps)
                    layers.increment(num_bad_steps)


def _grow(scale: Variable, ratio: float) -> None:
    larger = scale * ratio
    finite = layers.isfinite(larger)
    with Switch() as switch:
        with switch.case(finite):
            layers.assign(larger, scale)
        with switch.default():
            pass


def _shrink(scale: Variable, ratio: float) -> None:
    smaller = scale * ratio
    one = layers.fill_constant(shape=[1], dtype="float32", value=1.0)
    below = layers.less_than(smaller, one)
    with Switch() as switch:
        with switch.case(below):
            layers.assign(one, scale)
        with switch.default():
            layers.assign(smaller, scale)
