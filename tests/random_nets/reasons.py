"""Differences that have a reason, by the heading in docs/random-nets.md that says it in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

DTYPE = "Dtypes that are declared otherwise than they are written"
SIZES = "Sizes that are known less exactly"
GRADIENTS = "The LoD of gradients"
OTHER_ROWS = "The LoD of rows that are others"
CLIPPED = "A gradient of zero that is clipped by its norm"
OUTPUTS = "Outputs that an op does not write"
NOTHING = "Rows of which there are none"
WRONG = "Where 1.8.5 is wrong"

HEADING = {"dtype": DTYPE, "shape": SIZES, "lod_level": OTHER_ROWS}

# Outputs that 1.8.5 declares otherwise than its own kernels make them, or whose LoD is that of
# other rows.
DECLARED = {
    "shape.Out": {"dtype"},
    "max_pool2d_with_index.Mask": {"dtype"},
    "max_pool3d_with_index.Mask": {"dtype"},
    "edit_distance.Out": {"dtype"},
    "edit_distance.SequenceNum": {"dtype"},
    "roi_pool.Argmax": {"dtype"},
    "yolov3_loss.ObjectnessMask": {"dtype"},
    "isinf.Out": {"dtype"},
    "isnan.Out": {"dtype"},
    "expand_as.Out": {"shape"},
    "sequence_pad.Out": {"shape"},
    "sequence_pool.Out": {"shape"},
    "sequence_pool.MaxIndex": {"dtype", "shape"},
    "im2sequence.Out": {"shape"},
    "multiclass_nms.Out": {"shape"},
    "tensor_array_to_tensor.OutIndex": {"shape"},
    "split_lod_tensor.OutTrue": {"shape", "lod_level"},
    "split_lod_tensor.OutFalse": {"shape", "lod_level"},
    "matmul.Out": {"lod_level"},
    "stack.Y": {"lod_level"},
    "gather_nd.Out": {"lod_level"},
    "index_select.Out": {"lod_level"},
    "strided_slice.Out": {"lod_level"},
    "flatten2.Out": {"lod_level"},
    "shrink_rnn_memory.Out": {"shape"},
    "lod_tensor_to_array.Out": {"shape"},
    "array_to_lod_tensor.Out": {"shape"},
    "accuracy.Accuracy": {"lod_level"},
}
SHAPES = (
    "reshape2",
    "transpose2",
    "squeeze2",
    "unsqueeze2",
    "flatten2",
)  # XShape carries a shape alone, in its own way
GRADIENT = re.compile(r"@GRAD|/g\d+\[")


def declared(op: str, slot: str) -> set[str]:
    """The fields in which this output may differ, and what follows from it."""
    if slot == "XShape" and op in SHAPES:
        return {"shape", "lod_level"}
    return DECLARED.get(f"{op}.{slot}", set())


def of_variable(name: str, field: str, own: Any, his: Any) -> str | None:
    """Why a field of a variable may differ, whatever op makes it."""
    if field in ("lod_level", "lengths") and GRADIENT.search(name) and not (own and his):
        return GRADIENTS
    if field == "shape" and (
        not his
        or (own == [] and his == [0])
        or (len(own) == len(his) and all(a == b or b == -1 for a, b in zip(own, his, strict=True)))
    ):
        return SIZES
    # of what gradients renames, float32 is declared
    if field == "dtype" and name.startswith("grad/"):
        return DTYPE
    return None


# Ops that 1.8.5 computes wrongly where this holds of their inputs, outputs, attributes and declared
# shapes, and of which variables are float64; what follows from them is not compared.
Slots = dict[str, list[str]]
Shape = Callable[[str], list[int]]
COMPUTED_WRONGLY: dict[str, Callable[[Slots, Slots, dict[str, Any], Shape, set[str]], bool]] = {
    "layer_norm_grad": lambda ins, outs, attrs, shape, double: (
        bool(ins.get("Scale")) and not outs.get("Scale@GRAD")
    ),
    "pad_grad": lambda ins, outs, attrs, shape, double: attrs["paddings"][-1] > 0,
    "while_grad": lambda ins, outs, attrs, shape, double: any(
        n in ins.get("Out", ()) and shape(n) and grad != "@EMPTY@"
        for n, grad in zip(ins["X"], outs.get("X@GRAD", ()), strict=True)
    ),  # of what a while_loop carries, which is not an array
    "pad_constant_like_grad": lambda ins, outs, attrs, shape, double: (
        shape(ins["Y"][0])[-1:] != shape(ins["Out@GRAD"][0])[-1:]
    ),
}
COMPUTED_WRONGLY |= dict.fromkeys(
    ("pool2d_grad", "pool3d_grad"),
    lambda ins, outs, attrs, shape, double: (
        attrs.get("pooling_type") == "avg" and ins["X"][0] in double
    ),
)
NO_ROWS = {
    "where_index": "Out",
    "ctc_align": "Output",
}  # what 1.8.5 leaves as it was, or gives a row that is in no sequence


def astray(net: Any, empty: Callable[[int, str], bool]) -> list[dict[str, str]]:
    """For each run, what follows from ops that 1.8.5 computes wrongly: names, and the reason; at
    the end, what the state has of it.

    empty: whether a variable has no elements here in a run.
    """
    blocks: dict[str, Any] = net["programs"]
    found: list[dict[str, str]] = []
    names: dict[str, str] = {}
    double = {n for b in blocks["main"] for n, v in b["vars"].items() if v[1] == "float64"}

    def shape(name: str) -> list[int]:
        return next((b["vars"][name][2] or [] for b in blocks["main"] if name in b["vars"]), [])

    def sweep(program: Any, number: int, idx: int) -> None:
        for kind, ins, outs, attrs in program[idx]["ops"]:
            for value in attrs.values():
                if isinstance(value, dict):
                    sweep(program, number, value["block"])
                    # what an iteration leaves to the next one
                    sweep(program, number, value["block"])
            why = next((names[n] for given in ins.values() for n in given if n in names), None)
            wrongly = COMPUTED_WRONGLY.get(kind)
            if wrongly is not None and wrongly(ins, outs, attrs, shape, double):
                why = WRONG
            if kind in NO_ROWS and empty(number, outs[NO_ROWS[kind]][0]):
                why = NOTHING
            if why is not None:
                names.update((n, why) for written in outs.values() for n in written)

    for number, (which, _) in enumerate(net["runs"]):
        program = blocks["test" if which == "test" else "main"]
        state = {n for b in blocks["main"] for n, v in b["vars"].items() if v[3]}
        names = {n: why for n, why in names.items() if n in state}
        sweep(program, number, 0)
        found.append(dict(names))
    return [*found, names]


# What 1.8.5 alone refuses, by what it says.
REFUSED = {
    "optimizers in float64": re.compile(
        r"desires to be (double|float)\b.*|does not have kernel for data_type\[double\]"
        "|duplicable Variable LearningRate must be consistent"
    ),
    "sparse gradients that are fetched": re.compile(
        "LoDTensor.*but the type it holds is .*SelectedRows"
    ),
    "gradients for fewer inputs than its kernels insist on": re.compile(
        "must be null or not be null at same time|should hold one element, but now it holds"
        " 0|data_norm_op.cc:40[14]"
        r"|^NotFoundError: No Output\([A-Z]\w*@GRAD\) found for \w+ ?operator|Output\(X@GRAD\)"
        r" should be not null"
        r"|The output of\((inputs|parameters)@GRAD\) should not be empty"
        r"|received param_dim:\d+ != ctx->GetInputDim\(\"Grad\"\):0"
        r"|Tensor in the \w+ Op's Input Variable X\(instance_norm_\d+\.\w+@GRAD\) is not initialized"
    ),
    "training through batch_norm(is_test=True)": re.compile(
        "`is_test = True` CANNOT be used in train program"
    ),
    "gradients of a window that lies before its row": re.compile(
        "^Error: Output_height and padding.* are inconsistent"
    ),
    "gradients where no source is reached": re.compile("^list index out of range$"),
    "gradients of only some of an op's outputs": re.compile(
        r"No Input\(X\) found for Concat operator|Input\([HC]@GRAD\) should not be null"
    ),
    "gradients of a cond that are asked for twice": re.compile(
        "Size of forward ops must be greater or equal to backward ops"
    ),
    "gradients of a condition": re.compile(r"op sum does not have kernel for data_type\[bool\]"),
    "losses of what it declares as int64": re.compile(
        "data type of 'x' in mean must be .* but received int64"
    ),
    "losses of a known number of rows and labels of an open one": re.compile(
        r"Input\(X\) and Input\(Label\) should have the same shape except the last dimension"
        r".* rank - 1\):-?\d+ != "
    ),
    "gradients of what a DynamicRNN gives": re.compile("operator < lod_tensor_to_array > error"),
    "gradients of rows that a recurrent op reads reversed": re.compile(
        r"Input\(X\) Tensor of SequenceReverseOp does not contain LoD"
    ),
    "target gradients in the shape that it declares open": re.compile(
        "^The shapes of target and grad are different: affine_grid"
    ),
    "training through sequence_pool(is_test=True)": re.compile(
        "dimension of index and output@Grad shall be same|operator < sequence_pool_grad > error"
    ),
}


def of_refusal(record: Any) -> str | None:
    """Why only 1.8.5 refuses a net, in the words of docs/random-nets.md."""
    return next((why for why, said in REFUSED.items() if said.search(record["error"][1])), None)
