"""Programs as graphs: nodes and edges are those of 1.8.5's picture; names that DOT or HTML would
take for their own stay names.
"""

from __future__ import annotations

import re

import pytest

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError
from tests.nets import fresh

# Paddle 1.8.5 of the net below: every edge, from > to
EDGES = """
    elementwise_add>fc_0.tmp_1  elementwise_add_grad>fc_0.b_0@GRAD  elementwise_add_grad>fc_0.tmp_0@GRAD
    fc_0.b_0>elementwise_add  fc_0.b_0>elementwise_add_grad  fc_0.b_0>sgd  fc_0.b_0@GRAD>sgd  fc_0.tmp_0>elementwise_add
    fc_0.tmp_0>elementwise_add_grad  fc_0.tmp_0@GRAD>mul_grad  fc_0.tmp_1>relu  fc_0.tmp_1@GRAD>elementwise_add_grad
    fc_0.tmp_2>mean  fc_0.tmp_2>mean_grad  fc_0.tmp_2>relu_grad  fc_0.tmp_2@GRAD>relu_grad  fc_0.w_0>mul  fc_0.w_0>mul_grad
    fc_0.w_0>sgd  fc_0.w_0@GRAD>sgd  fill_constant>mean_0.tmp_0@GRAD  learning_rate_0>sgd  learning_rate_0>sgd
    mean>mean_0.tmp_0  mean_0.tmp_0@GRAD>mean_grad  mean_grad>fc_0.tmp_2@GRAD  mul>fc_0.tmp_0  mul_grad>fc_0.w_0@GRAD
    relu>fc_0.tmp_2  relu_grad>fc_0.tmp_1@GRAD  sgd>fc_0.b_0  sgd>fc_0.w_0  x>mul  x>mul_grad
"""


def drawn(block, path, **more):
    """Nodes by their label, and the edges between labels."""
    fluid.debugger.draw_block_graphviz(block, path=str(path), **more)
    text = path.read_text()
    found = re.findall(
        r'^  (\w+) \[label=(?:"((?:[^"\\]|\\.)*)"|<<b>(.*?)</b>)(.*)\];$', text, re.MULTILINE
    )
    labels = {node: plain or param for node, plain, param, _ in found}
    edges = re.findall(r"^  (\w+) -> (\w+);$", text, re.MULTILINE)
    return {plain or param: rest for _, plain, param, rest in found}, sorted(
        f"{labels[a]}>{labels[b]}" for a, b in edges
    )


def net():
    with fresh() as (main, _):
        x = fluid.data("x", [None, 3])
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 2, act="relu")))
    return main


@pytest.fixture
def no_dot(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "net.dot"


def test_the_graph_is_that_of_1_8_5(no_dot):
    nodes, edges = drawn(net().global_block(), no_dot, highlights=["w_0$"])
    assert edges == sorted(EDGES.split())
    assert [n for n, rest in nodes.items() if "orange" in rest] == [
        "fc_0.w_0"
    ] and "float32 [3, 2]" in nodes["fc_0.w_0"]
    assert not list(no_dot.parent.glob("*.pdf"))


def test_names_are_escaped(no_dot):
    with fresh() as (main, _):
        x = fluid.data('a"b\\', [None, 2])
        w = fluid.layers.create_parameter([2], "float32", name="<b>&")
        fluid.layers.elementwise_add(x, w)
    nodes, _ = drawn(main.global_block(), no_dot)
    assert 'a\\"b\\\\' in nodes and "&lt;b&gt;&amp;" in nodes


def test_dot_draws_where_it_is_installed(no_dot):
    """By a stand-in: what it is asked for, and what it says where it fails."""
    dot = no_dot.parent / "dot"
    dot.write_text('#!/bin/sh\necho "$@" > "$4"\n')
    dot.chmod(0o755)
    main = net()
    fluid.debugger.draw_block_graphviz(main.global_block(), path=str(no_dot))
    assert no_dot.with_suffix(".pdf").read_text().split() == [
        "-Tpdf",
        str(no_dot),
        "-o",
        str(no_dot.with_suffix(".pdf")),
    ]
    dot.write_text("#!/bin/sh\necho no fonts >&2\nexit 1\n")
    with pytest.raises(UnsupportedError, match="could not draw it: no fonts"):
        fluid.debugger.draw_block_graphviz(main.global_block(), path=str(no_dot))


def test_what_is_refused(no_dot):
    main = net()
    with pytest.raises(FluidTypeError, match=r"program.global_block\(\), not Program"):
        fluid.debugger.draw_block_graphviz(main, path=str(no_dot))
    with pytest.raises(FluidValueError, match="not a regular expression"):
        fluid.debugger.draw_block_graphviz(main.global_block(), highlights=["("], path=str(no_dot))
    with pytest.raises(FluidTypeError, match="not the text 'w'"):
        fluid.debugger.draw_block_graphviz(main.global_block(), highlights="w", path=str(no_dot))
    with pytest.raises(UnsupportedError, match=r"use fluid\.debugger\.draw_block_graphviz"):
        fluid.net_drawer.draw_graph(main, main)
    assert not no_dot.exists()


def test_texts_are_returned(capsys):
    main = net()
    whole = fluid.debugger.pprint_program_codes(main)
    forward = fluid.debugger.pprint_block_codes(main.global_block())
    both = fluid.debugger.pprint_block_codes(main.global_block(), show_backward=True)
    assert "mul_grad" in whole and "mul_grad" in both
    assert "mul" in forward and "mul_grad" not in forward
    assert not capsys.readouterr().out
