"""The picture of the front page shows the program, and a box for each of its ops."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from website.front_picture import COLUMNS, PATH, lines, picture, program

SVG = "{http://www.w3.org/2000/svg}"


def test_it_shows_the_program_beside_its_graph() -> None:
    root = ElementTree.parse(PATH).getroot()
    shown = ["".join(text.itertext()) for text in root.findall(f"{SVG}text")]
    assert shown == picture().text.splitlines(), "python -m website.front_picture"
    assert max(map(len, shown)) <= COLUMNS + 6
    ops = [op.type for op in program().blocks[0].ops]
    assert re.findall(r"= +(\w+)\(", " ".join(shown)) == ops
    graph = root.find(f"{SVG}svg")
    assert graph is not None
    boxes = [
        "".join(group.itertext()) for group in graph.iter(f"{SVG}g") if "class" in group.attrib
    ]
    assert all(any(kind in box for box in boxes) for kind in ops)
    colours = {tspan.get("fill") for tspan in root.iter(f"{SVG}tspan")}
    assert {"var(--op)", "var(--type)"} <= colours and len(lines(program())) == len(shown)
