"""Programs as HTML: what stands where, that nothing is lost, and that no name does harm."""

from __future__ import annotations

import json
import sys

import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc, slots
from fluidjax.ir.lexis import name_text
from fluidjax.ir.text import parse
from fluidjax.look.program import to_html, to_page
from fluidjax.look.roles import section_of
from fluidjax.look.rows import formula
from fluidjax.ops.catalog import REGISTRY
from tests.ir.test_text import small

from .dom import Element, harmless, parsed

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e"


def sections(root: Element) -> dict[str, Element]:
    return {
        e.one("h2").text: e
        for e in root.all("details")
        if {"fj-role", "fj-vars"} & set(e.classes) and e.all("h2")
    }


def data(root: Element) -> dict:
    return json.loads("".join(map(str, root.one("script", "fj-data").parts)))


def test_sections_by_role_hold_the_ops_in_order():
    root = parsed(to_html(small()))
    found = sections(root)
    assert list(found) == [
        "parameters",
        "data",
        "state",
        "other variables",
        "forward",
        "backward",
        "communication",
    ]
    assert [e.attrs["data-n"] for e in found["forward"].all("li") if "data-n" in e.attrs] == [
        "0",
        "1",
        "2",
        "0",
    ]
    assert [e.text for e in found["backward"].all("b", "op")] == ["mul_grad"]
    assert found["communication"].one("b", "op").text == "send"
    line, *_ = found["forward"].all("li")
    assert line.text == "0 fc.tmp_0: f32[-1, 1] = mul(X=x, Y=w, x_num_col_dims=1)"
    inner = found["forward"].one("details", "fj-block")
    # within the op that runs it
    assert inner.parent is not None and inner.parent.attrs["data-n"] == "2"
    assert "relu" in inner.text


@pytest.mark.parametrize(
    ("kind", "role", "section"),
    [("mul", 0, "forward"), ("mean", 256, "forward"), ("mul_grad", 1, "backward"), ("mean_grad", 257, "backward"),
     ("sgd", 2, "optimize"), ("scale", 18, "schedule"), ("increment", 16, "schedule"), ("send", 4, "communication"),
     ("c_allreduce_sum", 1, "communication"), ("recv", 0, "communication"), ("mul", -7, "forward"), ("mul", "x", "forward"),
     ("no_such_op", 2, "optimize")],
)  # fmt: skip
def test_section_of(kind, role, section):
    assert section_of(OpDesc(0, kind, attrs=FrozenMap(op_role=role))) == section


def test_the_script_knows_formulas_lines_and_scopes():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [2, 3])
        with fluid.name_scope("tower"):
            fluid.layers.relu(x)
    root = parsed(main._repr_html_())
    known = data(root)
    line = next(e for e in root.all("li") if e.attrs.get("data-n") == "0")
    file, _, number = str(line.attrs["data-l"]).partition(":")
    assert known["files"][int(file)].endswith("test_program.py")
    assert int(number) > 0
    assert known["formulas"] == {"relu": "Out = max(X, 0)."}
    assert known["scopes"] == ["/tower/"]


def test_hostile_names_dangling_variables_and_unknown_ops():
    var = VarDesc(HOSTILE, (2,), "float32", persistable=True)
    op = OpDesc(
        0,
        HOSTILE,
        slots({HOSTILE: "nowhere"}),
        slots({"Out": HOSTILE}),
        FrozenMap(a=HOSTILE, op_device=HOSTILE),
        f"{HOSTILE}:3",
    )
    page = to_page(ProgramDesc((BlockDesc(FrozenMap({HOSTILE: var}), (op,)),)), HOSTILE)
    root = parsed(page)
    harmless(root)
    assert page.count("</script>") == 2
    assert "\u202e" not in page
    assert [e.text for e in root.all(cls="bad")] == [name_text(HOSTILE), "nowhere"]
    assert data(root)["formulas"] == {name_text(HOSTILE): None}
    assert "default-src 'none'" in str(root.all("meta")[1].attrs["content"])


def test_every_op_type_has_a_formula_to_tell():
    assert [kind for kind in REGISTRY if not formula(kind)] == []


def test_nothing_of_it_wants_ipython(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "IPython", None)  # an import of it fails
    main = fluid.Program.from_desc(small())
    assert (
        main._repr_html_()
        and main.graph()._repr_html_()
        and main.save_page(tmp_path / "net.html").is_file()
    )


def test_a_page_of_nothing():
    root = parsed(to_page(ProgramDesc(), "nothing"))
    assert root.one("details", "fj-graph").one("svg").text == "graph: 0 ops"


def test_long_values_fold_and_blocks_that_circle_end():
    ops = (
        OpDesc(
            0,
            "assign_value",
            outputs=slots({"Out": "v"}),
            attrs=FrozenMap(fp32_values=tuple(range(500)), b=BlockRef(1)),
        ),
    )
    inner = (OpDesc(1, "while", attrs=FrozenMap(sub_block=BlockRef(0), other=BlockRef(9))),)
    root = parsed(
        to_html(
            ProgramDesc((BlockDesc(ops=ops), BlockDesc(ops=inner, parent=0), BlockDesc(parent=1)))
        )
    )
    assert "(2,390 characters)" in root.one("details", "long").text
    assert "block 2 0 ops; parent 1, run by no op" in root.text


def test_deep_blocks_are_all_there():
    text = "program seed=0\nblock 0:\n    while(sub_block=block 1)\n"
    text += "".join(
        f"block {i} (parent {i - 1}):\n    while(sub_block=block {i + 1})\n" for i in range(1, 39)
    )
    root = parsed(to_html(parse(text + "block 39 (parent 38):\n    relu()\n")))
    assert len(root.all("details", "fj-block")) == 39
    assert "run by an op further up" in root.text


def test_the_command_writes_a_page(tmp_path, capsys):
    made = tmp_path / "net.html"
    assert cli.main(["show", "--html", "tests/data/saved/separate", "-o", str(made)]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {made} (")
    page = made.read_text()
    assert page.startswith("<!doctype html>\n")
    harmless(parsed(page))
    root = parsed(page)
    assert root.one("head").one("title").text == "separate"
    boxes = [
        e.attrs["data-op"]
        for e in root.one("details", "fj-graph").all("g", "fj-node")
        if "data-op" in e.attrs
    ]
    # every op has a box, from which the script leads to its line
    assert sorted(map(int, boxes)) == list(range(10))
    nowhere = tmp_path / "none" / "net.html"
    assert cli.main(["show", "--html", "tests/data/saved/separate", "-o", str(nowhere)]) == 1
    assert (
        capsys.readouterr().err
        == f"fluidjax show: cannot write {str(nowhere)!r}: there is no folder"
        f" {str(nowhere.parent)!r}\n"
    )
