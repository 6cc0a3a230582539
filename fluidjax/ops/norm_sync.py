"""batch_norm with the statistics of all ranks together (ring.py)."""

from __future__ import annotations

from typing import Any

from jax import lax

from ..errors import ShapeError
from .infer import Spec
from .norm import (
    BN_INPLACE,
    BN_NOGRAD,
    BN_OUTS,
    GLOBAL,
    WHEN_GLOBAL,
    affine,
    batch_norm,
    centred_grad,
    channels_of,
    used_statistics,
)
from .ragged import Ragged, like, rows_of
from .registry import Array, grad_of, op
from .ring import mean_over
from .statistics import STATISTICS, keeps_statistics
from .target import PLAIN, Target
from .traits import collective, knows_rows


def _spec(
    X: Spec,
    Scale: Spec,
    Bias: Spec,
    Mean: Spec,
    Variance: Spec,
    MomentumTensor: Spec | None,
    **attributes: Any,
) -> tuple[Spec | None, ...]:
    """The shapes of batch_norm: there are no ranks while a program is built."""
    channels = X.shape[-1 if attributes["data_layout"] == "NHWC" else 1] if X.ndim > 1 else -1
    for slot, value in {"Scale": Scale, "Bias": Bias, "Mean": Mean, "Variance": Variance}.items():
        if len(value.shape) != 1 or (channels >= 0 and value.shape[0] not in (-1, channels)):
            raise ShapeError(
                f"op 'sync_batch_norm' takes a {slot} of the {channels} channels of"
                f" X{list(X.shape)}, not {list(value.shape)}"
            )
    return X, Mean, Variance, Mean, Variance, None


@op(
    outs=BN_OUTS,
    inplace=BN_INPLACE,
    infer=_spec,
    rows=knows_rows(Y="X", each=""),
    ranks=collective(agree=("SavedMean", "SavedVariance"), MeanOut="Mean", VarianceOut="Variance"),
    unchanged=STATISTICS,
)
def sync_batch_norm(
    X: Array | Ragged, Scale: Array, Bias: Array, Mean: Array, Variance: Array, MomentumTensor: Array | None, *,
    is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-5, data_layout: str = "NCHW",
    use_global_stats: bool = False, trainable_statistics: bool = False, target: Target = PLAIN,
):  # fmt: skip
    """Y = batch_norm(X) with mean and variance over the batches of all ranks; slots and attributes
    are batch_norm's.
    """
    options = {
        "data_layout": data_layout,
        "trainable_statistics": trainable_statistics,
        "epsilon": epsilon,
    }
    if keeps_statistics(is_test, use_global_stats, trainable_statistics):
        return batch_norm(
            X, Scale, Bias, Mean, Variance, MomentumTensor, is_test=is_test, momentum=momentum,
            use_global_stats=use_global_stats, target=target, **options,
        )  # fmt: skip
    ch = channels_of(X, data_layout)
    x = rows_of(X).astype(Variance.dtype)
    mean = mean_over(ch.sum(x) / ch.count)
    variance = mean_over(ch.sum(lax.square(x - ch.spread(mean))) / ch.count)
    inverse = lax.rsqrt(variance + epsilon)
    keep = momentum if MomentumTensor is None else MomentumTensor.reshape(())
    new_mean, new_variance = (
        old * keep + now * (1 - keep) for old, now in ((Mean, mean), (Variance, variance))
    )
    y = affine(x, mean, inverse, Scale, Bias, ch, target).astype(X.dtype)
    return like(X, y), new_mean, new_variance, mean, inverse, None


@grad_of(
    "sync_batch_norm", "X Scale Bias SavedMean SavedVariance ReserveSpace", nograd=BN_NOGRAD, grad_outs="Y",
    wiring=GLOBAL, when=WHEN_GLOBAL,
    ranks=collective(),
)  # fmt: skip
def sync_batch_norm_grad(
    X, Scale, Bias, SavedMean, SavedVariance, ReserveSpace, d_Y, Mean, Variance, *, is_test, epsilon, data_layout,
    use_global_stats, trainable_statistics,
):  # fmt: skip
    """X@GRAD = batch_norm's with its two sums over all ranks; Scale@GRAD and Bias@GRAD are this
    rank's share.
    """
    if d_Y is None:
        return None, None, None
    ch = channels_of(X, data_layout)
    mean, inverse = used_statistics(
        Mean, Variance, SavedMean, SavedVariance, epsilon, use_global_stats
    )
    n = (rows_of(X).astype(mean.dtype) - ch.spread(mean)) * ch.spread(inverse)
    fixed = keeps_statistics(is_test, use_global_stats, trainable_statistics)
    d_x, d_scale, d_bias = centred_grad(
        n, rows_of(d_Y).astype(mean.dtype), Scale, inverse, fixed, ch, mean_over
    )
    return d_x.astype(X.dtype), d_scale, d_bias
