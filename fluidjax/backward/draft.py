"""Drafts of gradient ops, whose names may still change, and the names of gradients.

While ops are drafts, the gradients of the current differentiation carry a mark. Without it,
``x@GRAD`` would have two meanings if gradients are differentiated again: a value that an earlier
differentiation computed, and the gradient of x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ops.registry import GRAD

_OWN = "\0"  # no variable's name begins with it


def grad_name(name: str) -> str:
    """``x@GRAD``."""
    return name + GRAD


def own_grad(name: str) -> str:
    """The name of a variable's gradient in this differentiation: ``x@GRAD`` with the mark."""
    return _OWN + name + GRAD


def is_own(name: str) -> bool:
    """Whether a name has the mark."""
    return name.startswith(_OWN)


def unmarked(name: str) -> str:
    """The name without the mark."""
    return name.removeprefix(_OWN)


def prefixed(name: str, prefix: str) -> str:
    """A marked name with a prefix after the mark."""
    return _OWN + prefix + unmarked(name)


def forward_name(name: str) -> str:
    """The variable that a gradient's name refers to: x for ``x@GRAD``, ``x@GRAD@GRAD`` and
    ``grad/grad/x@GRAD``.
    """
    return unmarked(name[: name.find(GRAD)]).rsplit("grad/", 1)[-1] if GRAD in name else name


@dataclass(slots=True)
class Draft:
    """A future op. Slots are visited in the order of their names, as in Paddle's descs."""

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
        """Remove the marks in slots and in attributes that hold names."""
        for slots in (self.inputs, self.outputs):
            for names in slots.values():
                names[:] = map(unmarked, names)
        for key, value in self.attrs.items():
            if isinstance(value, tuple) and any(isinstance(v, str) and is_own(v) for v in value):
                self.attrs[key] = tuple(map(unmarked, value))
