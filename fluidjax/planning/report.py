"""A plan: its figures, which print() and notebooks show as tables."""

from __future__ import annotations

from ..look.shown import Shown
from . import tables
from .figures import Figures


class Plan(Figures, Shown):
    """The result of fluid.plan."""

    def __str__(self) -> str:
        return tables.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return tables.html(self)
