"""Facts about ops for pictures of programs: the name with the kernel's size, the size of the images
that an op makes, and the variables that are weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from .motifs import CONVS, RECURRENT, called


class Facts:
    """Facts about the ops of one block."""

    def __init__(self, desc: ProgramDesc, weights: Mapping[str, VarDesc], at: int = 0) -> None:
        self.block = desc.blocks[at]
        self.desc = desc
        self.at = at
        self.weights = weights
        self.labels = [self._label(op) for op in self.block.ops]
        self.scales = self._scales()

    def var(self, name: str) -> VarDesc | None:
        return self.desc.find_var(name, self.at)

    def sizes(self, name: str) -> tuple[int, ...]:
        found = self.var(name)
        return found.shape or () if found is not None else ()

    def _label(self, op: OpDesc) -> str:
        name = called(op.type)
        function = op.attrs.get("function")  # of a call that JAX kept, such as relu
        if isinstance(function, str) and function.isidentifier():
            return function
        own = [n for n in op.reads if n in self.weights]
        if name in CONVS and own:
            kernel = self.sizes(own[-1])[2:]
            return f"{name} {'×'.join(map(str, kernel))}" if len(kernel) >= 2 else name
        copies = name == "assign" or (name == "scale" and op.attrs.get("scale") == 1.0)
        if copies and own == list(op.reads) != []:
            return "copy of a weight"
        if name == "add" and own:
            return "bias"
        if name == "multiply" and own:
            return "gain"
        if name in ("matmul", "dot") and own:
            return "fc"
        if name in RECURRENT and op.attrs.get("is_reverse") is True:
            return f"reversed {name}"
        if name == "pool":
            way = "max" if op.attrs.get("pooling_type") == "max" else "average"
            return f"global {way} pool" if op.attrs.get("global_pooling") is True else f"{way} pool"
        return name

    def _scales(self) -> list[str]:
        """The height and width of each op's output, "56×56"; if they are open, its ratio to the
        input, "1/8"; "" for anything but a picture.
        """
        part: dict[str, Fraction] = {}
        found = []
        for op in self.block.ops:
            out = next((n for slot in ("Output", "Out", "Y", "Res") for n in op.output(slot)), "")
            source = next((n for n in op.reads if n in part), "")
            shape = self.sizes(out)
            if len(shape) != 4:
                found.append("")
                continue
            part[out] = part.get(source, Fraction(1)) * _size_ratio(op)
            known, size = min(shape[2:]) > 0, part[out]
            text = "×".join(map(str, shape[2:])) if known else str(size)
            found.append("" if text == "1" else text)
        return found


def _size_ratio(op: OpDesc) -> Fraction:
    """The ratio of the pictures' sizes to the input's."""
    strides = op.attrs.get("strides")
    stride = strides[0] if isinstance(strides, tuple) and strides else 1
    stride = stride if type(stride) is int and stride > 0 else 1
    if op.type in ("conv2d", "depthwise_conv2d", "pool2d"):
        return Fraction(1, stride)
    if "conv2d_transpose" in op.type:
        return Fraction(stride)
    scale = op.attrs.get("scale") if "interp" in op.type else None
    first = scale[0] if isinstance(scale, tuple) and scale else scale
    return Fraction(first) if isinstance(first, (int, float)) and first > 0 else Fraction(1)
