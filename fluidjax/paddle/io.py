"""paddle.io: DataLoader.from_generator."""

from __future__ import annotations

from ..loaders.loader import DataLoader as DataLoader

__all__ = ["DataLoader"]
