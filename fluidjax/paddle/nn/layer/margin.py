"""Losses by margins, distances and likelihoods as layers."""

from __future__ import annotations

from .. import functional as F
from .function import FunctionLayer


class CosineEmbeddingLoss(FunctionLayer, function=F.cosine_embedding_loss, inputs=3):
    """paddle.nn.functional.cosine_embedding_loss as a layer."""


class GaussianNLLLoss(FunctionLayer, function=F.gaussian_nll_loss, inputs=3):
    """paddle.nn.functional.gaussian_nll_loss as a layer."""


class HingeEmbeddingLoss(FunctionLayer, function=F.hinge_embedding_loss, inputs=2):
    """paddle.nn.functional.hinge_embedding_loss as a layer."""


class MultiLabelMarginLoss(FunctionLayer, function=F.multi_label_margin_loss, inputs=2):
    """paddle.nn.functional.multi_label_margin_loss as a layer."""


class MultiLabelSoftMarginLoss(FunctionLayer, function=F.multi_label_soft_margin_loss, inputs=2):
    """paddle.nn.functional.multi_label_soft_margin_loss as a layer."""


class MultiMarginLoss(FunctionLayer, function=F.multi_margin_loss, inputs=2):
    """paddle.nn.functional.multi_margin_loss as a layer."""


class PoissonNLLLoss(FunctionLayer, function=F.poisson_nll_loss, inputs=2):
    """paddle.nn.functional.poisson_nll_loss as a layer."""


class SoftMarginLoss(FunctionLayer, function=F.soft_margin_loss, inputs=2):
    """paddle.nn.functional.soft_margin_loss as a layer."""


class TripletMarginLoss(FunctionLayer, function=F.triplet_margin_loss, inputs=3):
    """paddle.nn.functional.triplet_margin_loss as a layer."""


class TripletMarginWithDistanceLoss(
    FunctionLayer, function=F.triplet_margin_with_distance_loss, inputs=3
):
    """paddle.nn.functional.triplet_margin_with_distance_loss as a layer."""


__all__ = [
    "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "PoissonNLLLoss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip
