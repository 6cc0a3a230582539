"""paddle.inference: predictors under Paddle 2's names."""

from __future__ import annotations

import enum

from ..errors import FluidValueError
from ..predictors import AnalysisConfig as Config
from ..predictors import PaddleDType as DataType
from ..predictors import Predictor as Predictor
from ..predictors import ZeroCopyTensor as Tensor
from ..predictors import create_predictor as create_predictor
from . import version

PrecisionType = Config.Precision


class PlaceType(enum.IntEnum):
    """The location of a tensor."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class PredictorPool:
    """`size` predictors of one model with shared values. Raises FluidValueError for a size below 1."""

    def __init__(self, config: Config, size: int = 1) -> None:
        if size < 1:
            raise FluidValueError(f"a PredictorPool has one predictor at least, not {size}")
        first = create_predictor(config)
        self._every = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, idx: int) -> Predictor:
        """Number `idx` (Paddle's spelling)."""
        return self._every[idx]

    def retrieve(self, idx: int) -> Predictor:
        """Number `idx`."""
        return self._every[idx]


def get_version() -> str:
    """The version, as paddle.__version__."""
    return f"version: {version.full_version}"


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """The number of bytes of an element."""
    return dtype.numpy.itemsize


__all__ = [
    "Config", "DataType", "PlaceType", "PrecisionType", "Predictor", "PredictorPool", "Tensor", "create_predictor",
    "get_num_bytes_of_data_type", "get_version",
]  # fmt: skip
