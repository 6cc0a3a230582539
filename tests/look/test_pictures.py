"""Differences side by side, sequence diagrams, who holds what: what stands in them, and that names
do no harm.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.ir import edit
from fluidjax.look.diff import ProgramDiff
from fluidjax.look.owners import Held, Part, owners
from fluidjax.look.picture import Picture
from fluidjax.look.sequence import SHOWN, Said, sequence
from fluidjax.passes.base import Note, PassResult
from fluidjax.passes.certificate import Certificate
from tests.ir.test_text import chain, small

from .dom import harmless, parsed
from .test_program import HOSTILE


def test_lines_that_are_alike_stand_side_by_side():
    before = small()
    ops = before.blocks[0].ops
    changed = edit.replace_ops(
        before, 0, [replace(ops[0], attrs=ops[0].attrs.set(x_num_col_dims=3)), *ops[2:]]
    )
    diff = ProgramDiff(before, changed)
    root = parsed(diff._repr_html_())
    harmless(root)
    rows = [
        [c.text for c in row.all("td")]
        for t in root.all("table", "fj-diff")
        for row in t.one("tbody").all("tr")
    ]
    (mul,) = [r for r in rows if "mul(" in r[0]]
    assert mul[1] == mul[0].replace("x_num_col_dims=1", "x_num_col_dims=3")
    marked = [
        (r.all("del")[0].text, r.all("ins")[0].text)
        for r in root.all("tr")
        if "x_num_col_dims" in r.text
    ]
    assert marked == [("1", "3")]
    assert (
        [r for r in rows if "less(" in r[0]] == [[r[0], ""] for r in rows if "less(" in r[0]] != []
    )
    assert repr(diff) == "<ProgramDiff: less 1 -> 0>"
    assert diff.counts() == {"less": (1, 0)}
    equal = [int(e.text.split()[0]) for e in root.all("summary")]
    assert equal and all(n > 0 for n in equal)  # what is equal is folded


def test_every_line_of_both_stands_in_the_comparison():
    old, new = chain(60), chain(40)
    root = parsed(ProgramDiff(old, new)._repr_html_())
    shown = "\n".join(e.text for e in root.walk() if e.tag == "pre")
    left = [
        row.all("td")[0].text
        for t in root.all("table", "fj-diff")
        for row in t.one("tbody").all("tr")
    ]
    assert sorted(filter(None, [*left, *shown.split("\n")])) == sorted(
        filter(None, str(fluid.Program.from_desc(old)).split("\n"))
    )


def test_programs_compare():
    main = fluid.Program.from_desc(small())
    assert not main.diff(main.clone())
    assert "equal" in main.diff(small())._repr_html_()
    other = main.clone()
    other.random_seed = 8
    assert main.diff(other, ("mine", "yours"))
    assert str(main.diff(other, ("mine", "yours"))).startswith("--- mine\n+++ yours\n")
    with pytest.raises(FluidTypeError, match=r"Program\.diff takes a Program, not str"):
        main.diff("other")


def test_a_sequence_diagram_has_a_row_for_each_message(tmp_path):
    said = [
        Said("a", HOSTILE, HOSTILE),
        Said(HOSTILE, None, "optimizes"),
        Said(HOSTILE, "a", "w", reply=True),
    ]
    picture = sequence("round", ["a", HOSTILE], said)
    root = parsed(picture._repr_html_())
    harmless(root)
    assert len(root.one("svg").all("path")) == 2
    assert len([e for e in root.all("line") if "stroke-dasharray" in e.attrs]) == 1
    assert str(picture).splitlines()[1:] == [f"{HOSTILE} optimizes", f"{HOSTILE} -> a: w"]
    alone = picture.save(tmp_path / "round.svg").read_text()
    assert alone.startswith('<svg xmlns="http://www.w3.org/2000/svg" ')
    harmless(parsed(alone))
    assert picture.save(tmp_path / "round.html").read_text().startswith("<!doctype html>")
    with pytest.raises(FluidValueError, match=r"as \.svg or \.html, not as 'round\.png'"):
        picture.save(tmp_path / "round.png")
    assert "and 3 more" in sequence("many", ["a"], [Said("a", None, "x")] * (SHOWN + 3)).svg


def test_bars_are_cut_where_another_holder_begins():
    picture = owners("held", ["x", "y"], [
        Held("w", (10, 2), "float32", (Part(0, 0, 12, "w.block0"), Part(1, 12, 8, "w.block1"))),
        Held("lr", (1,), "float32", everywhere=True), Held(HOSTILE, (4, 2), "float32", spread=True), Held("none", (), "int64"),
    ])  # fmt: skip
    assert str(picture).splitlines()[:5] == [
        "0 = x: 12 elements in 1 part, and 1 array whole", "1 = y: 8 elements in 1 part, and 1 array whole",
        "w: float32[10, 2]", "  w.block0: 0 to 11 on 0", "  w.block1: 12 to 19 on 1",
    ]  # fmt: skip
    root = parsed(picture._repr_html_())
    harmless(root)
    bars = [e for e in root.all("rect") if e.attrs.get("fill-opacity")]
    widths = [float(str(e.attrs["width"])) for e in bars]
    assert widths[0] / widths[1] == pytest.approx(12 / 8)
    assert widths[0] + widths[1] == pytest.approx(widths[2])
    assert "none: int64[], held by none" in str(picture)
    assert repr(picture) == "<Picture: held>" and isinstance(picture, Picture)


def test_what_notebooks_show_is_saved_as_a_page(tmp_path):
    before = small()
    dropped = edit.replace_ops(before, 0, before.blocks[0].ops[1:])
    certificate = Certificate(HOSTILE, (), (Note(HOSTILE, HOSTILE, refused=True),))
    done = PassResult(
        HOSTILE,
        before,
        dropped,
        {},
        (Note(HOSTILE, HOSTILE, "net.py:1"),),
        certificate,
        changed=True,
        seconds=0.1,
    )
    for name, shown in {
        "diff": ProgramDiff(before, dropped),
        "result": done,
        "certificate": certificate,
    }.items():
        path = shown.save_page(tmp_path / f"{name}.html", title=HOSTILE)
        text = path.read_text(encoding="utf-8")
        harmless(parsed(text))
        assert text.startswith("<!doctype html>") and shown._repr_html_() in text
        with pytest.raises(FluidValueError, match="nowhere"):
            shown.save_page(tmp_path / "nowhere" / "x.html")
