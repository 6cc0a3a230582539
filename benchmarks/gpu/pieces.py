"""Single ops and their gradients beside the same in plain JAX: where a step that is slower than
flax's may lose its time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import fluidjax as fluid
from fluidjax import layers

from .bench import Fluid, Side, choose, compared, kernels, timed, tiny
from .records import Found

SLOW = 1.05  # times as long as plain JAX: then the kernels of both are listed
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Piece:
    """layer: what appends the op to x; plain: the same of arrays, given the layer's parameters too.
    The sum of squares of the result is differentiated, so that nothing is constant."""

    name: str
    shape: tuple[int, ...]
    layer: Callable[[Any], Any]
    plain: Callable[[Any, Any], Any]
    dtype: str = "float32"


def _pool(size: int, stride: int, pad: int) -> Piece:
    def plain(x: Any, _w: Any) -> Any:
        pads = ((0, 0), (0, 0), (pad, pad), (pad, pad))
        return lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), pads
        )

    shape = choose((64, 64, 112, 112), (2, 2, 8, 8))
    return Piece(
        f"max pool {size}x{size}, stride {stride}",
        shape,
        lambda x: layers.pool2d(x, size, "max", stride, pad),
        plain,
    )


def _norm(last: bool, dtype: str = "float32") -> Piece:
    shape = choose((64, 256, 56, 56), (2, 4, 4, 4))
    axes = (0, 1, 2) if last else (0, 2, 3)
    shape = tuple(np.moveaxis(np.empty(shape, np.bool_), 1, -1).shape) if last else shape
    spread = [1, 1, 1, -1] if last else [1, -1, 1, 1]

    def plain(x: Any, w: Any) -> Any:
        wide = x.astype(jnp.float32)
        mean, square = wide.mean(axes), (wide * wide).mean(axes)
        rate = lax.rsqrt(square - mean * mean + 1e-5) * w[0]
        return ((wide - mean.reshape(spread)) * rate.reshape(spread) + w[1].reshape(spread)).astype(
            x.dtype
        )

    def layer(x: Any) -> Any:
        return layers.batch_norm(x, data_layout="NHWC" if last else "NCHW")

    name = f"batch_norm {'NHWC' if last else 'NCHW'}, {dtype}"
    return Piece(name, shape, layer, plain, dtype)


def _conv(dtype: str, groups: int = 1) -> Piece:
    batch, channels, side = choose((64, 128, 28), (2, 4, 6))
    groups = choose(groups, min(groups, 4))

    def plain(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w[0].astype(x.dtype), (1, 1), ((1, 1), (1, 1)), feature_group_count=groups
        )

    def layer(x: Any) -> Any:
        return layers.conv2d(x, channels, 3, padding=1, groups=groups, bias_attr=False)

    name = f"convolution 3x3{f' of {groups} groups' if groups > 1 else ''}, {dtype}"
    return Piece(name, (batch, channels, side, side), layer, plain, dtype)


def _softmax() -> Piece:
    rows, classes = choose((8192, 32_000), (4, 8))

    def plain(x: Any, _w: Any) -> Any:
        labels = jnp.arange(rows) % classes
        return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1)

    def layer(x: Any) -> Any:
        labels = layers.assign((np.arange(rows) % classes)[:, None].astype("int64"))
        return layers.softmax_with_cross_entropy(x, labels)

    return Piece("softmax_with_cross_entropy, 32,000 classes", (rows, classes), layer, plain)


def _layer_norm() -> Piece:
    def plain(x: Any, w: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(jnp.square(x - mean).mean(-1, keepdims=True) + 1e-5) * w[
            0
        ] + w[1]

    rows, width = choose((8192, 1024), (4, 8))
    return Piece(
        "layer_norm", (rows, width), lambda x: layers.layer_norm(x, begin_norm_axis=1), plain
    )


def _dropout() -> Piece:
    def plain(x: Any, _w: Any) -> Any:
        return jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x, 0)

    return Piece("dropout", choose((8192, 4096), (4, 8)), lambda x: layers.dropout(x, 0.5), plain)


def _gelu() -> Piece:
    return Piece(
        "gelu",
        choose((8192, 4096), (4, 8)),
        layers.gelu,
        lambda x, _w: jax.nn.gelu(x, approximate=False),
    )


def _reduced_max() -> Piece:
    return Piece(
        "reduce_max",
        choose((8192, 4096), (4, 8)),
        lambda x: layers.reduce_max(x, dim=1),
        lambda x, _w: x.max(1),
    )


PIECES: tuple[Callable[[], Piece], ...] = (
    lambda: _pool(3, 2, 1), lambda: _pool(2, 2, 0), lambda: _norm(False), lambda: _norm(True), lambda: _norm(False, "float16"),
    lambda: _conv("float32"), lambda: _conv("float16"), lambda: _conv("float32", 32), lambda: _conv("float32", 128), _softmax,
    _layer_norm, _dropout, _gelu, _reduced_max,
)  # fmt: skip


def _ours(piece: Piece, x: Any) -> tuple[Side, list[Any]]:
    """With the parameters that the layer made."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        given = fluid.data("x", list(piece.shape))
        given.stop_gradient = False
        h = given if piece.dtype == "float32" else layers.cast(given, piece.dtype)
        out = piece.layer(h)
        out = layers.cast(out, "float32") if piece.dtype != "float32" else out
        loss = layers.reduce_sum(layers.square(out))
        parameters = [p for p in main.all_parameters() if p.trainable]
        slopes = fluid.gradients([loss], [given, *parameters])
    net = Fluid(main, startup, [loss, *slopes])
    return net.side("ours", {"x": x}), [net.scope.find_var(p.name).value for p in parameters]


def _plain(piece: Piece, x: Any, weights: list[Any]) -> Side:
    def loss(x: Any, weights: Any) -> Any:
        return jnp.sum(jnp.square(piece.plain(x.astype(piece.dtype), weights).astype(jnp.float32)))

    step = jax.jit(jax.value_and_grad(loss, (0, 1)))
    return Side("plain JAX", lambda x: step(x, weights), jax.device_put(x))


def pieces() -> Iterator[Found]:
    """Each with its gradient, in turns."""
    made, failed = [], {}
    names = [name for name in os.environ.get("PIECES", "").split(",") if name]
    for piece in [make() for make in PIECES]:
        if names and not any(name in piece.name for name in names):
            continue
        x = np.random.default_rng(0).standard_normal(piece.shape, dtype=np.float32)
        try:
            ours, weights = _ours(piece, x)
            sides = [ours, _plain(piece, x, weights)]
            for side in sides:
                side.prepare()
            (a, slope, *_), (b, (other, _)) = (side.step(side.feed) for side in sides)
            far = np.linalg.norm(np.asarray(slope) - np.asarray(other)) / np.linalg.norm(
                np.asarray(other)
            )
            made.append(
                (
                    piece,
                    sides,
                    {
                        "loss_apart": abs(float(np.asarray(a).reshape(())) / float(b) - 1),
                        "gradient_apart": far,
                    },
                )
            )
        except Exception as error:  # the others are measured all the same
            failed[piece.name] = f"{type(error).__name__}: {error}"[:300]
    yield {}
    for piece, sides, apart in made:
        rows = compared(timed(sides, turns=choose(5, 1), turn=choose(0.05, 0.001)), "plain JAX")
        yield {
            "piece": piece.name,
            "ms": {n: r["ms"] for n, r in rows.items()},
            "ratio": rows["ours"]["ratio"],
            **apart,
        }
        for side in sides if rows["ours"]["ratio"] > SLOW and not tiny() else ():
            yield {"kernels": f"{piece.name}, {side.name}", **kernels(side)}
    if failed:
        yield {"failed_pieces": failed}
