"""Names that fluid.layers had in Paddle 1.8.5 and fluidjax lacks, with what to use instead."""

from __future__ import annotations

_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "is a sequence layer that is not there",
        "filter_by_instag",
    ),
    (
        "is cudnn's LSTM, which is not there; use dynamic_lstm, or rnn with an LSTMCell",
        "lstm",
    ),
    (
        "belongs to object detection, which is not there",
        "anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign collect_fpn_proposals "
        "deformable_conv deformable_roi_pooling density_prior_box detection_output distribute_fpn_proposals "
        "generate_mask_labels generate_proposal_labels generate_proposals iou_similarity locality_aware_nms matrix_nms "
        "multi_box_head multiclass_nms polygon_box_transform prior_box prroi_pool psroi_pool "
        "retinanet_detection_output retinanet_target_assign roi_align roi_perspective_transform roi_pool "
        "rpn_target_assign "
        "ssd_loss target_assign yolo_box yolov3_loss",
    ),
    (
        "reads data inside the program, which is not there; feed it, or use fluid.io.DataLoader",
        "create_py_reader_by_data double_buffer load py_reader read_file",
    ),
    (
        "is not there",
        "add_position_encoding affine_grid center_loss fsp_matrix grid_sampler similarity_focus",
    ),
)
HINTS = {name: hint for hint, names in _GROUPS for name in names.split()}
