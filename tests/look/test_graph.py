"""Graphs in layers: what stands where, what is folded, that edges lead down and all ops are there."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import cli
from fluidjax.errors import FluidValueError, UnsupportedError
from fluidjax.ir.desc import FrozenMap, OpDesc, ProgramDesc, slots
from fluidjax.look.geometry import BOX, WIDE, arrange
from fluidjax.look.graph import graph
from fluidjax.look.groups import MOST
from fluidjax.look.layered import arranged
from tests.examples import examples
from tests.ir.test_text import chain, small

from .dom import Element, harmless, parsed
from .test_program import HOSTILE


@examples(30)
@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=30)
        )
    )
)
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
    return [[e.all("text")[0].text for e in svg.all("g", "fj-node")] for svg in root.all("svg")]


def test_graphs_fold_by_role_and_scope():
    desc = chain(200)
    ops = [replace(op, attrs=op.attrs.set(op_namescope=f"/half{i // 100}/quarter{i // 50}", op_role=int(i > 190)))
           for i, op in enumerate(desc.blocks[0].ops)]  # fmt: skip
    made = graph(ProgramDesc((replace(desc.blocks[0], ops=tuple(ops)),)))
    root = parsed(made._repr_html_())
    harmless(root)
    found = boxes(root)
    # the few groups give way to what is in them
    assert found[0] == [
        "quarter0",
        "quarter1",
        "quarter2",
        "quarter3",
        *(f"{i} relu" for i in range(191, 200)),
    ]
    assert all(len(labels) <= MOST for labels in found)
    singles = [label for labels in found for label in labels if label.endswith(" relu")]
    assert sorted(singles) == sorted(f"{i} relu" for i in range(200))  # each op is in one graph
    assert "quarter3 -> relu: v191" in str(made).splitlines()


def test_many_ops_that_nothing_tells_apart_go_together():
    found = boxes(parsed(graph(chain(1000))._repr_html_()))
    assert all(len(labels) <= MOST for labels in found)
    assert sum(label.endswith(" relu") for labels in found for label in labels) == 1000


def test_names_of_scopes_lines_and_variables_do_no_harm():
    attrs = FrozenMap(op_namescope=f"/{HOSTILE}/", op_role=0)
    ops = [
        OpDesc(
            i,
            "relu",
            slots({"X": f"{HOSTILE}{i}"}),
            slots({"Out": f"{HOSTILE}{i + 1}"}),
            attrs,
            HOSTILE,
        )
        for i in range(40)
    ]
    desc = small()
    block = replace(desc.blocks[0], ops=(*desc.blocks[0].ops, *ops))
    harmless(parsed(graph(replace(desc, blocks=(block, *desc.blocks[1:])))._repr_html_()))
    assert parsed(graph(ProgramDesc())._repr_html_()).one("svg").text == "graph: 0 ops"


def test_files_of_a_graph(tmp_path, monkeypatch, capsys):
    made = fluid.Program.from_desc(chain(3)).graph()
    assert "<svg " in made.save(tmp_path / "net.svg").read_text()
    assert made.save(tmp_path / "net.dot").read_text().startswith("digraph")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(
        UnsupportedError,
        match=(
            r"'net\.pdf' is drawn by graphviz, which is not installed; \.svg and \.html need"
            r" nothing"
        ),
    ):
        made.save(tmp_path / "net.pdf")
    with pytest.raises(
        FluidValueError,
        match=r"a picture is saved as \.svg, \.html, \.dot, \.pdf or \.png, not as 'net\.gif'",
    ):
        made.save(tmp_path / "net.gif")
    assert cli.main(["show", "tests/data/saved/separate", "--graph"]) == 0
    assert "<svg " in capsys.readouterr().out


def test_a_group_leads_to_its_graph():
    root = parsed(graph(chain(100))._repr_html_())
    groups = [e.attrs["data-group"] for e in root.all("g", "fj-node") if "data-group" in e.attrs]
    folds = [e.attrs["data-group"] for e in root.all("details", "fj-block")]
    assert groups and sorted(groups) == sorted(folds) and len(set(folds)) == len(folds)
    assert sorted(
        int(str(e.attrs["data-op"])) for e in root.all("g", "fj-node") if "data-op" in e.attrs
    ) == list(range(100))


def test_who_arranges_a_graph(monkeypatch):
    program = fluid.Program.from_desc(small())
    assert repr(program.graph()) == "<Graph: 5 ops, arranged by fluidjax>"
    assert (
        program.graph().engine == "own" and "arranged by fluidjax" in program.graph()._repr_html_()
    )
    with pytest.raises(
        FluidValueError, match=r"a graph is arranged by 'own', 'graphviz' or 'auto', not by 'elk'"
    ):
        program.graph("elk")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert program.graph("auto").engine == "own"
    with pytest.raises(
        UnsupportedError,
        match='arranged by graphviz, which is not installed; engine="own" needs nothing',
    ):
        program.graph("graphviz")


def test_a_graphviz_that_fails_is_told_or_done_without(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "dot")
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", "out of paper\n")
    )
    assert graph(small(), engine="auto").engine == "own"
    with pytest.raises(
        UnsupportedError, match=r"graphviz could not arrange a graph \(out of paper\)"
    ):
        graph(small(), engine="graphviz")


@examples(10)
@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(
            st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=12)
        )
    )
)
def test_arrows_go_from_box_to_box(case):
    """With either engine: boxes apart from each other and within the picture, arrows from one edge
    of a box to another's.
    """
    n, edges = case
    pairs = sorted((a, b) for a, b in edges if a != b)
    for engine in ("own", *(["graphviz"] if shutil.which("dot") else [])):
        (made,) = arrange([(n, pairs)], engine)
        assert made.engine == engine and set(made.paths) == set(pairs)
        assert all(
            WIDE / 2 <= x <= made.width - WIDE / 2 and BOX / 2 <= y <= made.height - BOX / 2
            for x, y in made.boxes
        )
        assert all(
            abs(x - u) >= WIDE - 0.5 or abs(y - v) >= BOX - 0.5
            for (x, y), (u, v) in itertools.combinations(made.boxes, 2)
        )
        for (a, b), path in made.paths.items():
            assert len(path) % 3 == 1
            for box, point in ((a, path[0]), (b, path[-1])):
                x, y = made.boxes[box]
                # graphviz rounds
                assert abs(x - point[0]) <= WIDE / 2 and abs(abs(y - point[1]) - BOX / 2) < 0.5


@pytest.mark.skipif(not shutil.which("dot"), reason="graphviz is not installed")
def test_graphviz_arranges_what_is_folded_too():
    own, other = graph(chain(60)), graph(chain(60), engine="graphviz")
    assert other.engine == "graphviz" and str(own) == str(other)
    root = parsed(other._repr_html_())
    harmless(root)
    assert boxes(root) == boxes(parsed(own._repr_html_()))


@pytest.mark.skipif(not shutil.which("dot"), reason="graphviz is not installed")
def test_graphviz_draws_every_op(tmp_path):
    assert (
        fluid.Program.from_desc(small())
        .graph()
        .save(tmp_path / "net.png")
        .read_bytes()
        .startswith(b"\x89PNG")
    )
