"""Programs of detection that are recorded from 1.8.5 (tests/tools/record_detection.py); for Python
3.8 too.
"""

import numpy as np

PRIORS = np.array(
    [[x, y, x + 0.3, y + 0.3] for y in (0.0, 0.3, 0.6) for x in (0.0, 0.3, 0.6)], "float32"
)
GT = np.array(
    [[0.05, 0.02, 0.33, 0.3], [0.6, 0.55, 0.9, 0.95], [0.28, 0.31, 0.62, 0.58]], "float32"
)


def feeds():
    r = np.random.RandomState(5)
    return {
        "place": r.uniform(-1, 1, (2, 9, 4)).astype("float32"),
        "kind": r.uniform(-2, 2, (2, 9, 3)).astype("float32"),
    }


def ssd_loss(fluid, **attrs):
    """the loss of two images with two boxes and one, and its gradients"""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        place, kind = fluid.data("place", [2, 9, 4]), fluid.data("kind", [2, 9, 3])
        place.stop_gradient = kind.stop_gradient = False
        box, kinds = (
            fluid.data("box", [None, 4], lod_level=1),
            fluid.data("label", [None, 1], "int32", lod_level=1),
        )
        priors = fluid.data("priors", [9, 4])
        loss = fluid.layers.ssd_loss(place, kind, box, kinds, priors, [0.1, 0.1, 0.2, 0.2], **attrs)
        grads = fluid.gradients([loss], [place, kind])
    label = np.array([[1], [2], [2]], "int32")
    tensors = [fluid.create_lod_tensor(a, [[2, 1]], fluid.CPUPlace()) for a in (GT, label)]
    feed = dict(feeds(), box=tensors[0], label=tensors[1], priors=PRIORS)
    exe = fluid.Executor(fluid.CPUPlace())
    return [
        np.array(v) for v in exe.run(main, feed=feed, fetch_list=[loss, *grads], return_numpy=False)
    ]


CASES = {
    "plain": {},
    "not normalized": {"normalize": False, "neg_pos_ratio": 1.0, "overlap_threshold": 0.3},
    "weights": {
        "loc_loss_weight": 0.5,
        "conf_loss_weight": 2.0,
        "match_type": "bipartite",
        "neg_overlap": 0.2,
    },
}
