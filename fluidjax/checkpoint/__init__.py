"""Checkpoints of a running job, written by orbax: state by variable name, the step, the random
state and the reader's position.
"""

from __future__ import annotations

from .auto import AutoCheckpoint as AutoCheckpoint
from .folder import Checkpoint as Checkpoint
from .restore import Restored as Restored
