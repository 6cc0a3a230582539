"""pyramid_hash: embeddings of the n-grams of sequences, each assembled from pieces of one vector,
selected by hashes.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import FluidValueError, ShapeError, UnsupportedError
from . import loops
from .definition import Unwritten
from .infer import Spec
from .ragged import Ragged, bounded, made_key, sequences_of, some_rows
from .registry import Array, op
from .traits import FREE, Attrs, knows_rows, rows_by
from .xxhash import xxh32

_MOST = 2**31 - 1  # RAND_MAX


def _spec(
    X: Spec, W: Spec, WhiteList: Spec, BlackList: Spec, **attrs: Any
) -> tuple[Spec, None, Spec]:
    width, piece, space = (attrs[n] for n in ("num_emb", "rand_len", "space_len"))
    if X.ndim != 2:
        raise ShapeError(f"op 'pyramid_hash' takes ids X [rows, 1], not {list(X.shape)}")
    if piece <= 0 or width <= 0 or width % piece or space <= 0:
        raise FluidValueError(
            "op 'pyramid_hash' takes a num_emb that pieces of rand_len make up and a space_len"
            f" above 0, not {width}, {piece} and {space}"
        )
    if tuple(W.shape) != (space + piece, 1):
        raise ShapeError(
            f"op 'pyramid_hash' takes W [space_len + rand_len, 1] = [{space + piece}, 1], not"
            f" {list(W.shape)}"
        )
    if attrs["use_filter"] and (attrs["white_list_len"] or attrs["black_list_len"]):
        raise UnsupportedError(
            "op 'pyramid_hash' with use_filter and lists needs Bloom filters, which are not"
            " supported; set use_filter = False"
        )
    return Spec((-1, width), W.dtype), None, Spec(X.shape, "float32")


def _levels(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": 1, "DropPos": 0, "X_Temp_Out": 0}


@op(
    outs="Out DropPos X_Temp_Out~",
    infer=_spec,
    rows=knows_rows(_levels),
    bounds=FREE,
    write_grad=Unwritten(
        "its gradient op would change W by itself, at the rate lr; leave stop_gradient of its input"
        " True"
    ),
    chosen=rows_by(
        "X", "pyramid_layer - 1 rows for each of X, and one for each sequence", exact=False
    ),
)
def pyramid_hash(
    X: Ragged, W: Array, WhiteList: Array, BlackList: Array, *, num_emb: int = 0, space_len: int = 0, pyramid_layer: int = 2,
    rand_len: int = 0, drop_out_percent: float = 0.0, is_training: int = 0, use_filter: bool = True, white_list_len: int = 0,
    black_list_len: int = 0, seed: int = 0, lr: float = 0.0, distribute_update_vars: str = "",
):  # fmt: skip
    """Out [rows, num_emb] = the n-grams of 2 to pyramid_layer ids of each sequence of X [N, 1],
    short ones first; zeros if there are none.

    Piece i of an n-gram's row is W[h : h + rand_len], h = xxHash32 of the ids (as float32) with the
    seed i * rand_len, modulo space_len; W [space_len + rand_len, 1]. With is_training, an n-gram is
    dropped if a number from C's rand_r (seeded by `seed`, so equal in every step) is below
    drop_out_percent; else Out is multiplied by drop_out_percent, as in 1.8.5. DropPos [N *
    pyramid_layer, 1]: 1 for each kept n-gram, 0 for dropped ones and padding. lr and
    distribute_update_vars are ignored: W is not trained. For ids [N, k], the first N in row order
    are used, as in 1.8.5.
    """
    x = sequences_of("pyramid_hash", "X", X, 1)
    every = x.rows.reshape(-1).astype(jnp.float32)
    ids = every[: x.capacity]
    count, sequences, layers = x.capacity, x.sequences, max(pyramid_layer - 1, 0)
    inside = x.sequence()
    at = jnp.arange(count, dtype=jnp.int32)
    spans = jnp.arange(1, layers + 1, dtype=jnp.int32)[:, None]
    fits = (inside < sequences) & (at + spans < x.offsets[-1][jnp.minimum(inside + 1, sequences)])
    rows = _rows(
        lax.bitcast_convert_type(ids, jnp.uint32),
        W.reshape(-1),
        layers,
        num_emb,
        rand_len,
        space_len,
    )
    # by sequence, then layer, then place
    order = jnp.argsort(jnp.where(fits, inside, sequences).reshape(-1), stable=True)
    there, owner = fits.reshape(-1)[order], jnp.broadcast_to(inside, fits.shape).reshape(-1)[order]
    stays = there & (_random(seed, there) >= drop_out_percent) if is_training else there
    found = (
        jnp.zeros((sequences + 1,), jnp.int32)
        .at[jnp.where(stays, owner, sequences)]
        .add(1)[:sequences]
    )
    lengths = jnp.maximum(found, 1)
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)])
    before = (
        jnp.cumsum(stays, dtype=jnp.int32)
        - 1
        - (jnp.cumsum(found, dtype=jnp.int32) - found)[jnp.minimum(owner, sequences - 1)]
    )
    room = count * layers + sequences
    place = jnp.where(stays, offsets[jnp.minimum(owner, sequences - 1)] + before, room)
    out = (
        jnp.zeros((room, num_emb), W.dtype)
        .at[place]
        .set(rows.reshape(-1, num_emb)[order], mode="drop")
    )
    out = out if is_training else out * np.asarray(drop_out_percent, W.dtype)
    flags = jnp.concatenate([stays, jnp.zeros((count,), bool)])[: count * pyramid_layer].astype(
        jnp.int32
    )[:, None]
    marks = some_rows(flags, x.count * pyramid_layer, made_key()) if x.padded else flags
    return (
        bounded(out, offsets, max(x.longest[-1] * layers, 1)),
        marks,
        x.with_rows(every.reshape(x.rows.shape), bare=True),
    )


def _rows(words: Any, weight: Any, layers: int, width: int, piece: int, space: int) -> Any:
    """The row of the n-gram that begins at each position, for each layer: [layers, N, width]."""
    found = []
    for n in range(2, layers + 2):
        grams = jnp.stack([jnp.roll(words, -i) for i in range(n)], -1)
        first = jnp.stack(
            [xxh32(grams, begin) for begin in range(0, width, piece)], -1
        ) % np.uint32(space)
        taken = first[..., None].astype(jnp.int32) + jnp.arange(piece, dtype=jnp.int32)
        found.append(weight[taken].reshape(len(words), width))
    return jnp.stack(found) if found else jnp.zeros((0, len(words), width), weight.dtype)


def _random(seed: int, there: Any) -> Any:
    """C's rand_r / RAND_MAX for each existing element, in order: float64."""

    def step(state: Any, here: Any) -> tuple[Any, Any]:
        now, number = state, jnp.zeros((), jnp.uint32)
        for bits in (2048, 1024, 1024):
            now = now * np.uint32(1103515245) + np.uint32(12345)
            number = (number << np.uint32(10)) ^ ((now // np.uint32(65536)) % np.uint32(bits))
        return jnp.where(here, now, state), number

    _, numbers = loops.scan(step, jnp.asarray(seed % 2**32, jnp.uint32), there)
    return numbers.astype(np.float64) / _MOST
