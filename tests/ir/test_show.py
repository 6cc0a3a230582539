"""Graphs and diffs as text; that nothing is lost in HTML."""

from __future__ import annotations

import re

from hypothesis import given

from fluidjax.ir import edit
from fluidjax.ir.lexis import name_text
from fluidjax.ir.show import diff, to_dot
from fluidjax.ir.text import parse
from fluidjax.look.program import to_html
from tests.look.dom import Element, harmless, parsed

from .strategies import programs
from .test_text import small


@given(programs())
def test_dot_quotes_every_name_and_html_has_every_op_and_variable_once(desc):
    text = to_dot(desc)
    for line in text.rstrip("\n").split("\n"):
        assert re.fullmatch(r'(?:[^"]|"(?:[^"\\]|\\.)*")*', line)
    assert text.startswith("digraph program {\n")
    assert text.endswith("}\n")
    root = parsed(to_html(desc))
    harmless(root)
    ops = [e for e in root.all("li") if "data-n" in e.attrs]
    assert len(ops) == sum(len(b.ops) for b in desc.blocks)
    declared = [e.text for e in root.all("a", "d")]
    assert sorted(declared) == sorted(name_text(n) for b in desc.blocks for n in b.vars)
    kinds = [
        next(p.text for p in e.parts if isinstance(p, Element) and "op" in p.classes) for e in ops
    ]
    assert sorted(kinds) == sorted(name_text(op.type) for b in desc.blocks for op in b.ops)
    assert len(root.all("script")) == 2


def test_dot_shows_versions_and_blocks():
    desc = parse(
        """program seed=0
        block 0:
            param w: f32[2]
            v: f32[2] = relu(X=w)
            v = relu(X=v, sub_block=block 1)
        block 1 (parent 0):
            t: f32[2] = relu(X=v)
        """
    )
    text = to_dot(desc)
    assert 'label="v\\nf32[2]"' in text
    assert 'label="v #2\\nf32[2]"' in text
    assert 'label="w\\nf32[2]", style=bold' in text
    assert "op_0_1 -> op_1_0 [style=dashed, lhead=cluster_1];" in text
    assert 'label="block 1 (parent 0)"' in text


def test_diff_shows_the_lines_that_differ():
    before = small()
    after = edit.replace_ops(before, 0, before.blocks[0].ops[1:])
    lines = diff(before, after).splitlines()
    assert lines[:2] == ["--- before", "+++ after"]
    assert sorted(line for line in lines[2:] if line[0] in "+-") == [
        "+    var fc.tmp_0: f32[-1, 1]",
        "-    fc.tmp_0: f32[-1, 1] = mul(X=x, Y=w, x_num_col_dims=1)",
    ]


def test_diff_of_equals_and_of_uids():
    assert diff(small(), small()) == ""
    assert "uid=7" in diff(small(), edit.renumber(small()))
