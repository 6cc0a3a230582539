"""paddle.vision: transforms of images, on Pillow and NumPy."""

from __future__ import annotations

from . import transforms as transforms

__all__ = ["transforms"]
