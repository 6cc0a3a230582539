"""Loaders under the name that scripts import; loaders/loader.py has them."""

from .loaders.loader import DataLoader, PyReader

__all__ = [
    "DataLoader",
    "PyReader",
]
