"""What each of the listed cases does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from . import curves, dispatch, inference, pieces, roofline, training, whole_scripts
from .records import Found

CASES: dict[str, Callable[[], Iterator[Found]]] = {
    "machine": roofline.versions,
    "roofline": roofline.roofline,
    "tiny net": dispatch.tiny_net,
    "resnet50 f32": partial(training.resnet50, False),
    "resnet50 bf16": partial(training.resnet50, True),
    "transformer f32": partial(training.transformer, False),
    "transformer bf16": partial(training.transformer, True),
    "recommender": training.recommender,
    "lstm": training.lstm,
    "mlp": training.mlp,
    "lenet": training.lenet,
    "pieces": pieces.pieces,
    "predict resnet50": inference.resnet50,
    "predict ocr": inference.ocr,
    "small state": dispatch.small_state,
    "curve transformer": curves.transformer,
    "curve resnet50": curves.resnet50,
    "whole scripts": whole_scripts.whole_scripts,
}
