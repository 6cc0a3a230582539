"""fluidjax, or Paddle 1.8.5, through one and the same script."""

import importlib

import numpy as np
import searching
from nets import CASES
from ragged_nets import RAGGED, fed

_module = []


def load(side):
    if side == "paddle":
        _module.append(importlib.import_module("paddle.fluid"))
        return "Paddle " + importlib.import_module("paddle").__version__
    _module.append(importlib.import_module("fluidjax"))
    jax = importlib.import_module("jax")
    return f"fluidjax {_module[0].__version__}, jax {jax.__version__}"


def make(case):
    if case.split()[0] in RAGGED:
        return _on_sentences(case)
    if case.startswith("beam search"):
        return searching.make(_module[0], case)
    return _predicting(case) if case.endswith((", 1", ", 8")) else _training(case)


def _training(case):
    fluid = _module[0]
    net, optimizer, batch = CASES[case]
    feed = batch()
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup):
        loss = net(fluid, feed)
        {
            "sgd": lambda: fluid.optimizer.SGD(0.01),
            "adam": lambda: fluid.optimizer.Adam(1e-3),
            "momentum": lambda: fluid.optimizer.Momentum(1e-2, 0.9),
        }[optimizer]().minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
    # as each is fastest: Paddle compiles a program with many passes, and one device needs no data
    # parallelism
    program = main if fluid.__name__ == "fluidjax" else fluid.CompiledProgram(main)
    # of the first layer: the last one whose gradient is known
    parameter = scope.find_var(main.all_parameters()[0].name)

    def steps(count):
        for _ in range(count):
            (found,) = exe.run(
                program, feed=feed, fetch_list=[loss], scope=scope, return_numpy=False
            )
        return float(np.array(found).ravel()[0])

    # a loss may be there before its step is done
    steps.wait = lambda: float(np.array(parameter.get_tensor()).ravel()[0])
    return steps


def _on_sentences(case):
    """``NET COUNT``: steps on so many batches in turn."""
    fluid = _module[0]
    name, count = case.split()
    net, batches, rate = RAGGED[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = net(fluid)
        fluid.optimizer.SGD(rate).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
    feeds, taken = [fed(fluid, batch) for batch in batches(int(count))], [0]

    def steps(number):
        for _ in range(number):
            (found,) = exe.run(
                main,
                feed=feeds[taken[0] % len(feeds)],
                fetch_list=[loss],
                scope=scope,
                return_numpy=False,
            )
            taken[0] += 1
        return float(np.array(found).ravel()[0])

    return steps


def _predicting(case):
    """Of fluidjax alone; the weights and the net are written for onnxruntime to run the same."""
    import os
    import sys

    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from pathlib import Path

    from benchmarks import fluid_models, fusing

    name, batch = case.rsplit(", ", 1)
    if name in fusing.SAVED:
        folder, shape = fusing.SAVED[name]
        net = fusing.saved(name, folder, (int(batch), *shape))
        if net is None:
            raise FileNotFoundError(f"{folder} is not there; make models fetches it")
        last = next(
            op
            for op in reversed(net.program.global_block().ops)
            if op.type in ("sigmoid", "softmax")
        )
        # whose mean is compared: that of a softmax says nothing, and a sigmoid's may be of the
        # order of 1e-8
        net.fetch = last.input("X")
    elif name == "BERT, 4 layers":
        net = fusing.encoder(int(batch))
    else:
        build = {"ResNet-50": fluid_models.resnet50, "MobileNet-v1": fluid_models.mobilenet_v1}[
            name
        ]
        net = fusing.network(name, build, int(batch))
    folder = Path(os.environ["PEER_MODEL"])
    fusing.export(net, folder / "model.onnx")
    np.savez(folder / "feed.npz", **net.feed)
    fused, _ = net.fused()

    def steps(count):
        for _ in range(count):
            (found,) = fused.run()
        return float(np.abs(np.array(found)).mean())

    return steps
