"""The op types of Paddle, with their slots, attributes and defaults: of 1.8.5, and of later Paddles
what these added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fluidjax.ops  # noqa: F401
from fluidjax.ops.registry import REGISTRY

DATA = Path(__file__).parents[1] / "data"
# op types that 1.8.5 lacks; these say nothing of defaults
LATER: dict[str, Any] = json.loads((DATA / "op_protos_2x.json").read_text())
PROTOS: dict[str, Any] = json.loads((DATA / "op_protos_1.8.5.json").read_text()) | LATER


def paddles() -> set[str]:
    """Op types of the registry that Paddle has, besides gradients. Others have nothing to be
    compared with.
    """
    return {kind for kind, op in REGISTRY.items() if op.forward is None and kind in PROTOS}
