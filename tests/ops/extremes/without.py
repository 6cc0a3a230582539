"""Op types of which the audit has no case, each with the reason; a new op of Paddle's has cases or
stands here.

Gradient ops come with their forward op.
"""

from __future__ import annotations

from . import FAMILIES, cases_of
from .recorded import recorded

HEAD = (
    "## Ops without a case\n\nGradient ops are compared with their forward op.\n\n| op types | why"
    " |\n| --- | --- |\n"
)
WITHOUT: dict[str, str] = {
    "They steer a program or talk to its surroundings, and compute nothing.":
        "conditional_block conditional_block_infer create_double_buffer_reader create_py_reader delete_var feed fetch "
        "load load_combine lod_array_length print py_func read_from_array recurrent "
        "read rnn_memory_helper save save_combine select_input tensor_array_to_tensor while write_to_array "
        "select_output fake_init beam_search_decode "
        "array_to_lod_tensor assert lod_rank_table lod_tensor_to_array max_sequence_len merge_lod_tensor "
        "merge_lod_tensor_infer reorder_lod_tensor_by_rank shrink_rnn_memory split_lod_tensor",
    "They move values between the ranks of a job, or to and from parameter servers, as they are; a single process of 1.8.5 "
    "cannot run them.":
        "c_allgather c_allreduce_max c_allreduce_min c_allreduce_prod c_allreduce_sum c_broadcast c_fused_allreduce_sum "
        "c_reducescatter c_sync_calc_stream c_sync_comm_stream c_comm_init c_comm_init_all c_gen_nccl_id gen_nccl_id "
        "allreduce broadcast c_reduce_max c_reduce_min c_reduce_prod c_reduce_sum c_scatter "
        "c_fused_allgather c_fused_reducescatter checkpoint_notify distributed_lookup_table fetch_barrier listen_and_serv "
        "lookup_sparse_table merge_ids prefetch recv ref_by_trainer_id send send_barrier split_byref split_ids "
        "split_selected_rows",
    "They are not ops of Paddle: rewrites of programs and optax optimizers bring them.":
        "c_arrival_order c_arrived c_deal c_deal_allgather c_deal_alltoall c_deal_answer c_deal_reducescatter c_piece "
        "c_share c_table_lookup c_table_owned c_table_rows optax_init optax_update",
    "It keeps what it read of an output, so it needs a program; tests/ops/test_quantize.py compares its steps.":
        "fake_quantize_range_abs_max",
    "They draw, or 1.8.5 has them for the GPU alone; tests/ops/test_ctr.py looks at what they give.":
        "tdm_sampler rank_attention",
    "They take rows apart and together by their numbers, from variables that cannot be fed to an op alone.":
        "get_tensor_from_selected_rows merge_selected_rows",
    "Boxes of detection: their samples (tests/ops/samples) hold ties, empty and reversed boxes, nan and images without any.":
        "anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign density_prior_box detection_map iou_similarity "
        "locality_aware_nms matrix_nms mine_hard_examples multiclass_nms multiclass_nms2 polygon_box_transform prior_box "
        "retinanet_detection_output target_assign yolo_box yolov3_loss",
    "Their ties and infinities are among their samples.": "beam_search equal_reduce",
    "It copies what hashes of small integers choose.": "pyramid_hash",
    "They copy rows and count; a row of special values is among the samples.": "filter_by_instag",
    "They are sums of products over matrices and trees of different sizes; what special values make of those is compared elsewhere.":
        "add_position_encoding match_matrix_tensor sequence_topk_avg_pooling tree_conv var_conv_2d",
    "They stand for several other ops, as 1.8.5's passes for inference write them; the cases of those count.":
        "attention_lstm fc fused_elemwise_activation fused_embedding_fc_lstm fused_embedding_seq_pool fusion_gru fusion_lstm "
        "fusion_repeated_fc_relu fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc fusion_seqpool_concat "
        "fusion_seqpool_cvm_concat fusion_squared_mat_sub",
    "Paddle has them for the GPU alone.": "batch_fc cudnn_lstm flip sync_batch_norm",
    "3.3.1 has them for the GPU alone.": "fused_softmax_mask fused_softmax_mask_upper_triangle rms_norm",
    "It leaves its output as the memory is.": "empty",
    "Only later Paddles have them, and they draw; their samples look at what is drawn.":
        "bernoulli binomial dirichlet gumbel_softmax multinomial poisson rrelu standard_gamma",
}  # fmt: skip


def covered() -> set[str]:
    """Op types with a case that 1.8.5 answers."""
    return {
        case.op
        for family in FAMILIES
        for case in cases_of(family)
        if not recorded(family, case).refused
    }


def listed() -> list[str]:
    """The op types that stand in the table."""
    return [kind for kinds in WITHOUT.values() for kind in kinds.split()]


def section() -> str:
    """The table on the page."""
    rows = (
        f"| {', '.join(f'`{kind}`' for kind in sorted(kinds.split()))} | {why} |"
        for why, kinds in WITHOUT.items()
    )
    return HEAD + "\n".join(rows)
