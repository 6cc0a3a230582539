"""The cases, in the order of their importance: names, groups, and how long they may take. What they
do is in `cases`, which needs jax.
"""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    """measure: seconds that a case may have the card for itself."""

    name: str
    group: str
    measure: float = 30


LISTED = (
    Listed("machine", "roofline", 5),
    Listed("roofline", "roofline"),
    Listed("tiny net", "dispatch"),
    Listed("resnet50 f32", "train"),
    Listed("resnet50 bf16", "train"),
    Listed("transformer f32", "train"),
    Listed("transformer bf16", "train"),
    Listed("recommender", "train"),
    Listed("lstm", "train", 45),
    Listed("mlp", "train"),
    Listed("lenet", "train"),
    Listed("pieces", "pieces", 45),
    Listed("predict resnet50", "inference", 45),
    Listed("predict ocr", "inference"),
    Listed("small state", "dispatch"),
    Listed("curve transformer", "curves", 40),
    Listed("curve resnet50", "curves", 40),
    Listed("whole scripts", "scripts", 240),
)
TESTS = "tests"
GROUPS = ("roofline", "dispatch", TESTS, "train", "pieces", "inference", "curves", "scripts")
# What a rehearsal runs by default: a little of each kind, within a minute. ONLY asks for others.
REHEARSED = ("machine", "roofline", "tiny net", "small state", "mlp", "recommender")
