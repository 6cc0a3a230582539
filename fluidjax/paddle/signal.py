"""paddle.signal: spectra of overlapping frames of signals, and signals from such spectra."""

from __future__ import annotations

from typing import Any

from .. import layers
from ..base.dtypes import COMPLEX_OF, REAL_OF
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, one_of, require, variable
from .nn.functional import pad


def _sizes(n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    require(hop > 0, f"hop_length is above 0, not {hop}")
    require(0 < width <= n_fft, f"win_length lies between 1 and n_fft = {n_fft}, unlike {width}")
    return hop, width


def _window(window: Variable | None, width: int, n_fft: int, dtype: str) -> Variable:
    """The window centred in n_fft numbers, padded with zeros."""
    if window is None:
        window = layers.fill_constant([width], dtype, 1.0)
    require(
        list(window.shape) == [width],
        f"the window has shape {list(window.shape)}, but win_length is {width}",
    )
    before = (n_fft - width) // 2
    return window if width == n_fft else layers.pad(window, [before, n_fft - width - before])


def stft(
    x: Variable, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Variable | None = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool = True, name: str | None = None,
) -> Variable:  # fmt: skip
    """The spectra [..., frequencies, frames] of frames of n_fft numbers of signals [..., time], one
    every hop_length (default n_fft // 4) numbers, each multiplied by `window` (default ones).

    center: n_fft // 2 numbers are added on both sides, by pad_mode "reflect" or "constant".
    normalized: divided by sqrt(n_fft). onesided: only the first n_fft // 2 + 1 frequencies. Raises
    FluidValueError for sizes that do not fit, FluidTypeError for dtypes other than float32 and
    float64.
    """
    one_of(pad_mode, "pad_mode", "stft", ("reflect", "constant"))
    require(
        x.ndim in (1, 2),
        f"stft takes signals [time] or [batch, time], but {x.name!r} has shape {list(x.shape)}",
    )
    hop, width = _sizes(n_fft, hop_length, win_length)
    real = str(variable(x, "x", "stft", COMPLEX_OF).desc.dtype)
    rows = layers.unsqueeze(x, [0]) if x.ndim == 1 else x
    if center:
        rows = layers.squeeze(
            pad(layers.unsqueeze(rows, [1]), [n_fft // 2, n_fft // 2], pad_mode, data_format="NCL"),
            [1],
        )
    attrs: dict[str, Any] = {"frame_length": n_fft, "hop_length": hop, "axis": -1}
    frames = append(LayerHelper("frame"), {"X": rows}, {"Out": x.dtype}, attrs)
    frames = layers.elementwise_mul(
        layers.transpose(frames, [0, 2, 1]), _window(window, width, n_fft, real)
    )
    attrs = {
        "axes": [2],
        "normalization": "ortho" if normalized else "backward",
        "forward": True,
        "onesided": onesided,
    }
    out = append(LayerHelper("fft_r2c"), {"X": frames}, {"Out": COMPLEX_OF[real]}, attrs)
    out = _shaped("transpose2", out, axis=[0, 2, 1])
    return _shaped("squeeze2", out, axes=[0]) if x.ndim == 1 else out


def _shaped(kind: str, x: Variable, **attrs: Any) -> Variable:
    """An op that moves elements, also of complex numbers, which Fluid's layers refuse."""
    return append(
        LayerHelper(kind), {"X": x}, {"Out": x.dtype, "XShape": x.dtype}, attrs, stop="XShape"
    )[0]


def istft(
    x: Variable, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Variable | None = None,
    center: bool = True, normalized: bool = False, onesided: bool = True, length: int | None = None, return_complex: bool = False,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """The signals [..., time] whose spectra by stft, with the same arguments, are x [...,
    frequencies, frames].

    length: the length of the signals. Raises FluidValueError for sizes that do not fit, and for
    return_complex with onesided, FluidTypeError for spectra that are not complex.
    """
    require(
        x.ndim in (2, 3),
        f"istft takes spectra [frequencies, pieces] or a batch of them, but {x.name!r} has shape"
        f" {list(x.shape)}",
    )
    require(
        not (return_complex and onesided),
        "istft gives complex signals of all frequencies only; give onesided=False",
    )
    hop, width = _sizes(n_fft, hop_length, win_length)
    wanted = n_fft // 2 + 1 if onesided else n_fft
    require(
        x.shape[-2] == wanted,
        f"istft takes {wanted} frequencies for n_fft = {n_fft}, but {x.name!r} has {x.shape[-2]}",
    )
    kind = str(variable(x, "x", "istft", REAL_OF).desc.dtype)
    real = REAL_OF[kind]
    spectra = _shaped(
        "transpose2", _shaped("unsqueeze2", x, axes=[0]) if x.ndim == 2 else x, axis=[0, 2, 1]
    )
    pieces = _pieces(spectra, n_fft, normalized, onesided, return_complex, real)
    shape = _window(window, width, n_fft, real)
    if return_complex:
        zeros = layers.full_like(shape, 0.0)
        weighted = layers.elementwise_mul(
            pieces, append(LayerHelper("complex"), {"X": shape, "Y": zeros}, {"Out": kind})
        )
    else:
        weighted = layers.elementwise_mul(pieces, shape)
    count = x.shape[-1]
    out = _overlapped(_shaped("transpose2", weighted, axis=[0, 2, 1]), hop)
    squares = layers.expand(layers.unsqueeze(layers.square(shape), [1]), [1, count])
    cover = _overlapped(squares, hop)
    total = (count - 1) * hop + n_fft
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else total - first
    out, cover = layers.slice(out, [1], [first], [last]), layers.slice(cover, [0], [first], [last])
    if return_complex:
        cover = append(
            LayerHelper("complex"), {"X": cover, "Y": layers.full_like(cover, 0.0)}, {"Out": kind}
        )
    out = layers.elementwise_div(out, cover)
    return _shaped("squeeze2", out, axes=[0]) if x.ndim == 2 else out


def _pieces(
    spectra: Variable, n_fft: int, normalized: bool, onesided: bool, return_complex: bool, real: str
) -> Variable:
    """The inverse transforms along the last axis."""
    attrs: dict[str, Any] = {
        "axes": [2],
        "normalization": "ortho" if normalized else "backward",
        "forward": False,
    }
    if return_complex:
        return append(LayerHelper("fft_c2c"), {"X": spectra}, {"Out": spectra.dtype}, attrs)
    if not onesided:
        spectra = layers.slice(spectra, [2], [0], [n_fft // 2 + 1])
    return append(
        LayerHelper("fft_c2r"), {"X": spectra}, {"Out": real}, {**attrs, "last_dim_size": n_fft}
    )


def _overlapped(pieces: Variable, hop: int) -> Variable:
    return append(
        LayerHelper("overlap_add"),
        {"X": pieces},
        {"Out": pieces.dtype},
        {"hop_length": hop, "axis": -1},
    )


__all__ = ["istft", "stft"]
