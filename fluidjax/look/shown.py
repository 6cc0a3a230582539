"""Writes values that notebooks show as HTML as pages of their own."""

from __future__ import annotations

from pathlib import Path

from ..saved.files import write_text
from .frame import page


class Shown:
    """A value that notebooks show."""

    def _repr_html_(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} says how it is shown")

    def save_page(self, path: str | Path, title: str = "") -> Path:
        """Write the notebook's view as a self-contained page for a browser, and return the path.

        title: default the file's name. Raises FluidValueError if the file cannot be written.
        """
        where = Path(path)
        write_text(where, page(self._repr_html_(), title or where.stem))
        return where


__all__ = ["Shown"]
