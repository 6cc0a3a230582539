"""The nets hand-written in flax, channels last, with optax and a jitted, donating step."""

import os
import sys

import numpy as np
from nets import CASES


def load(side):
    import flax
    import jax

    return f"flax {flax.__version__}, jax {jax.__version__}"


def make(case):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    import jax
    import optax

    from benchmarks import flax_models

    _, optimizer, batch = CASES[case]
    feed = {
        n: np.ascontiguousarray(v.transpose(0, 2, 3, 1)) if v.ndim == 4 else v
        for n, v in batch().items()
    }
    model = {
        "fit-a-line": flax_models.FitALine, "2 layers": flax_models.TwoLayers, "LeNet": flax_models.LeNet,
        "MLP": flax_models.MLP, "small ResNet": flax_models.SmallResNet,
        "ResNet-32": flax_models.ResNet32, "ResNet-18": flax_models.ResNet18, "transformer": flax_models.Encoder,
    }[case]()  # fmt: skip
    update = {
        "sgd": optax.sgd(0.01),
        "adam": optax.adam(1e-3),
        "momentum": optax.sgd(1e-2, momentum=0.9),
    }[optimizer]
    state, step = flax_models.training(model, update, feed, jitted=True)
    held = [state]

    def steps(count):
        for _ in range(count):
            held[0], loss = step(held[0], feed)
        return float(jax.block_until_ready(loss))

    return steps
