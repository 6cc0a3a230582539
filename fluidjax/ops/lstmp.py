"""lstmp: an LSTM along ragged sequences whose hidden state is projected to another width."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from . import loops
from .infer import Spec
from .ragged import Ragged, mask, pack, rows_of, sequences_of, view
from .registry import Array, grad_of, op
from .rnn import activation_of, batch_places, batched, first_state, scanned
from .traits import knows_rows

PROJECTIONS = {
    "identity": lambda x: x,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}


def _specs(
    Input: Spec,
    H0: Spec | None,
    C0: Spec | None,
    Weight: Spec,
    ProjWeight: Spec,
    Bias: Spec,
    **_: Any,
) -> tuple[Spec, ...]:
    width, projected = ProjWeight.shape
    if Weight.shape != (projected, 4 * width) or Input.shape[-1] not in (-1, 4 * width):
        raise ShapeError(
            "op 'lstmp' takes Input [rows, 4 * D], Weight [P, 4 * D] and ProjWeight [D, P], not"
            f" {list(Input.shape)}, {list(Weight.shape)} and {list(ProjWeight.shape)}"
        )
    rows, dtype = Input.shape[0], Input.dtype
    state = Spec((rows, width), dtype)
    return Spec((rows, projected), dtype), state, Spec((rows, 4 * width), dtype), state, state


SLOPES = {  # the derivative of an activation, from its value
    "identity": jnp.ones_like, "sigmoid": lambda y: y * (1 - y), "tanh": lambda y: 1 - y * y,
    "relu": lambda y: (y > 0).astype(y.dtype),
}  # fmt: skip


def _clipped(value: Any, bound: float) -> Any:
    """The value clipped to [-bound, bound]; unchanged if bound is 0."""
    return jnp.clip(value, -bound, bound) if bound > 0 else value


def _projected_by(proj_activation: str, cell_activation: str) -> str:
    """The activation of a projection; in 1.8.5 proj_activation only decides whether there is one."""
    if proj_activation not in PROJECTIONS:
        raise EnforceNotMet(
            f"op 'lstmp' knows no proj_activation {proj_activation!r}; it knows"
            f" {', '.join(PROJECTIONS)}"
        )
    return "identity" if proj_activation == "identity" else cell_activation


def _free(value: Any, bound: float, gradient: Any) -> Any:
    """The gradient, 0 where the value was clipped."""
    return jnp.where(jnp.abs(value) < bound, gradient, 0) if bound > 0 else gradient


def _parts(bias: Any, width: int, peepholes: bool) -> tuple[Any, tuple[Any, Any, Any]]:
    """The bias of the gates [4D], and the weights of the peepholes [D], or 0."""
    flat = bias.reshape(-1)
    if flat.shape[0] != (7 if peepholes else 4) * width:
        raise EnforceNotMet(
            f"op 'lstmp' takes a Bias of {7 if peepholes else 4} * {width} numbers, not"
            f" {flat.shape[0]}"
        )
    wi, wf, wo = jnp.split(flat[4 * width :], 3) if peepholes else (0, 0, 0)
    return flat[: 4 * width], (wi, wf, wo)


@op(
    outs="Projection Cell BatchGate~ BatchCellPreAct~ BatchHidden~",
    infer=_specs,
    rows=knows_rows(Projection="Input", Cell="Input", each="H0 C0"),
    heavy=True,
)
def lstmp(
    Input: Ragged, H0: Array | None, C0: Array | None, Weight: Array, ProjWeight: Array, Bias: Array, *,
    use_peepholes: bool = True, cell_clip: float = 0.0, proj_clip: float = 0.0, is_reverse: bool = False,
    gate_activation: str = "sigmoid", cell_activation: str = "tanh", candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
):  # fmt: skip
    """Projection[t] = cell_activation((o * cell_activation(Cell[t])) @ ProjWeight); the rest as in
    lstm, of Projection[t - 1].

    As in 1.8.5, a proj_activation of identity omits the outer activation, and any other one means
    cell_activation.

    Input [rows, 4D], one LoD level; Weight [P, 4D]; ProjWeight [D, P]; H0 [N, P], C0 [N, D]; Bias
    [1, 4D], with peepholes [1, 7D]. cell_clip, proj_clip: Cell and Projection are clipped to these
    bounds; 0: none.
    """
    x = sequences_of("lstmp", "Input", Input, 1)
    width, projected = ProjWeight.shape
    bias, peepholes = _parts(Bias, width, use_peepholes)
    gate, act = (
        activation_of("lstmp", gate_activation),
        activation_of("lstmp", candidate_activation),
    )
    cell_act = activation_of("lstmp", cell_activation)
    project = PROJECTIONS[_projected_by(proj_activation, cell_activation)]

    def step(weights: Any, peepholes: Any, state: Any, rows: Any) -> tuple[Any, Any]:
        (weight, proj_weight), (wi, wf, wo), (r, c) = weights, peepholes, state
        pa, pi, pf, po = jnp.split(rows + r @ weight, 4, 1)
        a, i, f = act(pa), gate(pi + wi * c), gate(pf + wf * c)
        cell = _clipped(a * i + f * c, cell_clip)
        o = gate(po + wo * cell)
        shown = cell_act(cell)
        hidden = o * shown
        out = _clipped(project(hidden @ proj_weight), proj_clip)
        return (out, cell), (out, cell, jnp.concatenate([a, i, f, o], 1), shown, hidden)

    first = first_state("lstmp", "H0", H0, x, projected), first_state("lstmp", "C0", C0, x, width)
    weights, biased = (Weight, ProjWeight), x.with_rows(x.rows + bias)
    outputs = scanned(biased, is_reverse, step, first, weights, peepholes)
    inner = jnp.split(
        batched(x, jnp.concatenate(outputs[2:], 1), is_reverse).rows, [4 * width, 5 * width], 1
    )
    return (
        x.with_rows(outputs[0]),
        x.with_rows(outputs[1]),
        *(x.with_rows(rows, bare=True) for rows in inner),
    )


@grad_of(
    "lstmp",
    "H0 C0 Weight ProjWeight Bias Projection Cell BatchGate BatchCellPreAct BatchHidden",
    grad_outs="Projection",
    ragged="Projection Cell",
)
def lstmp_grad(
    H0: Array | None, C0: Array | None, Weight: Array, ProjWeight: Array, Bias: Array, Projection: Ragged, Cell: Ragged,
    BatchGate: Array, BatchCellPreAct: Array, BatchHidden: Array, d_Projection: Array, *, use_peepholes: bool, cell_clip: float,
    proj_clip: float, is_reverse: bool, gate_activation: str, cell_activation: str, candidate_activation: str, proj_activation: str,
):  # fmt: skip
    """The gradients from the last step of each sequence to its first, from the forward op's
    outputs; Input is not a slot.
    """
    x, (width, projected) = Cell, ProjWeight.shape
    places, (_, (wi, wf, wo)) = batch_places(x, is_reverse), _parts(Bias, width, use_peepholes)
    projection = _projected_by(proj_activation, cell_activation)
    gate, act, cell_act, project = (
        SLOPES[n] for n in (gate_activation, candidate_activation, cell_activation, projection)
    )

    left = jnp.take(
        jnp.concatenate([rows_of(v) for v in (BatchGate, BatchCellPreAct, BatchHidden)], 1),
        places,
        axis=0,
    )
    d_rows = jnp.zeros_like(Projection.rows) if d_Projection is None else rows_of(d_Projection)
    # all at once: [longest, N, ...]
    rows = jnp.concatenate([left, Projection.rows, Cell.rows, d_rows], 1)
    cuts = np.cumsum([4 * width, width, width, projected, width])
    gates, shown, hidden, out, cell, d = jnp.split(
        jnp.moveaxis(view(x.with_rows(rows), is_reverse), 1, 0), cuts, 2
    )

    def before(cells: Any, first: Any) -> Any:
        return jnp.concatenate([first[None], cells[:-1]])

    out_before = before(out, first_state("lstmp_grad", "H0", H0, x, projected))
    cell_before = before(cell, first_state("lstmp_grad", "C0", C0, x, width))

    def back(carry: Any, given: Any) -> tuple[Any, Any]:
        d_out, d_cell = carry
        d, alive, (a, i, f, o), shown, out, cell, cell_before = given
        d_z = _free(out, proj_clip, d + d_out) * project(out)
        d_hidden = d_z @ ProjWeight.T
        d_o = d_hidden * shown * gate(o)
        d_c = _free(cell, cell_clip, d_cell + d_hidden * o * cell_act(shown) + d_o * wo)
        d_a, d_i, d_f = d_c * i * act(a), d_c * a * gate(i), d_c * cell_before * gate(f)
        d_gates = jnp.concatenate([d_a, d_i, d_f, d_o], 1)
        new = d_gates @ Weight.T, d_c * f + d_i * wi + d_f * wf
        carry = jax.tree.map(lambda n, old: jnp.where(alive[:, None], n, old), new, carry)
        peepholes = [d_i * cell_before, d_f * cell_before, d_o * cell] if use_peepholes else []
        return carry, tuple(
            jnp.where(alive[:, None], v, 0)
            for v in (jnp.concatenate([d_gates, *peepholes], 1), d_z)
        )

    zero = jnp.zeros((x.sequences, projected), x.dtype), jnp.zeros((x.sequences, width), x.dtype)
    given = d, mask(x).T, jnp.split(gates, 4, 2), shown, out, cell, cell_before
    (d_h0, d_c0), (d_biases, d_z) = loops.scan(back, zero, given, reverse=True)
    d_bias, d_gates = d_biases.sum((0, 1)).reshape(Bias.shape), d_biases[..., : 4 * width]
    d_weight = jnp.einsum("tnp,tng->pg", out_before, d_gates)
    d_project = jnp.einsum("tnd,tnp->dp", hidden, d_z)
    d_input = x.with_rows(pack(x, jnp.moveaxis(d_gates, 0, 1), is_reverse))
    return d_input, d_h0, d_c0, d_weight, d_project, d_bias
