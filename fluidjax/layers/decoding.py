"""Layers of a beam search over rows with a LoD: one step, and the final sentences."""

from __future__ import annotations

from ..base.loc import located
from ..errors import FluidValueError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, append, typed, variable


@located
def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> tuple[Variable, ...]:
    """The beam_size best candidates of each source: ids and scores [rows, 1], and with
    return_parent_idx the rows that they extend.

    pre_ids, pre_scores [rows, 1]: the last ids and the scores of the sentences so far. scores
    [rows, K]: those of the candidates ids [rows, K] (None: every column is an id): scores of the
    sentence so far with is_accumulated, else probabilities. A source is a sequence of LoD level
    `level` of scores. See the op beam_search.
    """
    variable(pre_ids, "pre_ids", "beam_search", ("int64",))
    variable(pre_scores, "pre_scores", "beam_search", FLOATS)
    typed(ids, "ids", (Variable, type(None)), "beam_search")
    variable(scores, "scores", "beam_search", FLOATS)
    helper = LayerHelper("beam_search", name=name)
    inputs = {"pre_ids": pre_ids, "pre_scores": pre_scores, "scores": scores}
    if ids is not None:
        inputs["ids"] = ids
    made = {
        "selected_scores": helper.create_variable_for_type_inference(pre_scores.dtype),
        "selected_ids": helper.create_variable_for_type_inference(pre_ids.dtype),
        "parent_idx": helper.create_variable_for_type_inference("int32"),
    }
    attrs = {
        "level": level,
        "beam_size": beam_size,
        "end_id": end_id,
        "is_accumulated": is_accumulated,
    }
    append(helper, inputs, made, attrs)
    found = made["selected_ids"], made["selected_scores"]
    return (*found, made["parent_idx"]) if return_parent_idx else found


@located
def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """The sentences of a search and their scores token by token, each source's best first.

    ids, scores: arrays of the ids and scores that beam_search selected in each step. Both results
    have a LoD of two levels: the sentences of each source, the tokens of each sentence.
    """
    variable(ids, "ids", "beam_search_encode", ("int64",))
    variable(scores, "scores", "beam_search_encode", ("float32",))
    if not isinstance(beam_size, int) or beam_size < 1:
        raise FluidValueError(
            f"beam_search_decode's beam_size is an int, 1 or more, not {beam_size!r}"
        )
    helper = LayerHelper("beam_search_decode", name=name)
    made = {
        "SentenceIds": helper.create_variable_for_type_inference(ids.dtype),
        "SentenceScores": helper.create_variable_for_type_inference(scores.dtype),
    }
    append(helper, {"Ids": ids, "Scores": scores}, made, {"beam_size": beam_size, "end_id": end_id})
    return made["SentenceIds"], made["SentenceScores"]


__all__ = ["beam_search", "beam_search_decode"]
