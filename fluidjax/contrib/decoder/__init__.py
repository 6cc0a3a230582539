"""fluid.contrib.decoder: one description of a decoder's step, for training and for a beam search."""

from .beam_search_decoder import BeamSearchDecoder as BeamSearchDecoder
from .beam_search_decoder import InitState as InitState
from .beam_search_decoder import StateCell as StateCell
from .beam_search_decoder import TrainingDecoder as TrainingDecoder

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder"]
