"""Fluid's module name for most layers: ``fluid.layers.nn.relu`` is ``fluid.layers.relu``."""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from . import (
    activation,
    conv,
    ctr,
    elementwise,
    index,
    loss,
    manip,
    nn_dense,
    norm,
    pads,
    pool,
    random,
    reduce,
    resize,
    vision,
)
from .activation import *  # noqa: F403
from .callbacks import py_func
from .control_flow import autoincreased_step_counter
from .conv import *  # noqa: F403
from .ctr import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .index import *  # noqa: F403
from .loss import *  # noqa: F403
from .manip import *  # noqa: F403
from .metric_op import mean_iou
from .missing import HINTS
from .nn_dense import *  # noqa: F403
from .norm import *  # noqa: F403
from .pads import *  # noqa: F403
from .pool import *  # noqa: F403
from .random import *  # noqa: F403
from .reduce import *  # noqa: F403
from .resize import *  # noqa: F403
from .sequence import crf_decoding, linear_chain_crf, lod_append, lod_reset
from .sequence_metric import chunk_eval, ctc_greedy_decoder
from .sequence_rows import filter_by_instag, im2sequence, row_conv
from .tensor import diag_embed
from .vision import *  # noqa: F403

__all__ = [
    "autoincreased_step_counter", "chunk_eval", "crf_decoding", "ctc_greedy_decoder", "diag_embed", "filter_by_instag", "im2sequence",
    "linear_chain_crf", "lod_append", "lod_reset", "mean_iou", "py_func", "row_conv",
]  # fmt: skip
__all__ += activation.__all__
__all__ += conv.__all__
__all__ += ctr.__all__
__all__ += elementwise.__all__
__all__ += index.__all__
__all__ += loss.__all__
__all__ += manip.__all__
__all__ += nn_dense.__all__
__all__ += norm.__all__
__all__ += pads.__all__
__all__ += pool.__all__
__all__ += random.__all__
__all__ += reduce.__all__
__all__ += resize.__all__
__all__ += vision.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.nn", __all__, HINTS)
