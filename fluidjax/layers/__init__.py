"""fluid.layers: functions that append ops to the default main program, by family.

The layers of a family are the names in its ``__all__``. These imports are the only way that names
are bound, so that editors and type checkers see every name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import core as core
from ..base.absent import reporter as _reporter
from ..graph.variable import Variable as Variable
from . import (
    activation,
    callbacks,
    control_flow,
    conv,
    ctr,
    decode_helpers,
    decoders,
    decoding,
    detection,
    distributions,
    elementwise,
    image,
    index,
    io,
    learning_rate_scheduler,
    loss,
    manip,
    metric_op,
    nn_dense,
    norm,
    pads,
    pool,
    proposals,
    random,
    reduce,
    regions,
    resize,
    rnn_cells,
    rnn_units,
    sequence,
    sequence_metric,
    sequence_rows,
    tensor,
    vision,
)
from . import collective as collective
from . import device as device
from . import nn as nn
from . import ops as ops
from . import rnn as _rnn_module  # noqa: F401
from . import utils as utils
from .activation import *  # noqa: F403
from .callbacks import *  # noqa: F403
from .control_flow import *  # noqa: F403
from .conv import *  # noqa: F403
from .ctr import *  # noqa: F403
from .decode_helpers import *  # noqa: F403
from .decoders import *  # noqa: F403
from .decoding import *  # noqa: F403
from .detection import *  # noqa: F403
from .distributions import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .image import *  # noqa: F403
from .index import *  # noqa: F403
from .io import *  # noqa: F403
from .learning_rate_scheduler import *  # noqa: F403
from .learning_rate_scheduler import _decay_step_counter as _decay_step_counter
from .loss import *  # noqa: F403
from .manip import *  # noqa: F403
from .metric_op import *  # noqa: F403
from .missing import HINTS as _HINTS
from .nn_dense import *  # noqa: F403
from .norm import *  # noqa: F403
from .pads import *  # noqa: F403
from .parallel_do import ParallelDo as ParallelDo
from .parallel_do import get_places as get_places
from .pool import *  # noqa: F403
from .proposals import *  # noqa: F403
from .random import *  # noqa: F403
from .rank_tables import (
    # no longer in 1.8.5's list, but used by older scripts
    array_to_lod_tensor as array_to_lod_tensor,
)
from .rank_tables import lod_rank_table as lod_rank_table
from .rank_tables import lod_tensor_to_array as lod_tensor_to_array
from .rank_tables import max_sequence_len as max_sequence_len
from .rank_tables import merge_lod_tensor as merge_lod_tensor
from .rank_tables import shrink_memory as shrink_memory
from .rank_tables import split_lod_tensor as split_lod_tensor
from .reduce import *  # noqa: F403
from .regions import *  # noqa: F403
from .resize import *  # noqa: F403
from .rnn_cells import *  # noqa: F403
from .rnn_units import *  # noqa: F403
from .sequence import *  # noqa: F403
from .sequence_metric import *  # noqa: F403
from .sequence_rows import *  # noqa: F403
from .tensor import *  # noqa: F403
from .vision import *  # noqa: F403

__all__: list[str] = []
__all__ += activation.__all__
__all__ += callbacks.__all__
__all__ += control_flow.__all__
__all__ += conv.__all__
__all__ += ctr.__all__
__all__ += decode_helpers.__all__
__all__ += decoders.__all__
__all__ += decoding.__all__
__all__ += detection.__all__
__all__ += distributions.__all__
__all__ += elementwise.__all__
__all__ += image.__all__
__all__ += index.__all__
__all__ += io.__all__
__all__ += learning_rate_scheduler.__all__
__all__ += loss.__all__
__all__ += manip.__all__
__all__ += metric_op.__all__
__all__ += nn_dense.__all__
__all__ += norm.__all__
__all__ += pads.__all__
__all__ += pool.__all__
__all__ += proposals.__all__
__all__ += random.__all__
__all__ += reduce.__all__
__all__ += regions.__all__
__all__ += resize.__all__
__all__ += rnn_cells.__all__
__all__ += rnn_units.__all__
__all__ += sequence.__all__
__all__ += sequence_metric.__all__
__all__ += sequence_rows.__all__
__all__ += tensor.__all__
__all__ += vision.__all__

if not TYPE_CHECKING:  # type checkers must report missing names
    __getattr__ = _reporter("fluid.layers", __all__, _HINTS)
