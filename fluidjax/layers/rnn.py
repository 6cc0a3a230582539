"""Fluid's module name for recurrent layers. ``fluid.layers.rnn`` is the function of that name, as
in Fluid.
"""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from .decode_helpers import (
    BasicDecoder,
    DecodeHelper,
    GreedyEmbeddingHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from .decoders import BeamSearchDecoder, Decoder, dynamic_decode
from .decoding import beam_search, beam_search_decode
from .index import gather_tree
from .missing import HINTS
from .rnn_cells import GRUCell, LSTMCell, RNNCell, rnn
from .rnn_units import dynamic_lstmp, gru_unit, lstm, lstm_unit
from .sequence import dynamic_gru, dynamic_lstm

__all__ = [
    "BasicDecoder", "BeamSearchDecoder", "DecodeHelper", "Decoder", "GRUCell", "GreedyEmbeddingHelper", "LSTMCell", "RNNCell",
    "SampleEmbeddingHelper", "TrainingHelper", "beam_search", "beam_search_decode", "dynamic_decode", "dynamic_gru",
    "dynamic_lstm", "dynamic_lstmp", "gather_tree", "gru_unit", "lstm", "lstm_unit", "rnn",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.rnn", __all__, HINTS)
