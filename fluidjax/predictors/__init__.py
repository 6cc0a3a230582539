"""Predictors: saved models with values of their own, fed and fetched by tensors, as
core.create_paddle_predictor returns them.
"""

from .config import AnalysisConfig as AnalysisConfig
from .config import NativeConfig as NativeConfig
from .config import PassBuilder as PassBuilder
from .predictor import Predictor as Predictor
from .predictor import create_paddle_predictor as create_paddle_predictor
from .predictor import create_predictor as create_predictor
from .tensors import PaddleBuf as PaddleBuf
from .tensors import PaddleDType as PaddleDType
from .tensors import PaddleTensor as PaddleTensor
from .tensors import ZeroCopyTensor as ZeroCopyTensor

AnalysisPredictor = NativePaddlePredictor = PaddlePredictor = Predictor

__all__ = [
    "AnalysisConfig", "AnalysisPredictor", "NativeConfig", "NativePaddlePredictor", "PaddleBuf", "PaddleDType", "PaddlePredictor",
    "PaddleTensor", "PassBuilder", "Predictor", "ZeroCopyTensor", "create_paddle_predictor", "create_predictor",
]  # fmt: skip
