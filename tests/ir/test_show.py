"""HTML, graphs and diffs."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given

from fluidjax.ir import edit
from fluidjax.ir.show import diff, to_dot, to_html
from fluidjax.ir.text import parse

from .strategies import programs
from .test_text import chain, small


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags = [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@given(programs())
def test_html_is_balanced_and_escaped(desc):
    checker = Balanced()
    checker.feed(to_html(desc))
    checker.close()
    assert not checker.open
    assert checker.tags <= {"div", "style", "details", "summary", "pre", "span", "br"}


def test_html_folds_blocks_and_cuts_long_ones():
    page = to_html(small())
    assert page.count("<details open>") == 2
    assert '<span class="op">mul</span>' in page
    assert '<span class="type">f32[13, 1]</span>' in page
    assert "7,902 more lines" in to_html(chain(10_000), limit=2100)


@given(programs())
def test_dot_quotes_every_name(desc):
    text = to_dot(desc)
    for line in text.rstrip("\n").split("\n"):
        assert re.fullmatch(r'(?:[^"]|"(?:[^"\\]|\\.)*")*', line)
    assert text.startswith("digraph program {\n")
    assert text.endswith("}\n")


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
