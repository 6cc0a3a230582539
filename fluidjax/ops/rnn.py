"""Recurrences over ragged sequences: gru, lstm.

A step of the scan takes row t of every sequence at once; a sequence that has ended keeps its state.
Paddle's gradient ops read the outputs called Batch...: the rows in its order (first all first rows,
longest sequences first).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from ..errors import EnforceNotMet, ShapeError
from . import loops
from .infer import Spec
from .ragged import Ragged, copied, mask, pack, sequences_of, view
from .registry import Array, op
from .traits import knows_rows


@jax.custom_jvp
def bounded_sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) with x clipped to [-40, 13], as in Paddle's recurrences: at most 1 -
    2.3e-6.
    """
    return jax.nn.sigmoid(jnp.clip(x, -40, 13))


@bounded_sigmoid.defjvp
def _bounded_sigmoid_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    """The derivative is y * (1 - y) beyond the bounds too."""
    y = bounded_sigmoid(*primals)
    return y, tangents[0] * y * (1 - y)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": bounded_sigmoid, "tanh": jnp.tanh, "relu": jax.nn.relu, "identity": lambda x: x,
}  # fmt: skip


def activation_of(op_type: str, name: str) -> Callable[[Any], Any]:
    """The function of that name. Raises EnforceNotMet for another name."""
    if name not in ACTIVATIONS:
        raise EnforceNotMet(
            f"op '{op_type}' knows no activation {name!r}; it knows {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


def first_state(op_type: str, slot: str, value: Array | None, x: Ragged, width: int) -> Any:
    """The first state, [N, width]: 0 if none is given."""
    if value is None:
        return jnp.zeros((x.sequences, width), x.dtype)
    if value.shape != (x.sequences, width):
        raise EnforceNotMet(
            f"input {slot} of op '{op_type}' has shape {list(value.shape)}, but there are"
            f" {x.sequences} sequences and {width} units"
        )
    return value


KEPT = "gates before their activation"


def kept(value: Any) -> Any:
    """The value, marked to be saved by a step of `scanned` for its gradient."""
    return checkpoint_name(value, KEPT)


# (weights, others, state, rows [N, ...]) -> (state, outputs). The state's first array is also the
# first output.
Step = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
# (weights, the state's first array before each step, outputs) -> what a step adds to its rows: one
# row for each step of each sequence
Products = Callable[[Any, Any, Any], Any]


def scanned(
    x: Ragged,
    reverse: bool,
    step: Step,
    state: Any,
    weights: Any,
    others: Any,
    products: Products | None = None,
) -> Any:
    """The outputs of `step` along all sequences, as packed rows.

    For the gradient, the states and the values marked with `kept` (the products) are saved.
    Elementwise results are recomputed, which is faster than passing a dozen arrays from one loop to
    the other. With `products` the gradient of the weights is one product behind the loop; without,
    each step adds to it.
    """
    loop = partial(_loop, step) if products is None else partial(_loop_of_products, step, products)
    rows, alive = jnp.moveaxis(view(x, reverse), 1, 0), mask(x).T
    return jax.tree.map(
        lambda c: copied(x.with_rows(pack(x, jnp.moveaxis(c, 0, 1), reverse))),
        loop(weights, others, state, rows, alive),
    )


def _loop(step: Step, weights: Any, others: Any, state: Any, rows: Any, alive: Any) -> Any:
    """rows: [longest, N, ...]; alive: [longest, N], which of them are a sequence's."""

    def one(state: Any, given: Any) -> tuple[Any, Any]:
        rows, alive = given
        new, outputs = step(weights, others, state, rows)
        return jax.tree.map(lambda a, b: jnp.where(alive[:, None], a, b), new, state), outputs

    one = jax.checkpoint(
        one, prevent_cse=False, policy=jax.checkpoint_policies.save_only_these_names(KEPT)
    )
    return loops.scan(one, state, (rows, alive))[1]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _loop_of_products(
    step: Step, products: Products, weights: Any, others: Any, state: Any, rows: Any, alive: Any
) -> Any:
    return _loop(step, weights, others, state, rows, alive)


@_loop_of_products.defjvp
def _loop_of_products_jvp(
    step: Step, products: Products, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """The products with the weights' tangents are added to the tangents of the rows; a gradient is
    the transpose of that.
    """
    weights, others, state, rows, alive = primals
    d_weights, d_others, d_state, d_rows, _ = tangents
    outputs, linear = jax.linearize(
        lambda others, state, rows: _loop(step, weights, others, state, rows, alive),
        others,
        state,
        rows,
    )
    # A step of a sequence that has ended may compute infinities. XLA:CPU multiplies matrices
    # faster than arrays of three axes.
    before, *made = (
        jnp.where(alive[..., None], a, 0).reshape(alive.size, a.shape[-1])
        for a in (jnp.concatenate([state[0][None], outputs[0]])[:-1], *outputs)
    )
    d_rows = d_rows + products(d_weights, before, made).reshape(d_rows.shape)
    return outputs, linear(d_others, d_state, d_rows)


def batch_places(x: Ragged, reverse: bool) -> Any:
    """The position of each packed row in the order of Paddle's batches, [capacity]. Sequences of
    equal length keep their order.
    """
    lengths = x.lengths
    order = jnp.argsort(-lengths, stable=True)
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))
    steps = jnp.arange(x.longest[-1], dtype=jnp.int32)
    alive = jnp.sum(steps < lengths[:, None], 0, dtype=jnp.int32)
    begin = jnp.cumsum(alive) - alive
    number = jnp.arange(x.capacity, dtype=jnp.int32)
    if not (x.sequences and x.longest[-1]):
        return number
    sequence = jnp.minimum(x.sequence(), x.sequences - 1)
    at = x.offsets[-1][sequence + 1] - 1 - number if reverse else number - x.offsets[-1][sequence]
    target = begin[jnp.clip(at, 0, x.longest[-1] - 1)] + rank[sequence].astype(jnp.int32)
    return jnp.where(x.kept(), target, number)


def batched(x: Ragged, rows: Any, reverse: bool) -> Ragged:
    """Packed rows in the order of Paddle's batches."""
    return x.with_rows(jnp.zeros_like(rows).at[batch_places(x, reverse)].set(rows), bare=True)


def _gru_specs(
    Input: Spec, H0: Spec | None, Weight: Spec, Bias: Spec | None, **_: Any
) -> tuple[Spec, ...]:
    width = Weight.shape[0]
    if (
        len(Weight.shape) != 2
        or Weight.shape[1] != 3 * width
        or Input.shape[-1] not in (-1, 3 * width)
    ):
        raise ShapeError(
            f"op 'gru' takes Input [rows, 3 * D] and Weight [D, 3 * D], not {list(Input.shape)} and"
            f" {list(Weight.shape)}"
        )
    state = Spec((Input.shape[0], width), Input.dtype)
    return Spec((Input.shape[0], 3 * width), Input.dtype), state, state, state


@op(
    outs="BatchGate~ BatchResetHiddenPrev~ BatchHidden~ Hidden",
    grad="Input H0 Weight Bias BatchGate BatchResetHiddenPrev BatchHidden Hidden",
    infer=_gru_specs,
    rows=knows_rows(Hidden="Input", each="H0"),
    heavy=True,
)
def gru(
    Input: Ragged, H0: Array | None, Weight: Array, Bias: Array | None, *, activation: str = "tanh",
    gate_activation: str = "sigmoid", is_reverse: bool = False, origin_mode: bool = False,
):  # fmt: skip
    """Hidden[t] = (1 - u) * h + u * c; with origin_mode u * h + (1 - u) * c, where h = Hidden[t -
    1] (H0, or 0, at first).

    u, r = gateactivation_of(x[:2D] + h @ Wg), c = activation(x[2D:] + (r * h) @ Wc), x = Input[t] +
    Bias. Input [rows, 3D], one LoD level; H0 [N, D]; Bias [1, 3D]. Weight [D, 3D] holds, as flat
    memory, Wg [D, 2D] followed by Wc [D, D].
    """
    x = sequences_of("gru", "Input", Input, 1)
    width = Weight.shape[0]
    flat = Weight.reshape(-1)
    gates, candidate = (
        flat[: 2 * width * width].reshape(width, 2 * width),
        flat[2 * width * width :].reshape(width, width),
    )
    gate, act = activation_of("gru", gate_activation), activation_of("gru", activation)

    def step(weights: Any, _: Any, state: Any, rows: Any) -> tuple[Any, Any]:
        (gates, candidate), (h,) = weights, state
        u, r = jnp.split(gate(kept(rows[:, : 2 * width] + h @ gates)), 2, 1)
        reset = r * h
        c = act(kept(rows[:, 2 * width :] + reset @ candidate))
        new = u * h + (1 - u) * c if origin_mode else (1 - u) * h + u * c
        return (new,), (new, reset, jnp.concatenate([u, r, c], 1))

    def products(weights: Any, h: Any, outputs: Any) -> Any:
        return jnp.concatenate([h @ weights[0], outputs[1] @ weights[1]], -1)

    biased = x if Bias is None else x.with_rows(x.rows + Bias.reshape(1, -1))
    first = first_state("gru", "H0", H0, x, width)
    weights = gates, candidate
    hidden, reset, parts = scanned(biased, is_reverse, step, (first,), weights, (), products)
    return (
        *(batched(x, rows, is_reverse) for rows in (parts, reset, hidden)),
        x.with_rows(hidden),
    )


def _lstm_specs(
    Input: Spec, H0: Spec | None, C0: Spec | None, Weight: Spec, Bias: Spec, **_: Any
) -> tuple[Spec, ...]:
    width = Weight.shape[0]
    if (
        len(Weight.shape) != 2
        or Weight.shape[1] != 4 * width
        or Input.shape[-1] not in (-1, 4 * width)
    ):
        raise ShapeError(
            f"op 'lstm' takes Input [rows, 4 * D] and Weight [D, 4 * D], not {list(Input.shape)}"
            f" and {list(Weight.shape)}"
        )
    state = Spec((Input.shape[0], width), Input.dtype)
    return state, state, Spec((Input.shape[0], 4 * width), Input.dtype), state


@op(
    outs="Hidden Cell BatchGate~ BatchCellPreAct~",
    grad="Input H0 C0 Weight Bias Hidden Cell BatchGate BatchCellPreAct",
    grad_outs="Hidden",
    infer=_lstm_specs,
    rows=knows_rows(Hidden="Input", Cell="Input", each="H0 C0"),
    heavy=True,
)
def lstm(
    Input: Ragged, H0: Array | None, C0: Array | None, Weight: Array, Bias: Array, *, use_peepholes: bool = True,
    is_reverse: bool = False, gate_activation: str = "sigmoid", cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
):  # fmt: skip
    """Hidden[t] = o * cellactivation_of(Cell[t]), Cell[t] = a * i + f * c, where h, c = Hidden,
    Cell[t - 1] (H0, C0, or 0, at first).

    The four parts of Input[t] + Bias + h @ Weight give, in this order, a =
    candidateactivation_of(.), i, f, o = gateactivation_of(.); with peepholes i and f also add wi *
    c and wf * c, and o adds wo * Cell[t]. Input [rows, 4D], one LoD level; H0, C0 [N, D]; Weight
    [D, 4D]; Bias [1, 4D], with peepholes [1, 7D] = bias, wi, wf, wo.
    """
    x = sequences_of("lstm", "Input", Input, 1)
    width = Weight.shape[0]
    bias = Bias.reshape(-1)
    if bias.shape[0] != (7 if use_peepholes else 4) * width:
        raise EnforceNotMet(
            f"op 'lstm' takes a Bias of {7 if use_peepholes else 4} * {width} numbers, not"
            f" {bias.shape[0]}"
        )
    peepholes = tuple(jnp.split(bias[4 * width :], 3)) if use_peepholes else ()
    gate, act = activation_of("lstm", gate_activation), activation_of("lstm", candidate_activation)
    cell_act = activation_of("lstm", cell_activation)

    def step(weight: Any, peepholes: Any, state: Any, rows: Any) -> tuple[Any, Any]:
        (h, c), (wi, wf, wo) = state, peepholes or (0, 0, 0)
        pa, pi, pf, po = jnp.split(kept(rows + h @ weight), 4, 1)
        a, i, f = act(pa), gate(pi + wi * c), gate(pf + wf * c)
        cell = a * i + f * c
        o = gate(po + wo * cell)
        shown = cell_act(cell)
        return (o * shown, cell), (o * shown, cell, jnp.concatenate([a, i, f, o], 1), shown)

    def products(weight: Any, h: Any, _: Any) -> Any:
        return h @ weight

    first = first_state("lstm", "H0", H0, x, width), first_state("lstm", "C0", C0, x, width)
    biased = x.with_rows(x.rows + bias[: 4 * width])
    hidden, cell, gates, shown = scanned(
        biased, is_reverse, step, first, Weight, peepholes, products
    )
    return (
        x.with_rows(hidden),
        x.with_rows(cell),
        batched(x, gates, is_reverse),
        batched(x, shown, is_reverse),
    )
