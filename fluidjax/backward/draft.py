"""A gradient op while its names may still change, and the names that gradients have.

While ops are drafts, a gradient that the differentiation under way makes carries a mark. Without
it, ``x@GRAD`` would mean two things where gradients are differentiated again: what an earlier
differentiation computed, a value as any other, and what flows to x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ops.registry import GRAD

_OWN = "\0"  # no variable's name begins so


def grad_name(name: str) -> str:
    """``x@GRAD``."""
    return name + GRAD


def own_grad(name: str) -> str:
    """The gradient of a variable that this differentiation makes: ``x@GRAD`` with the mark."""
    return _OWN + name + GRAD


def is_own(name: str) -> bool:
    """Whether a name has the mark."""
    return name.startswith(_OWN)


def unmarked(name: str) -> str:
    """The name as variables have it."""
    return name.removeprefix(_OWN)


def prefixed(name: str, prefix: str) -> str:
    """A marked name with something before what variables have."""
    return _OWN + prefix + unmarked(name)


def forward_name(name: str) -> str:
    """The variable that a gradient's name speaks of: x of ``x@GRAD``, ``x@GRAD@GRAD`` and
    ``grad/grad/x@GRAD``.
    """
    return unmarked(name[: name.find(GRAD)]).rsplit("grad/", 1)[-1] if GRAD in name else name


@dataclass(slots=True)
class Draft:
    """An op to be; slots are gone through in the order of their names, as Paddle's descs hold them."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any] = field(default_factory=dict)
    loc: str | None = None

    @property
    def reads(self) -> list[str]:
        return [n for slot in sorted(self.inputs) for n in self.inputs[slot]]

    @property
    def writes(self) -> list[str]:
        return [n for slot in sorted(self.outputs) for n in self.outputs[slot]]

    @property
    def gradients_read(self) -> list[str]:
        """Gradients of this differentiation, and values that an earlier one computed."""
        return [n for n in self.reads if GRAD in n]

    def output_places(self) -> Iterator[tuple[list[str], int]]:
        """(names, index) of every output; assigning to ``names[index]`` renames that one."""
        for slot in sorted(self.outputs):
            for i in range(len(self.outputs[slot])):
                yield self.outputs[slot], i

    def rename_input(self, old: str, new: str) -> None:
        for names in self.inputs.values():
            names[:] = [new if n == old else n for n in names]

    def rename_output(self, old: str, new: str) -> None:
        for names in self.outputs.values():
            names[:] = [new if n == old else n for n in names]

    def rename(self, old: str, new: str) -> None:
        self.rename_input(old, new)
        self.rename_output(old, new)

    def unmark(self) -> None:
        """Have the names that variables have, in slots and in attributes that tell names."""
        for slots in (self.inputs, self.outputs):
            for names in slots.values():
                names[:] = map(unmarked, names)
        for key, value in self.attrs.items():
            if isinstance(value, tuple) and any(isinstance(v, str) and is_own(v) for v in value):
                self.attrs[key] = tuple(map(unmarked, value))
