"""``python searched.py SIDE FILE``: CTC, CRF and NMS of one side, on one thread, with the arrays of
FILE.npz.

SIDE: fluidjax or paddle (one script for both), or torch. Prints the version, then JSON: for each
case the CPU ms of a run with its gradients; and writes what it computed to SIDE.npz beside FILE.
torch has CTC; the other two are written for it here.
"""

import json
import os
import sys

import numpy as np
from clock import milliseconds

CLASSES, TOP, KEPT, IOU, LEAST = 20, 400, 100, 0.3, 0.01


def of_fluid(fluid, given):
    """Case -> a run that returns its outputs, for both fluidjax and Paddle."""
    layers = fluid.layers

    def ctc():
        logits, labels = _data(fluid, given, "ctc.logits", True), _data(fluid, given, "ctc.labels")
        loss = layers.warpctc(
            logits,
            labels,
            0,
            False,
            _data(fluid, given, "ctc.steps"),
            _data(fluid, given, "ctc.sizes"),
        )
        return [loss, *fluid.gradients([loss], [logits])]

    def crf():
        emission = _data(fluid, given, "crf.emission", True)
        name = fluid.ParamAttr(name="crf.transition")
        cost = layers.linear_chain_crf(
            emission, _data(fluid, given, "crf.label"), name, _data(fluid, given, "crf.length")
        )
        transition = fluid.default_main_program().global_block().var("crf.transition")
        return [cost, *fluid.gradients([cost], [emission, transition])]

    def nms():
        boxes, scores = _data(fluid, given, "nms.boxes"), _data(fluid, given, "nms.scores")
        return [layers.multiclass_nms(boxes, scores, LEAST, TOP, KEPT, IOU, background_label=-1)]

    return {
        "ctc": _run(fluid, given, ctc),
        "crf": _run(fluid, given, crf),
        "nms": _run(fluid, given, nms),
    }


def _data(fluid, given, name, wanted=False):
    variable = fluid.data(name, list(given[name].shape), str(given[name].dtype))
    variable.stop_gradient = not wanted
    return variable


def _run(fluid, given, case):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetched = case()
    feed = {n: a for n, a in given.items() if n.startswith(case.__name__) and n != "crf.transition"}
    exe = fluid.Executor(fluid.CPUPlace())

    def run():
        with fluid.scope_guard(scope):
            return [
                np.asarray(v)
                for v in exe.run(main, feed=feed, fetch_list=fetched, return_numpy=False)
            ]

    with fluid.scope_guard(scope):
        if case.__name__ == "crf":
            exe.run(startup)
            scope.find_var("crf.transition").get_tensor().set(
                given["crf.transition"], fluid.CPUPlace()
            )
    return run


def of_torch(given):
    """The same with torch."""
    import torch

    torch.set_num_threads(1)
    there = {n: torch.from_numpy(a) for n, a in given.items()}

    def ctc():
        logits = there["ctc.logits"].clone().requires_grad_()
        steps, sizes = there["ctc.steps"], there["ctc.sizes"]
        loss = torch.nn.functional.ctc_loss(
            logits.log_softmax(2), there["ctc.labels"], steps, sizes, reduction="none"
        )
        loss.sum().backward()
        return [loss.detach().numpy()[:, None], logits.grad.numpy()]

    def crf():
        emission, transition = (
            there["crf." + n].clone().requires_grad_() for n in ("emission", "transition")
        )
        label, length = there["crf.label"][..., 0], there["crf.length"][:, 0]
        begin, end, step = transition[0], transition[1], transition[2:]
        alive = torch.arange(emission.shape[1])[None] < length[:, None]
        alpha = begin + emission[:, 0]
        for t in range(1, emission.shape[1]):
            new = torch.logsumexp(alpha[:, :, None] + step, 1) + emission[:, t]
            alpha = torch.where(alive[:, t, None], new, alpha)
        said = (emission.gather(2, label[..., None])[..., 0] * alive).sum(1) + begin[label[:, 0]]
        said = (
            said
            + end[label.gather(1, length[:, None] - 1)[:, 0]]
            + (step[label[:, :-1], label[:, 1:]] * alive[:, 1:]).sum(1)
        )
        cost = torch.logsumexp(alpha + end, 1) - said
        cost.sum().backward()
        return [cost.detach().numpy()[:, None], emission.grad.numpy(), transition.grad.numpy()]

    def nms():
        boxes, found = there["nms.boxes"][0], []
        for kind, scores in enumerate(there["nms.scores"][0]):
            best, order = scores.topk(TOP)
            order = order[best > LEAST]
            b = boxes[order]
            area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
            low, high = (
                torch.maximum(b[:, None, :2], b[None, :, :2]),
                torch.minimum(b[:, None, 2:], b[None, :, 2:]),
            )
            shared = (high - low).clamp(min=0).prod(2)
            apart = shared / (area[:, None] + area - shared) <= IOU
            alive = torch.ones(len(order), dtype=torch.bool)
            for i in range(len(order)):
                if alive[i]:
                    found.append((float(scores[order[i]]), kind, int(order[i])))
                    alive &= apart[i]
        best = sorted(found, key=lambda f: -f[0])[:KEPT]
        return [
            np.array(
                [
                    [kind, score, *boxes[at].tolist()]
                    for score, kind, at in sorted(best, key=lambda f: f[1])
                ],
                "float32",
            )
        ]

    return {"ctc": ctc, "crf": crf, "nms": nms}


def main(side, path):
    given = dict(np.load(path))
    if side == "torch":
        import torch as library

        runs = of_torch(given)
    elif side == "paddle":
        import paddle as library
        import paddle.fluid as fluid

        runs = of_fluid(fluid, given)
    else:
        import fluidjax as library

        runs = of_fluid(library, given)
    print(side + " " + library.__version__)
    values = {f"{name}.{i}": v for name, run in runs.items() for i, v in enumerate(run())}
    np.savez(os.path.join(os.path.dirname(path), side + ".npz"), **values)
    print(json.dumps({name: milliseconds(run) for name, run in runs.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
