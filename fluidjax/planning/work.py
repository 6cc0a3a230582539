"""Operations and bytes of a traced function, counted from its equations; unneeded equations are
left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.core import Literal

_ARITHMETIC = frozenset(
    "add add_any sub mul div max min neg abs sign floor ceil round rem pow integer_pow sqrt rsqrt"
    " exp exp2 expm1 log log1p tanh logistic erf erfc erf_inv sin cos select_n square".split()
)
_REDUCTIONS = frozenset(
    "reduce_sum reduce_max reduce_min reduce_prod argmax argmin reduce_window_sum reduce_window_max"
    " cumsum".split()
)


@dataclass(frozen=True)
class Work:
    """flops: of convolutions and products, by dtype. others: of what computes element by element,
    one each, reductions included.

    traffic: bytes that products and convolutions read and write, and look-ups and scattered rows:
    what has to pass through a device's memory even where all else is fused. open_loops: loops whose
    number of iterations is data; they count as one.
    """

    flops: Mapping[str, float]
    others: float
    traffic: float
    open_loops: int = 0

    @property
    def total(self) -> float:
        return sum(self.flops.values()) + self.others

    def __sub__(self, less: Work) -> Work:
        """What is left without a part of it."""
        flops = {d: f - less.flops.get(d, 0.0) for d, f in self.flops.items()}
        return Work(
            flops,
            self.others - less.others,
            self.traffic - less.traffic,
            self.open_loops - less.open_loops,
        )

    def __mul__(self, times: float) -> Work:
        """The operations done so many times; what has to pass through memory stays the least."""
        return Work(
            {d: f * times for d, f in self.flops.items()},
            self.others * times,
            self.traffic,
            self.open_loops,
        )


def count(traced: Any) -> Work:
    """The work of a traced function, given its jaxpr."""
    found = _Count()
    whole = traced.jaxpr
    found.walk(whole, [True] * len(whole.outvars), 1)
    return Work(dict(found.flops), found.others, found.traffic, found.open_loops)


class _Count:
    def __init__(self) -> None:
        self.flops: defaultdict[str, float] = defaultdict(float)
        self.others = 0.0
        self.traffic = 0.0
        self.open_loops = 0
        # values that depend on the platform a step is compiled for
        self.platforms: set[Any] = set()

    def walk(self, body: Any, wanted: Sequence[bool], times: int) -> list[bool]:
        """Count the equations that the wanted results need, last first; which arguments those
        need.
        """
        needed = {
            v
            for v, want in zip(body.outvars, wanted, strict=True)
            if want and not isinstance(v, Literal)
        }
        self.platforms.update(
            v for eqn in body.eqns if eqn.primitive.name == "platform_index" for v in eqn.outvars
        )
        for eqn in reversed(body.eqns):
            outs = [v in needed for v in eqn.outvars]
            if any(outs) or eqn.effects:
                reads = self._equation(eqn, outs, times)
                needed.update(
                    v
                    for v, read in zip(eqn.invars, reads, strict=True)
                    if read and not isinstance(v, Literal)
                )
        return [v in needed for v in body.invars]

    def _equation(self, eqn: Any, outs: list[bool], times: int) -> list[bool]:
        name, everything = eqn.primitive.name, [True] * len(eqn.invars)
        if name == "scan":
            self._all(eqn.params["jaxpr"], times * eqn.params["length"])
        elif name == "while":
            self.open_loops += 1
            self._all(eqn.params["cond_jaxpr"], times)
            self._all(eqn.params["body_jaxpr"], times)
        elif name == "cond":
            by_platform = eqn.invars[0] in self.platforms
            self._one_of(eqn.params["branches"], outs, times, min if by_platform else max)
        elif (inner := called(eqn)) is not None:
            return self.walk(inner, outs, times)
        else:
            self._one(eqn, name, times)
        return everything

    def _all(self, closed: Any, times: int) -> None:
        body = getattr(closed, "jaxpr", closed)
        self.walk(body, [True] * len(body.outvars), times)

    def _one_of(
        self, branches: Sequence[Any], outs: list[bool], times: int, choose: Callable[..., _Count]
    ) -> None:
        """Of a choice by data the branch with the most work; of one by platform that with the
        least, which moves nothing twice.
        """
        found = []
        for branch in branches:
            one = _Count()
            one.walk(getattr(branch, "jaxpr", branch), outs, times)
            found.append(one)
        most = choose(found, key=lambda c: (sum(c.flops.values()) + c.others, c.traffic))
        for dtype, flops in most.flops.items():
            self.flops[dtype] += flops
        self.others += most.others
        self.traffic += most.traffic
        self.open_loops += most.open_loops

    def _one(self, eqn: Any, name: str, times: int) -> None:
        out = eqn.outvars[0].aval
        if name == "dot_general":
            (inner, _), _ = eqn.params["dimension_numbers"]
            self._product(
                eqn,
                2 * math.prod(out.shape) * math.prod(eqn.invars[0].aval.shape[d] for d in inner),
                times,
            )
        elif name == "conv_general_dilated":
            self._product(eqn, convolution_flops(eqn), times)
        elif name in ("gather", "dynamic_slice"):
            self.traffic += 2 * times * bytes_of(eqn.outvars)
        elif name.startswith("scatter") or name == "dynamic_update_slice":
            changed = eqn.invars[2 if name.startswith("scatter") else 1].aval
            # read the old rows and the new, write their sum
            self.traffic += 3 * times * _size(changed)
            self.others += (
                float(times) * math.prod(changed.shape) * (name != "dynamic_update_slice")
            )
        elif name in _ARITHMETIC:
            self.others += times * math.prod(out.shape)
        elif name in _REDUCTIONS:
            self.others += times * math.prod(eqn.invars[0].aval.shape)

    def _product(self, eqn: Any, flops: float, times: int) -> None:
        self.flops[str(eqn.invars[0].aval.dtype)] += times * flops
        self.traffic += times * (bytes_of(eqn.invars) + bytes_of(eqn.outvars))


def convolution_flops(eqn: Any) -> float:
    """Two for each product of an element and a weight; what padding and gaps between elements add
    is not work.
    """
    image, weight, out = (v.aval.shape for v in (*eqn.invars, *eqn.outvars))
    p = eqn.params
    of, wf = p["dimension_numbers"].out_spec, p["dimension_numbers"].rhs_spec
    total = 2.0 * out[of[0]] * out[of[1]] * weight[wf[1]]
    for k, axis in enumerate(p["dimension_numbers"].lhs_spec[2:]):
        total *= _valid_taps(
            image[axis], out[of[2 + k]], weight[wf[2 + k]], p["window_strides"][k], p["padding"][k][0], p["lhs_dilation"][k],
            p["rhs_dilation"][k],
        )  # fmt: skip
    return total


def _valid_taps(
    size: int, places: int, taps: int, stride: int, before: int, gaps: int, spread: int
) -> int:
    """Pairs of a place and a tap of a window that meet a true element along one axis."""
    last = (size - 1) * gaps
    found = 0
    for tap in range(taps) if taps <= places else range(places):
        # the position in the image with its gaps: place * stride + tap * spread - before
        step, start, among = (
            (stride, tap * spread - before, places)
            if taps <= places
            else (spread, tap * stride - before, taps)
        )
        found += sum(
            1 for i in range(among) if 0 <= (at := start + i * step) <= last and at % gaps == 0
        )
    return found


def called(eqn: Any) -> Any:
    """The body of an equation that is a call: its arguments and results are the body's."""
    for key in ("jaxpr", "call_jaxpr"):
        body = eqn.params.get(key)
        body = getattr(body, "jaxpr", body)
        if (
            hasattr(body, "eqns")
            and len(body.invars) == len(eqn.invars)
            and len(body.outvars) == len(eqn.outvars)
        ):
            return body
    return None


def bytes_of(values: Sequence[Any]) -> int:
    return sum(_sizes(values))


def _sizes(values: Sequence[Any]) -> Iterator[int]:
    for value in values:
        yield _size(value.aval)


def _size(aval: Any) -> int:
    return (
        math.prod(aval.shape) * getattr(aval.dtype, "itemsize", 0) if hasattr(aval, "shape") else 0
    )
