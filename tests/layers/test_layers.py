"""Every recorded call of a layer function appends what Paddle 1.8.5 appends, and refuses what it
refuses.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax.base.dtypes import VarType
from fluidjax.errors import FluidError, FluidTypeError
from fluidjax.graph.variable import Parameter
from fluidjax.ir.desc import BlockRef
from fluidjax.ops import open_sizes
from fluidjax.ops.registry import lookup

from . import cases

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "layers_1.8.5.json").read_text())
SKIP = {
    "op_callstack",
    "op_device",
    "op_role_var",
    "use_mkldnn",
    "use_cudnn",
    "mkldnn_data_type",
    "use_quantizer",
    "is_mkldnn",
}
OTHER_ATTRS = {
    "randn": {"seed"},  # 1.8.5 draws the seed while building; here it is 0 and drawn per step
    "uniform_random": {"dtype"},  # 1.8.5 forgets it: float64 asked for, float32 given
}

# Variables whose shape or dtype 1.8.5 declares otherwise than its own kernels make it, or less
# exactly.
OTHER_VARS = {
    # 1.8.5's layers declare int32 for what its ops write as float32 and int64, and as many rows as
    # there may be
    "deformable_roi_pooling": {"deformable_psroi_pooling_0.tmp_1"},
    "roi_pool": {"roi_pool_0.tmp_1", "roi_pool_1.tmp_1"},
    "collect_fpn_proposals": {"my.tmp_0"},
    "generate_proposals": {"generate_proposals_0.tmp_2"},
    "generate_proposals args": {"my.tmp_2"},
    # float64 declared, float32 when run; columns
    "filter_by_instag": {"filter_by_instag_0.tmp_1", "filter_by_instag_0.tmp_2"},
    "filter_by_instag args": {"filter_by_instag_0.tmp_1", "filter_by_instag_0.tmp_2"},
    "lstm args": {"my.tmp_0"},  # half as wide as what two directions give
    # sizes that are not told though they are known
    "affine_grid": {"affine_grid_0.tmp_0", "affine_grid_1.tmp_0"},
    "dropout test": {"dropout_0.tmp_1"},  # no shape for the mask in test mode
    "layer_norm axis": {"layer_norm_0.tmp_0", "layer_norm_0.tmp_1"},  # -3: a product with -1
    "instance_norm": {"instance_norm_0.tmp_0", "instance_norm_0.tmp_1"},  # -4
    "instance_norm attrs": {"inn.tmp_0", "inn.tmp_1"},
    "has_inf": {"isinf_0.tmp_0"},  # float32 declared, bool when run
    "has_nan": {"isnan_0.tmp_0"},
    "adaptive_pool2d index": {"max_pool2d_with_index_0.tmp_1"},  # float32 declared, int32 when run
    "adaptive_pool2d max": {"max_pool2d_with_index_0.tmp_1"},
    "adaptive_pool3d index": {"max_pool3d_with_index_0.tmp_1"},
    "topk tensor": {"tk.tmp_0", "tk.tmp_1"},  # k = 1, whatever the variable holds
    "split tensor": {"split_0.tmp_2", "split_0.tmp_3", "split_0.tmp_4"},  # sizes of an equal split
    "expand_as": {"ea.tmp_0"},  # [0, 0]
    "pad2d tensor": {"pad2d_0.tmp_0"},  # the input's, whatever the variable holds
    "uniform_random": {"uniform_random_0.tmp_0"},  # float32 though float64 was asked for
    "uniform_random tensor": {"uniform_random_1.tmp_1"},  # -1 for a size that is known
    "random sizes of int64": {"uniform_random_0.tmp_1"},
    "sampling_id": {"sampling_id_0.tmp_0"},  # float32 declared, int64 when run
    # MaxIndex: float32 declared, int32 when run
    **{
        n: {f"sequence_pool_{i}.tmp_1" for i in range(6)}
        for n in cases.SEQUENCES
        if n.startswith(("sequence_pool", "sequence_first", "sequence_last"))
    },
    "sequence_conv_pool": {"sequence_pool_0.tmp_1"},
    **{n: {"warpctc_0.tmp_1"} for n in ("warpctc", "warpctc length")},  # no shape
    # float32 when run, int64 declared
    **{
        f"edit_distance{n}": {f"edit_distance_0.tmp_{i}"}
        for n, i in (("", 0), (" args", 2), (" length", 0))
    },
    "hsigmoid": {"hierarchical_sigmoid_0.tmp_1"},  # no shape
    "hsigmoid no bias": {"my.tmp_1"},
    "hsigmoid custom": {"hierarchical_sigmoid_0.tmp_1"},
    "sampled_softmax": {"sample_logits_0.tmp_6"},  # LOD_TENSOR declared as its dtype
    "sampled_softmax given": {"sample_logits_0.tmp_4"},
    "density_prior_box flat": {"d.tmp_0", "d.tmp_1"},  # -1 for a number that is known
    "yolov3_loss": {"yolov3_loss_0.tmp_1"},  # int32 declared, float32 when run
    # as many rows as boxes declared, which data decide; of the second one int64 declared, int32
    # when run
    **{
        n: {f"{n.split()[0]}_0.tmp_{i}" for i in (0, 1)}
        for n in cases.DETECTION
        if "nms" in n or "output" in n
    },
    "sequence_pad": {"sequence_pad_0.tmp_0"},  # [-1, 1, 3], though the length is unknown
}


def build(expression, name=""):
    main, startup = fluid.Program(), fluid.Program()
    if name.startswith("seed:"):
        main.random_seed = startup.random_seed = 90
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        result = cases.results(eval(expression, cases.namespace(fluid)))
    return main, startup, result


def plain(value):
    if isinstance(value, BlockRef):
        return {"block": value.idx}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


def attributes(op):
    """An op's attributes as recorded: those that differ from the default, without hints."""
    defaults = lookup(op.type).defaults
    found = {}
    for name, value in op.desc.attrs.items():
        if (
            name in SKIP
            or (name == "op_role" and value == 0)
            or (name in defaults and defaults[name] == value)
        ):
            continue
        found[name] = plain(value)
    return found


def close(got, want):
    if isinstance(want, float):
        return got == pytest.approx(want, rel=1e-6, abs=1e-12)
    if isinstance(want, list) and isinstance(got, list):
        return len(got) == len(want) and all(map(close, got, want))
    return got == want


def flags(var):
    found = [k for k in ("persistable", "stop_gradient", "is_data") if getattr(var, k)]
    if isinstance(var, Parameter):
        found += ["parameter"] + ([] if var.trainable else ["frozen"])
        found += [f"lr={var.optimize_attr['learning_rate']:g}", f"average={var.do_model_average}"]
    return found + ([f"lod={var.lod_level}"] if var.lod_level else [])


def compare_ops(block, want, name):
    assert [op.type for op in block.ops] == [kind for kind, *_ in want]
    for op, (kind, ins, outs, attrs) in zip(block.ops, want, strict=True):
        got = [{s: list(n) for s, n in m.items() if n} for m in (op.desc.inputs, op.desc.outputs)]
        if kind == "conditional_block":  # 1.8.5 collects the captured names in a set
            got, (ins, outs) = (
                [{s: sorted(n) for s, n in m.items()} for m in pair] for pair in (got, (ins, outs))
            )
        if kind == "recurrent":  # likewise its parameters
            got[0]["parameters"], ins = (
                sorted(got[0]["parameters"]),
                {**ins, "parameters": sorted(ins["parameters"])},
            )
        assert got == [ins, outs], kind
        mine = attributes(op)
        for attr in (mine.keys() | attrs.keys()) - OTHER_ATTRS.get(name, set()):
            known = lookup(kind).defaults.get(attr)
            left, right = mine.get(attr, plain(known)), attrs.get(attr, plain(known))
            assert close(left, right), f"{kind}.{attr}: {left}, in 1.8.5 {right}"


def compare_vars(block, want, name):
    used = {n for op in block.ops for n in (*op.desc.reads, *op.desc.writes)} | set(block.vars)
    # 1.8.5 leaves a few variables behind that no op touches
    want = {n: v for n, v in want.items() if n in used}
    assert set(block.vars) == set(want)
    for n, (dtype, shape, marks) in want.items():
        var = block.vars[n]
        if shape is None:  # of these no marks are recorded but those of arrays
            assert var.type == VarType[dtype] and (dtype == "RAW" or flags(var) == marks), n
            continue
        assert flags(var) == marks, n
        if n not in OTHER_VARS.get(name, ()):
            assert var.desc.dtype == dtype, n
            assert list(var.desc.shape or ()) == shape or is_xshape(block, n), n


def is_xshape(block, name):
    """XShape outputs carry no data; 1.8.5 gives them the input's shape behind a 0."""
    return any(name in op.output("XShape") for op in block.ops)


@pytest.mark.parametrize("name", [n for n in cases.CASES if n in RECORDED["cases"]])
def test_appends_what_fluid_appends(name):
    want = RECORDED["cases"][name]
    main, startup, result = build(cases.CASES[name], name)
    assert result == want["result"]
    for program, blocks in ((main, want["main"]), (startup, want["startup"])):
        assert [b.parent_idx for b in program.blocks] == [b["parent"] for b in blocks]
        for block, recorded in zip(program.blocks, blocks, strict=True):
            compare_ops(block, recorded["ops"], name)
        for block, recorded in zip(program.blocks, blocks, strict=True):
            compare_vars(block, recorded["vars"], name)


@pytest.mark.parametrize("expression", RECORDED["errors"])
def test_refuses_what_fluid_refuses(expression):
    (kind,), _ = RECORDED["errors"][expression]
    with pytest.raises(FluidError) as caught:
        build(expression)
    if kind == "TypeError":
        assert isinstance(caught.value, TypeError)
    text = str(caught.value)
    assert text and "\n" not in text


def by_layer(exc):
    """Whether a layer's own check of types raised this."""
    tb = exc.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    return (
        isinstance(exc, FluidTypeError) and Path(tb.tb_frame.f_code.co_filename).name == "_build.py"
    )


@pytest.mark.first(100)
@pytest.mark.once
@pytest.mark.parametrize("name", RECORDED["dtypes"])
def test_takes_the_dtypes_that_fluid_takes(name, monkeypatch):
    monkeypatch.setattr(open_sizes, "GUESSES", 20)  # at sizes, of which none of these needs more
    for (position, expression), taken in zip(
        cases.dtype_variants(name), RECORDED["dtypes"][name], strict=True
    ):
        for kind, letter in (
            ("f", "f"),
            ("d", "d"),
            ("h", "h"),
            ("i", "i"),
            ("i32", "n"),
            ("b", "b"),
        ):
            try:
                build(expression.replace("%s(", kind + "(", 1))
            except FluidError as exc:
                # the op may say no, as Paddle's does when the program is built or run
                assert letter not in taken or not by_layer(exc), (
                    f"variable {position} as {kind}: {exc}"
                )
            else:
                assert letter in taken, f"variable {position} as {kind} is accepted"
