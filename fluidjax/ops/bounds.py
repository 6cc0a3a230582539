"""The integers that ops accept: upper bounds from an op and its variables, for ``@op(bounds=...)``.

Each is a traits.High: the bound (not positive if unknown) and the one value beyond it that is
allowed, or None.
"""

from __future__ import annotations

from ..ir.desc import OpDesc, VarDesc
from .traits import Find, High

Found = tuple[int, int | None]


def classes(slot: str) -> High:
    """Labels of the classes on attribute `axis` of a slot's variable; no bound if the labels are
    soft.
    """

    def high(op: OpDesc, find: Find) -> Found:
        bound = (
            -1
            if op.attrs.get("soft_label")
            else _size(find(op.input(slot)[0]), int(op.attrs.get("axis", -1)))
        )
        return bound, op.attrs.get("ignore_index")

    return high


def labels_of(slot: str) -> High:
    """Classes on axis 1 of a slot's variable, and attribute ignore_index."""
    return lambda op, find: (
        _size(find(op.input(slot)[0]), 1),
        int(op.attrs.get("ignore_index", -100)),
    )


def size_of(slot: str, axis: str | int) -> High:
    """The size of one dimension of a slot's variable; axis: its number, or the attribute that holds
    it.
    """

    def high(op: OpDesc, find: Find) -> Found:
        at = axis if isinstance(axis, int) else int(op.attrs.get(axis, 0))
        var = find(op.input(slot)[0])
        # sequences determine the number of rows
        return (-1 if at == 0 and var is not None and var.lod_level else _size(var, at)), None

    return high


def gathered(op: OpDesc, find: Find) -> Found:
    """The size of X along attribute `axis`; no bound if a tensor gives the axis."""
    return (-1, None) if op.input("Axis") else size_of("X", "axis")(op, find)


def below(attr: str, unless: str = "") -> High:
    """Attribute `attr`; no bound if the op has a variable in slot `unless`."""

    def high(op: OpDesc, find: Find) -> Found:
        return (-1 if unless and op.input(unless) else int(op.attrs.get(attr, -1))), None

    return high


def tags(op: OpDesc, find: Find) -> Found:
    """Tags of a CRF: as many as Transition has columns."""
    return _size(find(op.input("Transition")[0]), -1), None


def table_height(op: OpDesc, find: Find) -> Found:
    """Rows of the table W (of attribute `height` if W is divided into parts), and padding_idx."""
    padding = int(op.attrs.get("padding_idx", -1))
    return int(op.attrs.get("height", _size(find(op.input("W")[0]), 0))), (
        padding if padding != -1 else None
    )


def one_hot_depth(op: OpDesc, find: Find) -> Found:
    """Attribute `depth`, unless values out of range are allowed or a tensor gives it."""
    bounded = not op.attrs.get("allow_out_of_range") and not op.input("depth_tensor")
    return (int(op.attrs.get("depth", -1)) if bounded else -1), None


def depth_variable(op: OpDesc) -> str:
    """The variable that holds one_hot's depth, unless values out of range are allowed."""
    names = op.input("depth_tensor")
    return names[0] if names and not op.attrs.get("allow_out_of_range") else ""


def places(op: OpDesc, find: Find) -> Found:
    """Index [..., k] of gather_nd: bounded if all k dimensions have one size."""
    x, index = find(op.input("X")[0]), find(op.input("Index")[0])
    depth = _size(index, -1)
    sizes = set(x.shape[:depth]) if x is not None and x.shape and depth > 0 else set()
    return (sizes.pop() if len(sizes) == 1 else -1), None


def candidates(op: OpDesc, find: Find) -> Found:
    """The number of variables in X."""
    return len(op.input("X")), None


def _size(var: VarDesc | None, axis: int) -> int:
    """The size of a dimension; -1 where it is not known."""
    return var.shape[axis] if var is not None and var.shape and axis < len(var.shape) else -1
