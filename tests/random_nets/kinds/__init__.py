"""The samplers of layers, by family; importing this registers them."""

from . import arithmetic, control, dense, detection, images, losses, sequences, shapes  # noqa: F401
