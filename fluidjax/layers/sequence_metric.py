"""Results from sequences of tags and of best classes: chunk_eval, ctc_greedy_decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import append, variable
from .manip import squeeze
from .reduce import topk


@located
def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
) -> tuple[Variable, ...]:
    """Precision, recall and F1 of the chunks in input, then the number of chunks in input, label
    and both; each [1].

    input, label: int64 tags [rows, 1], one LoD level; or [N, T, 1] with seq_length [N, 1].
    chunk_scheme: IOB, IOE, IOBES or plain; see the op chunk_eval.
    """
    helper = LayerHelper("chunk_eval", input=input)
    variable(input, "input", "chunk_eval", ("int64",))
    variable(label, "label", "chunk_eval", ("int64",))
    inputs = {"Inference": [input], "Label": [label], "SeqLength": seq_length}
    shares, counts = (
        ("Precision", "Recall", "F1-Score"),
        ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"),
    )
    outs = {**dict.fromkeys(shares, "float32"), **dict.fromkeys(counts, "int64")}
    attrs = {
        "num_chunk_types": num_chunk_types, "chunk_scheme": chunk_scheme, "excluded_chunk_types": list(excluded_chunk_types or []),
    }  # fmt: skip
    return append(helper, inputs, outs, attrs)


@located
def ctc_greedy_decoder(
    input: Variable,
    blank: int,
    input_length: Variable | None = None,
    padding_value: int = 0,
    name: str | None = None,
) -> Any:
    """The best class of each step, with runs of equal ones merged and then blanks removed.

    input [rows, classes + 1], one LoD level: [rows', 1] with a LoD. Or [N, T, classes + 1] with
    input_length [N, 1]: [N, T], padding_value after the end, and the lengths [N, 1].
    """
    helper = LayerHelper("ctc_greedy_decoder", input=input, name=name)
    _, indices = topk(input, k=1)
    out = helper.create_variable_for_type_inference("int64")
    attrs = {"merge_repeated": True, "blank": blank}
    if input_length is None:
        return append(helper, {"Input": [indices]}, {"Output": out}, attrs, kind="ctc_align")
    sizes = helper.create_variable_for_type_inference("int64")
    inputs = {"Input": [squeeze(indices, [2])], "InputLength": [input_length]}
    attrs["padding_value"] = padding_value
    return append(helper, inputs, {"Output": out, "OutputLength": sizes}, attrs, kind="ctc_align")


__all__ = ["chunk_eval", "ctc_greedy_decoder"]
