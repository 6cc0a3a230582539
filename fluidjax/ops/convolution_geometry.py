"""The static side of a convolution: its shapes and how the filter moves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from .concrete import are_numbers
from .window import Pads


@dataclass(frozen=True)
class Geometry:
    """The static side of a convolution of x [N, C, ...] (or, last, [N, ..., C]) with w [O, C /
    groups, ...].

    The paddings leave room for at least one position of the filter.
    """

    x: tuple[int, ...]
    w: tuple[int, ...]
    strides: tuple[int, ...]
    pads: Pads
    dilations: tuple[int, ...]
    groups: int
    last: bool

    @cached_property
    def known(self) -> bool:
        """Whether all sizes are numbers. A step exported for any batch has symbolic ones, which
        cannot be compared.
        """
        return are_numbers((*self.x, *self.w))

    @property
    def first(self) -> int:
        """The first spatial axis."""
        return 1 if self.last else 2

    @property
    def channels(self) -> int:
        return self.x[-1 if self.last else 1]

    @property
    def sides(self) -> tuple[int, ...]:
        """The input's spatial sizes."""
        return self.x[self.first : self.first + len(self.strides)]

    @cached_property
    def outs(self) -> tuple[int, ...]:
        """The output's spatial sizes."""
        cells = zip(self.sides, self.pads, self.dilations, self.w[2:], self.strides, strict=True)
        return tuple((n + lo + hi - d * (k - 1) - 1) // s + 1 for n, (lo, hi), d, k, s in cells)

    @property
    def y(self) -> tuple[int, ...]:
        """The output's shape."""
        return (
            (self.x[0], *self.outs, self.w[0]) if self.last else (self.x[0], self.w[0], *self.outs)
        )

    @property
    def window(self) -> int:
        """Cells of the filter."""
        return math.prod(self.w[2:])

    @property
    def pixels(self) -> int:
        """Cells of one channel of the output, in all samples."""
        return self.x[0] * math.prod(self.outs)

    def sample(self) -> Geometry:
        """The same of one sample."""
        return replace(self, x=(1, *self.x[1:]))

    def block(self, parts: int) -> Geometry:
        """The same of one of `parts` equal parts of the groups, channels first."""
        x = (self.x[0], self.channels // parts, *self.sides)
        return replace(
            self, x=x, w=(self.w[0] // parts, *self.w[1:]), groups=self.groups // parts, last=False
        )

    def of_input_gradient(self) -> Geometry:
        """The geometry of the convolution that turns the output's gradient into the input's, for a
        depthwise convolution at stride 1.
        """
        reach = [d * (k - 1) for d, k in zip(self.dilations, self.w[2:], strict=True)]
        pads = tuple((r - lo, r - hi) for r, (lo, hi) in zip(reach, self.pads, strict=True))
        return replace(self, x=self.y, pads=pads)

    def names(self) -> tuple[str, str, str]:
        """Input, filter and output layout as jax.lax names them."""
        letters = "DHW"[-len(self.strides) :]
        layout = f"N{letters}C" if self.last else f"NC{letters}"
        return layout, f"OI{letters}", layout


def few_pixels(geo: Geometry) -> bool:
    """Whether a product should have the pixels as rows: if they are fewer than a filter's columns."""
    return 2 * geo.pixels <= geo.window * geo.w[1]
