"""paddle.metric: accuracy of a static program."""

from __future__ import annotations

from ..layers import accuracy
from .adapt import adapted

accuracy = adapted("accuracy", accuracy, "input, label, k=1, correct=None, total=None, name=None", module=__name__)

__all__ = ["accuracy"]
