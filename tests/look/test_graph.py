"""Graphs in layers: what stands where, what is folded, that edges lead down and all ops are there."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import cli
from fluidjax.errors import FluidValueError, UnsupportedError
from fluidjax.ir.desc import FrozenMap, OpDesc, ProgramDesc, slots
from fluidjax.look.graph import MOST, graph
from fluidjax.look.layered import arranged
from tests.examples import examples
from tests.ir.test_text import chain, small

from .dom import Element, harmless, parsed
from .test_program import HOSTILE


@examples(30)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=30))))
def test_edges_lead_down_and_no_two_stand_in_one_place(case):
    n, edges = case
    found = arranged(n, edges)
    taken = list(zip(found.layer, found.place, strict=True))
    for (a, b), bends in found.bends.items():
        assert found.layer[a] < found.layer[b]
        taken += [(found.layer[a] + 1 + i, place) for i, place in enumerate(bends)]
        assert len(bends) == found.layer[b] - found.layer[a] - 1
    assert set(found.bends) == {(min(e), max(e)) for e in edges if e[0] != e[1]}
    assert len(set(taken)) == len(taken)
    assert all(0 <= place < found.widths[layer] for layer, place in taken)


def boxes(root: Element) -> list[list[str]]:
    """The labels of every graph, the outermost first."""
    return [[t.text for t in svg.all("text")] for svg in root.all("svg")]


def test_graphs_fold_by_role_scope_and_line():
    desc = chain(200)
    ops = [replace(op, loc=f"net.py:{i // 5}", attrs=op.attrs.set(op_namescope=f"/half{i // 100}/", op_role=int(i > 190)))
           for i, op in enumerate(desc.blocks[0].ops)]  # fmt: skip
    made = graph(ProgramDesc((replace(desc.blocks[0], ops=tuple(ops)),)))
    root = parsed(made._repr_html_())
    harmless(root)
    found = boxes(root)
    assert found[0] == ["forward (191)", "backward (9)"]
    assert found[1] == ["half0 (100)", "half1 (91)"]
    assert found[2] == [f"net.py:{i} (5)" for i in range(20)]
    assert found[3] == [f"{i} relu" for i in range(5)]
    assert all(len(labels) <= MOST for labels in found)
    singles = [label for labels in found for label in labels if label.endswith(" relu")]
    assert sorted(singles) == sorted(f"{i} relu" for i in range(200))  # each op is in one graph
    assert "forward -> backward: v191" in str(made).splitlines()


def test_many_ops_that_nothing_tells_apart_go_together():
    found = boxes(parsed(graph(chain(1000))._repr_html_()))
    assert all(len(labels) <= MOST for labels in found)
    assert sum(label.endswith(" relu") for labels in found for label in labels) == 1000


def test_names_of_scopes_lines_and_variables_do_no_harm():
    attrs = FrozenMap(op_namescope=f"/{HOSTILE}/", op_role=0)
    ops = [OpDesc(i, "relu", slots({"X": f"{HOSTILE}{i}"}), slots({"Out": f"{HOSTILE}{i + 1}"}), attrs, HOSTILE) for i in range(40)]
    desc = small()
    block = replace(desc.blocks[0], ops=(*desc.blocks[0].ops, *ops))
    harmless(parsed(graph(replace(desc, blocks=(block, *desc.blocks[1:])))._repr_html_()))
    assert parsed(graph(ProgramDesc())._repr_html_()).one("svg").text == "graph: 0 ops"


def test_files_of_a_graph(tmp_path, monkeypatch, capsys):
    made = fluid.Program.from_desc(chain(3)).graph()
    assert "<svg " in made.save(tmp_path / "net.svg").read_text()
    assert made.save(tmp_path / "net.dot").read_text().startswith("digraph")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(UnsupportedError, match=r"'net\.pdf' is drawn by graphviz, which is not installed; \.svg and \.html need nothing"):
        made.save(tmp_path / "net.pdf")
    with pytest.raises(FluidValueError, match=r"a picture is saved as \.svg, \.html, \.dot, \.pdf or \.png, not as 'net\.gif'"):
        made.save(tmp_path / "net.gif")
    assert cli.main(["show", "tests/data/saved/separate", "--graph"]) == 0
    assert "<svg " in capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("dot"), reason="graphviz is not installed")
def test_graphviz_draws_every_op(tmp_path):
    assert fluid.Program.from_desc(small()).graph().save(tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
