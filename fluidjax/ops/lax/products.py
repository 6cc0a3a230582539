"""Products of matrices, convolutions, Fourier transforms."""

from __future__ import annotations

from jax import lax

from ..registry import Array, Ints, Sizes
from .declare import dtype, lax_op, pairs
from .declare import precision as precision_of


@lax_op("dot_general", grad="Lhs Rhs", heavy=True)
def dot_general(
    Lhs: Array,
    Rhs: Array,
    *,
    lhs_contract: Ints = (),
    rhs_contract: Ints = (),
    lhs_batch: Ints = (),
    rhs_batch: Ints = (),
    precision: str = "",
    preferred_element_type: str = "",
):
    """Out[batch..., rest of Lhs..., rest of Rhs...] = the sum over the contracted axes of Lhs *
    Rhs.
    """
    numbers = (tuple(lhs_contract), tuple(rhs_contract)), (tuple(lhs_batch), tuple(rhs_batch))
    return lax.dot_general(
        Lhs, Rhs, numbers, precision_of(precision), dtype(preferred_element_type)
    )


@lax_op("conv_general_dilated", grad="Lhs Rhs", heavy=True)
def conv_general_dilated(
    Lhs: Array,
    Rhs: Array,
    *,
    spec: str,
    window_strides: Ints,
    padding: Sizes,
    lhs_dilation: Ints = (),
    rhs_dilation: Ints = (),
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: str = "",
    preferred_element_type: str = "",
):
    """Out = Lhs convolved with the kernel Rhs. spec ``NHWC,HWIO->NHWC`` names the axes of Lhs, Rhs
    and Out.

    padding: before and after, of each axis in turn. Dilations that are not given are 1.
    """
    operands, _, out = spec.partition("->")
    return lax.conv_general_dilated(
        Lhs,
        Rhs,
        tuple(window_strides),
        pairs(padding),
        tuple(lhs_dilation) or None,
        tuple(rhs_dilation) or None,
        (*operands.split(","), out),
        feature_group_count,
        batch_group_count,
        precision_of(precision),
        dtype(preferred_element_type),
    )


@lax_op("ragged_dot_general", grad="Lhs Rhs GroupSizes", nograd="GroupSizes", heavy=True)
def ragged_dot_general(
    Lhs: Array,
    Rhs: Array,
    GroupSizes: Array,
    *,
    lhs_contract: Ints = (),
    rhs_contract: Ints = (),
    lhs_batch: Ints = (),
    rhs_batch: Ints = (),
    lhs_ragged: Ints = (),
    rhs_group: Ints = (),
    precision: str = "",
    preferred_element_type: str = "",
):
    """Out = Lhs times Rhs as in jax.dot_general, where each group of rows of Lhs (of the given
    sizes) meets one entry of Rhs.
    """
    numbers = lax.RaggedDotDimensionNumbers(
        ((tuple(lhs_contract), tuple(rhs_contract)), (tuple(lhs_batch), tuple(rhs_batch))),
        tuple(lhs_ragged),
        tuple(rhs_group),
    )
    kinds = precision_of(precision), dtype(preferred_element_type)
    return lax.ragged_dot_general(Lhs, Rhs, GroupSizes, numbers, *kinds)


@lax_op("fft", grad="X", heavy=True)
def fft(X: Array, *, fft_type: str, fft_lengths: Sizes):
    """Out = the Fourier transform of X over its last axes: FFT, IFFT, RFFT or IRFFT."""
    return lax.fft(X, fft_type, tuple(fft_lengths))
