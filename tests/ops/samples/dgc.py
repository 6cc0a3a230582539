"""Deep gradient compression, the part that needs no NCCL."""

import numpy as np

from ..sample import Sample, f32


def number(value):
    return np.array([value], "float32")


def clipped(step, begin, largest):
    """written over X where nothing else is written at all; in place the norm of 1.8.5's kernel
    changes while it writes
    """
    inputs = {"X": f32(3, 4), "current_step": number(step)}
    return Sample(
        "dgc_clip_by_norm",
        inputs,
        {"max_norm": largest, "rampup_begin_step": begin},
        ["Out"],
        inplace={} if 0 <= begin <= step else {"Out": "X"},
    )


def update(step, begin, nesterov=False):
    inputs = {
        "Param": f32(3, 2),
        "Grad": f32(3, 2),
        "Velocity": f32(3, 2),
        "LearningRate": number(0.1),
        "current_step": number(step),
        "nranks": number(2),
    }
    attrs = {"mu": 0.9, "use_nesterov": nesterov, "rampup_begin_step": begin}
    inplace = {"Grad_out": "Grad", "ParamOut": "Param", "VelocityOut": "Velocity"}
    return Sample(
        "dgc_momentum", inputs, attrs, ["Grad_out", "ParamOut", "VelocityOut"], inplace=inplace
    )


SAMPLES = [
    clipped(5, 0.0, 0.5),
    clipped(5, 5.0, 0.5),
    clipped(4, 5.0, 0.5),
    clipped(5, -1.0, 0.5),
    clipped(5, 0.0, 50.0),
    update(0, 3.0),
    update(3, 3.0),
    update(2, 3.0, True),
    update(1, -1.0),
]
