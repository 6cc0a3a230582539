"""Questions about programs: versions, captured names, liveness, what must be fed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fluidjax.ir import walk
from fluidjax.ir.desc import BlockDesc, OpDesc, ProgramDesc
from fluidjax.ir.text import parse

from .test_text import chain

LOOP = parse(
    """program seed=0
    block 0:
        param w: f32[2]
        data x: f32[2]
        data c: bool[1]
        var unused: f32[2]
        h: f32[2] = mul(X=x, Y=w)
        arr: lod_tensor_array f32[2] = write_to_array(X=h)
        h = scale(X=h)
        (Out=arr, StepScopes=s: step_scopes) = while(Condition=c, X=[arr], sub_block=block 1)
        y: f32[2] = read_from_array(X=arr)
        (ParamOut=w) = sgd(Param=w, Grad=y)
    block 1 (parent 0):
        t: f32[2] = add(X=h, Y=w)
        arr = write_to_array(X=t)
        while(sub_block=block 2)
    block 2 (parent 1):
        u: f32[2] = add(X=t, Y=late)
        x = relu(X=x)
        late = relu(X=u)
    """
)


def test_readers_and_writers():
    block = LOOP.blocks[0]
    assert walk.readers(block)["h"] == (1, 2)
    assert walk.readers(block)["w"] == (0, 5)
    assert walk.writers(block)["h"] == (0, 2)
    assert "c" not in walk.writers(block)
    assert [idx for idx, _ in walk.ops(LOOP)] == [0] * 6 + [1] * 3 + [2] * 3


def test_versions_count_writes():
    got = walk.versions(LOOP.blocks[0])
    assert got[0] == ((("x", 0), ("w", 0)), (("h", 1),))
    assert got[2] == ((("h", 1),), (("h", 2),))
    assert got[5].writes == (("w", 1),)


def test_versions_see_into_sub_blocks():
    got = walk.versions(LOOP.blocks[0], LOOP)
    assert got[3].reads == (("c", 0), ("arr", 1), ("h", 2), ("w", 0), ("late", 0), ("x", 0))
    assert got[3].writes == (("arr", 2), ("s", 1), ("x", 1), ("late", 1))


def test_an_op_that_writes_a_name_twice_makes_one_version():
    block = parse("program seed=0\nblock 0:\n(A=v, B=v) = split()\nv = relu(X=v)").blocks[0]
    assert [v.writes for v in walk.versions(block)] == [(("v", 1), ("v", 1)), (("v", 2),)]


def test_captured_names_belong_to_ancestors():
    assert walk.captured(LOOP, 1) == (("h", "w", "late", "x"), ("arr", "x", "late"))
    assert walk.captured(LOOP, 2) == (("t", "late", "x"), ("x", "late"))
    op = LOOP.blocks[0].ops[3]
    assert walk.reads_with_subblocks(LOOP, op) == ("c", "arr", "h", "w", "late", "x")
    assert walk.writes_with_subblocks(LOOP, op) == ("arr", "s", "x", "late")


def test_exposed_leaves_out_what_the_block_wrote_first():
    desc = parse(
        """program seed=0
        block 0:
            v: f32[1] = conditional_block(sub_block=block 1)
        block 1 (parent 0):
            v = fill()
            relu(X=v, Y=o)
        """
    )
    assert walk.captured(desc, 1).reads == ("v", "o")
    assert walk.exposed(desc, 1) == ("o",)
    assert walk.free_names(desc) == ("o",)


def test_free_names_and_persistables():
    assert walk.free_names(LOOP) == ("x", "c", "late")
    assert list(walk.persistables(LOOP)) == ["w"]


def test_references_in_a_circle_end():
    inner = "block 1 (parent 0):\nwhile(X=v, b=block 0, c=block 1, d=block 9)"
    desc = parse(f"program seed=0\nblock 0:\nwhile(b=block 1)\n{inner}")
    assert walk.nested(desc, [0]) == [0, 1]
    assert walk.captured(desc, 1).reads == ("v",)


def test_liveness_of_a_loop():
    live = walk.liveness(LOOP.blocks[0], ["w"], LOOP)
    ins = [sorted(before) for before, _ in live]
    assert ins[0] == ["arr", "c", "late", "w", "x"], (
        "a write into an array leaves the rest of it in place"
    )
    assert ins[2] == ["arr", "c", "h", "late", "w", "x"]
    assert "arr" in ins[3], "a loop may run no step, so that the old array lives on"
    assert ins[5] == ["w", "y"]
    assert live[5][1] == {"w"}
    assert live.dead[3] == {"s", "x", "late"}


names = st.sampled_from("abcdef")


@given(
    st.lists(st.tuples(st.lists(names, max_size=3), st.lists(names, max_size=2)), max_size=12),
    st.sets(names, max_size=2),
    st.randoms(use_true_random=False),
)
def test_liveness_equals_the_definition(program, keep, rng):
    ops = [op(i, reads, writes) for i, (reads, writes) in enumerate(program)]
    live = walk.liveness(BlockDesc(ops=tuple(ops)), keep)
    after = set(keep)
    expected = []
    for reads, writes in reversed(program):
        before = (after - set(writes)) | set(reads)
        expected.append((before, after))
        after = before
    expected.reverse()
    assert list(live) == expected
    assert live.entry == after
    for i in rng.sample(range(len(expected)), len(expected)):
        assert live[i] == expected[i]
        assert live.born[i] == expected[i][1] - expected[i][0]
        assert live.dies[i] == expected[i][0] - expected[i][1]
        assert live.dead[i] == set(program[i][1]) - expected[i][1]


def op(uid, reads, writes):
    return OpDesc(uid, "f", _slot("X", reads), _slot("Out", writes))


def _slot(name, names):
    return ProgramDesc().blocks[0].vars.set(**{name: tuple(names)})


def test_ten_thousand_ops():
    desc = chain(10_000)
    live = walk.liveness(desc.blocks[0], ["v10000"], desc)
    assert all(len(before) == 1 for before, _ in live)
    assert walk.versions(desc.blocks[0])[-1] == ((("v9999", 1),), (("v10000", 1),))
    assert walk.free_names(desc) == ("v0",)
