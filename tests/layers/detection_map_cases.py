"""Batches of detections, and DetectionMAP over them; for fluidjax and Paddle 1.8.5 alike."""

import numpy as np

CASES = {
    "evaluator": dict(evaluator=True, ap_version="11point", difficult=True),
    "computed": dict(evaluator=False, ap_version="integral", difficult=True, computed=True),
}
BATCHES, RESET, CLASSES = 4, 1, 4  # a batch before which everything is forgotten
# of detections and boxes in each image, batch by batch
LENGTHS = ([3, 1], [2, 1]), ([2, 1, 1], [1, 1, 1]), ([4], [3]), ([1, 2, 1], [2, 1, 0])


def batches(fluid, varied):
    """feeds: four detections and three boxes; class 1 has no box in the first batch. Two images, or
    another number in every batch if `varied`.
    """
    random, place = np.random.RandomState(3), fluid.CPUPlace()
    for i in range(BATCHES):
        found_in, there_in = LENGTHS[i if varied else 0]
        near = random.rand(7, 2) * 0.5
        boxes = np.concatenate([near, near + 0.2 + random.rand(7, 2) * 0.3], 1).round(3)
        label = random.randint(2 if i == 0 else 1, CLASSES, (3, 1))
        boxes[:3] = (boxes[4:] + 0.03 * random.randn(3, 4)).round(3)
        kind = np.concatenate([label, random.randint(1, CLASSES, (1, 1))])
        found = np.concatenate([kind, random.rand(4, 1).round(3), boxes[:4]], 1).astype("float32")
        rows = {
            "det": (found, found_in),
            "label": (label.astype("int32"), there_in),
            "box": (boxes[4:].astype("float32"), there_in),
            "difficult": ((random.rand(3, 1) < 0.3).astype("int32"), there_in),
        }
        yield {
            name: fluid.create_lod_tensor(array, [lengths], place)
            for name, (array, lengths) in rows.items()
        }


def run(fluid, evaluators, evaluator, ap_version, difficult, computed=False):
    """(means [batches, 2] of the batch and so far, the true positives that are kept, their offsets)

    computed: an op of the program makes the detections, and the number of images varies.
    """
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        given = [
            fluid.data(n, [None, w], d, lod_level=1)
            for n, w, d in (("det", 6, "float32"), ("label", 1, "int32"), ("box", 4, "float32"))
        ]
        if computed:
            given[0] = fluid.layers.scale(given[0], 1.0)
        if difficult:
            given.append(fluid.data("difficult", [None, 1], "int32", lod_level=1))
        options = dict(
            class_num=CLASSES,
            overlap_threshold=0.3,
            evaluate_difficult=False,
            ap_version=ap_version,
        )
        metric = (
            evaluators.DetectionMAP(*given, **options)
            if evaluator
            else fluid.metrics.DetectionMAP(*given, **options)
        )
    exe, means = fluid.Executor(fluid.CPUPlace()), []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for i, feed in enumerate(batches(fluid, computed)):
            if i == RESET:
                metric.reset(exe)
            feed = {name: value for name, value in feed.items() if difficult or name != "difficult"}
            means.append(
                [
                    np.asarray(v).reshape(())
                    for v in exe.run(main, feed=feed, fetch_list=list(metric.get_map_var()))
                ]
            )
        name = next(n for n in main.global_block().vars if n.endswith("accum_true_pos"))
        state = scope.find_var(name).get_tensor()
        return np.array(means), np.array(state), np.array(state.lod())
