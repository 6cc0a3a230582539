"""Boxes: the simpler layers of detection."""

from __future__ import annotations

from ..draw import kind


def boxes(d, n, size=10.0, open=None):
    import numpy as np

    r = np.random.RandomState(d.number(0, 10**6))
    a = r.uniform(0, size / 2, (n, 2))
    b = a + r.uniform(1, size / 2, (n, 2))
    return d.new(
        [n, 4],
        "float32",
        ["list", np.round(np.concatenate([a, b], 1), 3).tolist()],
        sg=True,
        open=open,
    )


@kind(2)
def detection(d):
    if d.wide:
        return None
    n, h, w = d.batch, d.number(2, 3), d.number(2, 3)
    image = d.new([n, 3, 16, 16], "float32", ["uniform", -1, 1], sg=True)
    feature = d.floats(shape=[n, 2, h, w], open=False)
    a, b = d.number(1, 4), d.number(1, 3)
    lengths = [d.number(1, 2) for _ in range(n)]

    def rois():
        import numpy as np

        r = np.random.RandomState(d.number(0, 10**6))
        p = r.uniform(0, 6, (sum(lengths), 2))
        v = np.concatenate([p, p + r.uniform(2, 8, p.shape)], 1)
        return d.new(
            [sum(lengths), 4],
            "float32",
            ["list", np.round(v, 3).tolist()],
            lengths=[lengths],
            sg=True,
        )

    return d.one(
        lambda: (
            "L.prior_box(%s, %s, min_sizes=[%s]%s)"
            % (
                feature,
                image,
                d.real(2, 6),
                d.args(
                    max_sizes=d.one(None, [d.real(7, 12)]),
                    aspect_ratios=d.one(None, [1.0, 2.0]),
                    flip=d.one(None, True),
                    clip=d.one(None, True),
                    steps=d.one(None, [4.0, 5.0]),
                    min_max_aspect_ratios_order=d.one(None, True),
                ),
            )
        ),
        lambda: (
            "L.density_prior_box(%s, %s, densities=[2], fixed_sizes=[4.0], fixed_ratios=[1.0]%s)"
            % (feature, image, d.args(clip=d.one(None, True), flatten_to_2d=d.one(None, True)))
        ),
        lambda: (
            "L.anchor_generator(%s, anchor_sizes=[16., 32.], aspect_ratios=[0.5, 1.0], stride=[8.0,"
            " 8.0]%s)" % (feature, d.args(offset=d.one(None, 0.3)))
        ),
        lambda: (
            "L.iou_similarity(%s, %s%s)"
            % (boxes(d, a), boxes(d, b), d.args(box_normalized=d.one(None, False)))
        ),
        lambda: (
            "L.box_coder(%s, %s, %s, code_type='encode_center_size'%s)"
            % (
                boxes(d, b),
                d.one("[0.1, 0.1, 0.2, 0.2]", "None"),
                boxes(d, a),
                d.args(box_normalized=d.one(None, False)),
            )
        ),
        lambda: (
            "L.box_coder(%s, [0.1, 0.1, 0.2, 0.2], %s, code_type='decode_center_size', axis=0)"
            % (
                boxes(d, b, open=False),
                d.new([a, b, 4], "float32", ["uniform", -0.5, 0.5], open=False),
            )
        ),
        lambda: (
            "L.box_clip(%s, %s)"
            % (rois(), d.new([n, 3], "float32", ["list", [[8.0, 9.0, 1.0]] * n]))
        ),
        lambda: (
            "L.roi_align(%s, %s, %d, %d, spatial_scale=0.25, sampling_ratio=%d)"
            % (feature, rois(), d.number(1, 2), d.number(1, 2), d.one(-1, 2))
        ),
        lambda: (
            "L.roi_pool(%s, %s, %d, %d, spatial_scale=0.25)"
            % (feature, rois(), d.number(1, 2), d.number(1, 2))
        ),
        lambda: "L.psroi_pool(%s, %s, 2, 0.25, 1, 1)" % (feature, rois()),
        lambda: (
            "L.prroi_pool(%s, %s, 0.25, %d, %d)" % (feature, rois(), d.number(1, 2), d.number(1, 2))
        ),
        lambda: (
            "L.bipartite_match(%s, '%s', 0.3)"
            % (
                d.new([sum(lengths), 3], "float32", ["uniform", 0.01, 0.99], lengths=[lengths]),
                d.one("bipartite", "per_prediction"),
            )
        ),
        lambda: (
            "L.yolo_box(%s, %s, [4, 5], 2, 0.01, 8%s)"
            % (
                d.new([n, 7, h, w], "float32", ["uniform", -1, 1], open=False),
                d.new([n, 2], "int32", ["ints", 12, 20], open=False),
                d.args(clip_bbox=d.one(None, False)),
            )
        ),
        lambda: (
            "L.yolov3_loss(%s, %s, %s, [4, 5, 8, 9], [0, 1], 2, 0.5, 8%s)"
            % (
                d.new([n, 14, h, w], "float32", ["uniform", -1, 1], open=False),
                d.new([n, 2, 4], "float32", ["uniform", 0.2, 0.6], open=False),
                d.new([n, 2], "int32", ["ints", 0, 2], open=False),
                d.args(use_label_smooth=d.one(None, False)),
            )
        ),
        lambda: (
            "L.multiclass_nms(%s, %s, 0.1, 10, 5, nms_threshold=0.4, normalized=False)"
            % (
                d.new(
                    [1, a + 1, 4],
                    "float32",
                    ["list", [[[float(i), float(i), i + 4.0, i + 5.0] for i in range(a + 1)]]],
                    open=False,
                ),
                d.new([1, 2, a + 1], "float32", ["uniform", 0.01, 0.99], open=False),
            )
        ),
    )()
