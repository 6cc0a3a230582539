"""A small two-stage detector, for the recorder on Paddle 1.8.5 (Python 3.8) and for the tests."""

import numpy as np

LODS = [[2, 1], [1, 2], [2, 1]]  # how many boxes each image has, step by step


def arrays():
    source = np.random.RandomState(4)
    y, x, s = np.meshgrid(
        np.arange(8) * 2 + 1, np.arange(8) * 2 + 1, np.array([5.0, 8.0]), indexing="ij"
    )
    anchors = np.stack([x - s / 2, y - s / 2, x + s / 2, y + s / 2], -1).astype("float32")
    return {
        "img": source.rand(2, 3, 16, 16).astype("float32"), "anchors": anchors, "var": np.ones_like(anchors),
        "info": np.array([[16, 16, 1], [16, 16, 1]], "float32"), "gt": np.array([[1, 1, 6, 6], [8, 8, 14, 14], [3, 2, 9, 9]], "float32"),
        "crowd": np.zeros((3, 1), "int32"), "cls": np.array([[1], [2], [1]], "int32"),
    }  # fmt: skip


def build(fluid):
    """The four losses, their sum, the regions that were trained on and the labels of the anchors."""
    L, source = fluid.layers, np.random.RandomState(7)

    def weight(*shape):
        return fluid.ParamAttr(
            initializer=fluid.initializer.NumpyArrayInitializer(
                (source.rand(*shape) / 2 - 0.25).astype("float32")
            )
        )

    img, info = (
        fluid.data("img", [None, 3, 16, 16], "float32"),
        fluid.data("info", [None, 3], "float32"),
    )
    anchors, var = (fluid.data(n, [8, 8, 2, 4], "float32") for n in ("anchors", "var"))
    gt = fluid.data("gt", [None, 4], "float32", 1)
    crowd, cls = (fluid.data(n, [None, 1], "int32", 1) for n in ("crowd", "cls"))
    conv = L.conv2d(img, 4, 3, stride=2, padding=1, act="relu", param_attr=weight(4, 3, 3, 3))
    score, delta = (
        L.conv2d(conv, 2, 1, param_attr=weight(2, 4, 1, 1)),
        L.conv2d(conv, 8, 1, param_attr=weight(8, 4, 1, 1)),
    )
    logits, moves = (
        L.reshape(L.transpose(v, [0, 2, 3, 1]), [0, -1, n]) for v, n in ((score, 1), (delta, 4))
    )
    flat = L.reshape(anchors, [-1, 4]), L.reshape(var, [-1, 4])
    logit, box, label, target, inside = L.rpn_target_assign(
        moves, logits, *flat, gt, crowd, info, 16, 0.0, 0.5, 0.5, 0.3, False
    )
    losses = [
        L.reduce_mean(L.sigmoid_cross_entropy_with_logits(logit, L.cast(label, "float32"))),
        L.reduce_sum(L.smooth_l1(box, target, inside, inside, sigma=3.0)) / 16.0,
    ]
    rois, _ = L.generate_proposals(
        L.sigmoid(score), delta, info, anchors, var, 64, 10, 0.7, 0.1, 1.0
    )
    rois, labels, targets, inside, outside = L.generate_proposal_labels(
        rois, cls, crowd, gt, info, 8, 0.5, 0.5, 0.5, 0.0, class_nums=3, use_random=False
    )
    pooled = L.roi_align(conv, rois, 2, 2, 0.5, 2)
    kind, box = (
        L.fc(pooled, 3, param_attr=weight(16, 3)),
        L.fc(pooled, 12, param_attr=weight(16, 12)),
    )
    losses += [
        L.reduce_mean(L.softmax_with_cross_entropy(kind, L.cast(labels, "int64"))),
        L.reduce_mean(L.smooth_l1(box, targets, inside, outside)),
    ]
    loss = losses[0] + losses[1] + losses[2] + losses[3]
    fluid.optimizer.SGD(0.05).minimize(loss)
    return [*losses, loss, rois, label]


def feed(fluid, lod):
    return {
        k: fluid.create_lod_tensor(v, [lod], fluid.CPUPlace()) if k in ("gt", "crowd", "cls") else v
        for k, v in arrays().items()
    }


def trained(fluid):
    """Of each step: the losses, and the rows and LoD of the regions."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetches = build(fluid)
    exe, found = fluid.Executor(fluid.CPUPlace()), []
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        for lod in LODS:
            got = exe.run(main, feed=feed(fluid, lod), fetch_list=fetches, return_numpy=False)
            found.append(
                {
                    "losses": [float(np.array(v).reshape(-1)[0]) for v in got[:5]],
                    "rois": np.array(got[5]).tolist(),
                    "lod": got[5].lod(),
                    "labels": np.array(got[6]).reshape(-1).tolist(),
                }
            )
    return main, found
