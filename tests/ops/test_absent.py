"""Op types of 1.8.5 that are not there: without meaning here, for a reason that programs are told, or not yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fluidjax.ops  # noqa: F401  (fills the registry)
from fluidjax.errors import UnsupportedError
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from fluidjax.lower.step import Step
from fluidjax.ops.absent import WITHOUT_MEANING
from fluidjax.ops.registry import REGISTRY

PADDLES = set(json.loads((Path(__file__).parents[1] / "data" / "op_protos_1.8.5.json").read_text()))
# Those that somebody may still build; what is built may stay here for a while.
NOT_YET = set(
    """
create_double_buffer_reader create_py_reader read
add_position_encoding affine_grid allreduce anchor_generator attention_lstm bipartite_match box_clip box_coder
box_decoder_and_assign broadcast center_loss coalesce_tensor collect_fpn_proposals cudnn_lstm deformable_conv
deformable_conv_v1 deformable_psroi_pooling density_prior_box detection_map distribute_fpn_proposals
equal_reduce fc filter_by_instag fsp fused_elemwise_activation fused_embedding_fc_lstm fused_embedding_seq_pool
fusion_gru fusion_lstm fusion_repeated_fc_relu fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc
fusion_seqpool_concat fusion_seqpool_cvm_concat fusion_squared_mat_sub generate_mask_labels
generate_proposal_labels generate_proposals get_places grid_sampler iou_similarity load load_combine
locality_aware_nms match_matrix_tensor matrix_nms mine_hard_examples multiclass_nms multiclass_nms2
polygon_box_transform positive_negative_pair prior_box prroi_pool psroi_pool pyramid_hash
retinanet_detection_output retinanet_target_assign roi_align roi_perspective_transform roi_pool
rpn_target_assign save_combine sequence_topk_avg_pooling similarity_focus spp target_assign tree_conv
var_conv_2d yolo_box yolov3_loss
""".split()
)


def test_the_table_names_ops_of_paddle_that_are_not_there() -> None:
    assert WITHOUT_MEANING.keys() <= PADDLES
    assert not WITHOUT_MEANING.keys() & (REGISTRY.keys() | NOT_YET)


def test_no_other_op_is_missing() -> None:
    assert PADDLES - REGISTRY.keys() <= WITHOUT_MEANING.keys() | NOT_YET
    assert NOT_YET <= PADDLES


def test_a_program_that_needs_one_is_told_why() -> None:
    op = OpDesc(1, "run_program", FrozenMap({}), FrozenMap({"Out": ("x",)}), FrozenMap({}))
    with pytest.raises(UnsupportedError, match=r"not there: run_program \(run_program runs a program of Paddle's dynamic mode"):
        Step(ProgramDesc((BlockDesc(FrozenMap({"x": VarDesc("x")}), (op,)),)), ("x",))
