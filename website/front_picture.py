"""The picture of the front page: a program in colour beside its graph.

python -m website.front_picture     writes docs/program.svg
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import fluidjax as fluid
from fluidjax import layers
from fluidjax.ir.desc import ProgramDesc
from fluidjax.look.graph import graph
from fluidjax.look.picture import WIDE, Picture, esc
from fluidjax.look.rows import Rows

PATH = Path(__file__).parents[1] / "docs" / "program.svg"
TITLE = "A gated network: its program, and the graph of its ops"
COLUMNS, LINE, TOP = 62, 19, 26  # characters of a line, pixels of one
_COLOURS = {"a": "name", "b": "op", "i": "type", "s": "soft"}


def program() -> ProgramDesc:
    """The network that the picture shows."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, 64])
        hidden, gate = layers.fc(x, 32, act="relu"), layers.fc(x, 32, act="sigmoid")
        layers.fc(layers.elementwise_mul(hidden, gate), 10, act="softmax")
    return main.desc


class _Words(HTMLParser):
    """The words of a row, each with its colour."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append("soft" if ("class", "n") in attrs else _COLOURS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        colour = next((c for c in reversed(self.open) if c), "")
        self.found += [(word, colour) for word in re.findall(r"\s*\S+|\s+", data)]


def lines(desc: ProgramDesc) -> list[list[tuple[str, str]]]:
    """Block 0, as a page shows it: (word, colour) by line, none longer than COLUMNS."""
    rows, block = Rows(desc), desc.blocks[0]
    types = {name: var for name, var in block.vars.items() if not var.persistable}
    types.pop("x", None)
    shown = [rows.variable(block.vars["x"])]
    shown += [rows.op(0, at, op, types) for at, op in enumerate(block.ops)]
    found = []
    for row in shown:
        parser, length = _Words(), 0
        parser.feed(row)
        line: list[tuple[str, str]] = []
        for piece in _pieces(parser.found):
            wide = sum(len(word) for word, _ in piece)
            if line and length + wide > COLUMNS:
                found.append(line)
                (word, colour), *rest = piece
                line, piece, length = [("      ", "")], [(word.lstrip(), colour), *rest], 6
            line += piece
            length += wide
        found.append(line)
    return found


def _pieces(words: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Words between which a line may end: before a space."""
    pieces: list[list[tuple[str, str]]] = []
    for word in words:
        if word[0][0].isspace() or not pieces:
            pieces.append([])
        pieces[-1].append(word)
    return pieces


def picture() -> Picture:
    """Both sides as one SVG."""
    desc = program()
    shown = lines(desc)
    right = graph(desc, "graph")
    found = re.search(r'width="(\d+)" height="(\d+)"', right.svg)
    assert found
    beside = COLUMNS * WIDE + 40
    width, height = beside + int(found[1]), max(int(found[2]), TOP + LINE * len(shown))
    text = "".join(
        f'<text x="12" y="{TOP + LINE * at}" xml:space="preserve">'
        + "".join(
            f'<tspan fill="var(--{colour or "text"})">{esc(word)}</tspan>' for word, colour in line
        )
        + "</text>"
        for at, line in enumerate(shown)
    )
    placed = right.svg.replace("<svg ", f'<svg x="{beside:.0f}" y="0" ', 1)
    svg = (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
        f' role="img"><title>{esc(TITLE)}</title>{text}{placed}</svg>'
    )
    return Picture(TITLE, svg, "\n".join("".join(word for word, _ in line) for line in shown))


if __name__ == "__main__":
    picture().save(PATH)
