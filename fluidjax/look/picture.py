"""A picture: an SVG element that follows the reader's theme, its content as text, and files of
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import FluidValueError
from ..saved.files import write_text
from .frame import DARK, LIGHT, esc, fold, fragment, page

# The rules of look.css for pages, for a file of its own.
_ALONE = (
    f"svg{{{LIGHT};background:var(--bg)}}@media (prefers-color-scheme:dark){{svg{{{DARK}}}}}"
    "text{fill:var(--text);font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
)
WIDE = 7.25  # of a character at 12 pixels


@dataclass(frozen=True)
class Picture:
    """A picture: notebooks show it, str() gives it as text, save() writes a file.

    title: its content in a few words. svg: the element. text: its whole content, line by line.
    """

    title: str
    svg: str
    text: str
    endings: ClassVar[tuple[str, ...]] = (".svg", ".html")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"

    def _repr_html_(self) -> str:
        return self.fragment()

    def fragment(self) -> str:
        """The picture as an element with its style."""
        return fragment(self.html(), script=False)

    def html(self) -> str:
        """The same without the frame, as a part of something larger."""
        lines = "".join(f"<li>{esc(line)}</li>" for line in self.text.splitlines())
        return wide(self.title, self.svg) + fold("in words", f"<ul>{lines}</ul>")

    def save(self, path: str | Path) -> Path:
        """Write a file: the SVG alone, or a page. Returns the path.

        Raises FluidValueError for a name with none of the suffixes `endings`, and if the file
        cannot be written.
        """
        where = Path(path)
        if where.suffix == ".svg":
            made = self.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
                ">", f"><style>{_ALONE}</style>", 1
            )
        elif where.suffix == ".html":
            made = page(self.fragment(), self.title)
        else:
            raise FluidValueError(
                f"a picture is saved as {', '.join(self.endings[:-1])} or {self.endings[-1]}, not"
                f" as {where.name!r}"
            )
        write_text(where, made)
        return where


def wide(name: str, svg: str) -> str:
    """A wide picture in a part that scrolls, also by keys."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{esc(name)}">{svg}</div>'


def drawn(width: float, height: float, title: str, parts: str) -> str:
    """An SVG element of this size, with its content as its name."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg {size} role="img"><title>{esc(title)}</title>{parts}</svg>'


def words(
    x: float, y: float, text: str, anchor: str = "start", room: float = 0, cls: str = ""
) -> str:
    """A line of text. room: pixels; a longer text is cut, and a tooltip shows all of it."""
    most = max(1, int(room / WIDE)) if room else 0
    shown = text[: most - 1] + "…" if most and len(text) > most else text
    whole = f"<title>{esc(text)}</title>" if shown != text else ""
    named = f' class="{cls}"' if cls else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{esc(shown)}{whole}</text>'
