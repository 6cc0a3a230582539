"""sync_batch_norm of one rank alone, which is batch_norm; tests/dist has it on several."""

from ..sample import Sample, away_from_zero, f32, positive


def sync(shape, c, grad=True, **attrs):
    inputs = {
        "X": f32(*shape),
        "Scale": away_from_zero(c),
        "Bias": f32(c),
        "Mean": f32(c),
        "Variance": positive(c),
    }
    outputs = ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"]
    return Sample(
        "sync_batch_norm",
        inputs,
        attrs,
        outputs=outputs,
        grad=["X", "Scale", "Bias"] if grad else (),
        of=["Y"],
        inplace={"MeanOut": "Mean", "VarianceOut": "Variance"},
        paddle=False,
        note="the CPU build has no rings",
    )


SAMPLES = [
    sync((4, 3, 2, 5), 3),
    sync((4, 2, 3), 3, data_layout="NHWC"),
    sync((6, 4), 4, momentum=0.7, epsilon=0.001),
    sync((6, 4), 4, grad=False, is_test=True),
    sync((6, 4), 4, use_global_stats=True, grad=False),
]
SAMPLES += [sync((4, 3, 2, 5), 3, is_test=True, trainable_statistics=True)]
