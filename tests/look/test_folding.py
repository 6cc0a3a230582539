"""What the boxes of a graph hold and are called: on random graphs that nothing is lost, on recorded
models that a reader knows the names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc, slots
from fluidjax.ir.text import summary
from fluidjax.ir.walk import weights
from fluidjax.look.folding import edges, folded
from fluidjax.look.graph import graph
from fluidjax.look.groups import MOST, Group
from fluidjax.look.motifs import placed
from fluidjax.look.structure import Structure
from fluidjax.saved.files import read_file
from fluidjax.saved.model import read_program
from tests.examples import examples

from .dom import parsed

MODELS = Path("tests/data/models")
KINDS = (
    "conv2d",
    "relu",
    "elementwise_add",
    "concat",
    "softmax",
    "matmul",
    "reshape2",
    "while",
    "sgd",
)
SCOPES = ("", "", "", "/a/", "/a/b/", "/c_1/", "/c_2/")


def leaves(groups: Iterable[Group]) -> Iterator[int]:
    for group in groups:
        assert bool(group.parts) or len(group.ops) == 1
        assert sorted(group.ops) == sorted(leaves(group.parts) if group.parts else group.ops)
        yield from group.ops


def levels(groups: tuple[Group, ...]) -> Iterator[tuple[Group, ...]]:
    yield groups
    for group in groups:
        if group.parts:
            yield from levels(group.parts)


@st.composite
def programs(draw: st.DrawFn) -> ProgramDesc:
    """Ops that read values written before, a few of a role or scope of their own; names are written
    again now and then.
    """
    made = []
    for i in range(draw(st.integers(1, 120))):
        reads = draw(
            st.lists(st.integers(max(-1, i - draw(st.sampled_from([1, 2, 40]))), i - 1), max_size=3)
        )
        attrs = FrozenMap(
            op_role=draw(st.sampled_from([0, 0, 0, 1, 2])),
            op_namescope=draw(st.sampled_from(SCOPES)),
        )
        out = f"v{draw(st.sampled_from([i, i, i, max(0, i - 3)]))}"
        made.append(
            OpDesc(i, draw(st.sampled_from(KINDS)), slots({"X": [f"v{n}" for n in reads] + ["w"] * (i % 5 == 0)}),
                   slots({"Out": out}), attrs)
        )  # fmt: skip
    vars = {"w": VarDesc("w", (3, 3, 3, 3), "float32", persistable=True)}
    vars |= {
        n: VarDesc(n, (-1, 8, 4, 4), "float32")
        for op in made
        for n in (*op.reads, *op.writes)
        if n != "w"
    }
    return ProgramDesc((BlockDesc(FrozenMap(vars), tuple(made)),))


@examples(60)
@given(programs())
def test_boxes_hold_every_op_once_and_never_too_many(desc):
    found = folded(desc)
    assert sorted(leaves(found)) == list(range(len(desc.blocks[0].ops)))
    assert all(len(parts) <= MOST for parts in levels(found))
    assert all(group.name for parts in levels(found) for group in parts)


@examples(40)
@given(programs())
def test_every_edge_between_two_boxes_is_told(desc):
    """As an arrow with the names, or, where many meet, as the two ends of one; and always in words."""
    made, top = graph(desc), folded(desc)
    titles = [e.text for e in parsed(made.svg).all("title")]
    at = {op: i for i, g in enumerate(top) for op in g.ops}
    between: dict[tuple[int, int], list[str]] = {}
    for a, b, name in edges(desc):
        if at[a] != at[b]:
            between.setdefault((at[a], at[b]), []).append(name)
    for (i, j), names in between.items():
        ends = [t for t in titles if t.startswith("to ") and top[j].name in t]
        assert ", ".join(dict.fromkeys(names)) in titles or ends
        assert f"{top[i].name} -> {top[j].name}: " in str(made)


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_a_series_is_cut_where_at_most_one_value_crosses(pairs):
    """Against counting: whatever place of a graph one value or none crosses lies between two parts."""
    order = sorted({(min(p), max(p), f"v{min(p)}") for p in pairs if p[0] != p[1]})
    group = Structure(["op"] * 31, order).found(range(31))
    assert sorted(leaves([group])) == list(range(31))
    if group.kind != "series":
        return
    last = {a: max(b for x, b, _ in order if x == a) for a, _, _ in order}
    places = [p for p in range(30) if sum(a <= p < b for a, b in last.items()) <= 1]
    ends = list(itertools.accumulate(len(part.ops) for part in group.parts))
    if places:  # else values were looked past, or branches join at the end
        assert {p + 1 for p in places} <= {0, *ends}


def names(desc: ProgramDesc) -> list[str]:
    return [group.name for group in folded(desc)]


def saved(name: str) -> ProgramDesc:
    path = MODELS / name
    return read_program(read_file(path), str(path))[0].desc


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (
            "ocr_cls.pdmodel",
            ["conv 3×3 + bn + hard swish", "inverted residual × 11", "fc + softmax"],
        ),
        ("ocr_det.pdmodel", ["separable conv × 14", "transposed conv 2×2 + sigmoid"]),
        ("ocr_rec.pdmodel", ["separable conv × 14", "encoder layer × 2", "fc + softmax"]),
        ("lac_seg/model/__model__", ["embedding", "bidirectional GRU", "fc", "CRF decoding"]),
    ],
)
def test_recorded_models_show_what_they_are(name, known):
    found = names(saved(name))
    assert 8 <= len(found) <= MOST
    assert [n for n in dict.fromkeys(found) if n in known] == known


@pytest.mark.parametrize(("trains", "last"), [(True, "loss"), (False, "post-processing")])
def test_what_nothing_is_recognized_in_is_called_by_where_it_stands(trains, last):
    parts = [
        Group(name, (i,))
        for i, name in enumerate(["reshaping", "fc", "arithmetic", "fc", "reshaping", "arithmetic"])
    ]
    found = [g.name for g in placed(parts, trains)]
    assert found == ["input preparation", "fc", "arithmetic", "fc", last, last]


def test_a_part_of_layout_alone_and_an_optimizer_have_names():
    def build() -> None:
        x = fluid.data("x", [None, 4, 4])
        h = fluid.layers.reshape(fluid.layers.transpose(x, [0, 2, 1]), [-1, 16])
        for act in ("relu", "tanh", "relu6", "sigmoid", "elu", "swish", "leaky_relu", "softmax"):
            h = fluid.layers.fc(h, 4, act=act)
        loss = fluid.layers.reduce_sum(fluid.layers.exp(fluid.layers.square(h)))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)

    found = names(net(build))
    assert found[0] == "input preparation"
    assert found[-2:] == ["backward", "optimizer: momentum"]


def test_parameters_are_counted_whoever_made_them():
    desc = saved("ocr_cls.pdmodel")
    stored = [v for v in desc.blocks[0].vars.values() if v.persistable and v.kind == "LOD_TENSOR"]
    assert not any(v.is_parameter for v in stored)
    assert set(weights(desc)) == {v.name for v in stored} and len(stored) > 200
    assert f"{len(stored)} parameters" in summary(desc)


def net(build) -> ProgramDesc:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        build()
    return main.desc


def test_residual_blocks_and_their_gradients():
    def build() -> None:
        x = fluid.data("x", [None, 8, 16, 16])
        for _ in range(5):
            y = fluid.layers.conv2d(x, 8, 3, padding=1, bias_attr=False)
            y = fluid.layers.batch_norm(y, act="relu")
            y = fluid.layers.batch_norm(fluid.layers.conv2d(y, 8, 3, padding=1, bias_attr=False))
            x = fluid.layers.relu(fluid.layers.elementwise_add(x, y))
        loss = fluid.layers.mean(fluid.layers.fc(x, 4, act="softmax"))
        fluid.optimizer.SGD(0.1).minimize(loss)

    desc = net(build)
    found = folded(desc)
    by_name = {g.name: g for g in found}
    run = by_name["residual block × 5"]
    assert [len(part.ops) for part in run.parts] == [7] * 5
    backward = [g for g in found if g.name == "residual block"]  # few boxes: they show each
    kinds = [desc.blocks[0].ops[i].type for g in backward for i in g.ops]
    assert set(kinds) == {
        "relu_grad",
        "elementwise_add_grad",
        "batch_norm_grad",
        "conv2d_grad",
        "sum",
    }
    assert [sum(desc.blocks[0].ops[i].type == "conv2d_grad" for i in g.ops) for g in backward] == [
        2
    ] * 5
    (updates,) = [g for g in found if g.name == "optimizer: sgd"]
    assert {desc.blocks[0].ops[i].type for i in updates.ops} == {"sgd"} and len(
        updates.parts
    ) <= MOST


def test_a_loop_has_its_block_as_a_graph():
    def build() -> None:
        i = fluid.layers.fill_constant([1], "int64", 0)
        n = fluid.layers.fill_constant([1], "int64", 3)
        x = fluid.data("x", [2, 4])
        state = fluid.layers.fc(x, 4)

        def body(i, state):
            state = fluid.layers.tanh(fluid.layers.fc(state, 4))
            return [fluid.layers.increment(i), state]

        fluid.layers.while_loop(lambda i, s: fluid.layers.less_than(i, n), body, [i, state])

    desc = net(build)
    (loop,) = [
        g for parts in levels(folded(desc)) for g in parts if g.name == "while loop" and not g.parts
    ]
    assert [g.block for g in loop.body] == [1] * len(loop.body)
    assert sorted(leaves(loop.body)) == list(range(len(desc.blocks[1].ops)))
    root = parsed(graph(desc).html())
    (box,) = [e for e in root.all("g", "fj-node") if e.text.startswith(f"{loop.ops[0]} while")]
    inner = next(
        e for e in root.all("details") if e.attrs.get("data-group") == box.attrs["data-group"]
    )
    assert {e.attrs["data-b"] for e in inner.all("g", "fj-node") if "data-op" in e.attrs} == {"1"}
