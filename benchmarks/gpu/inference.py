"""Predictions of ResNet-50, and of the PP-OCR models where they are (`make models`), with and
without their batch norms folded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fluidjax as fluid

from .. import data
from . import nets
from .bench import Fluid, Side, both, choose, compared, executable, on_device, peak, timed
from .records import Found

ROOT = Path(__file__).parents[2]
MODELS = Path(os.environ.get("FLUIDJAX_MODELS") or ROOT / ".cache/models")
OCR = {
    "det": ("ch_PP-OCRv4_det_infer", (1, 3, 640, 640), (1, 3, 32, 32)), "rec": ("ch_PP-OCRv4_rec_infer", (8, 3, 48, 320), (1, 3, 48, 40)),
    "cls": ("ch_ppocr_mobile_v2_cls_infer", (8, 3, 48, 192), (1, 3, 48, 32)),
}  # fmt: skip
FOLDING = "inference,fuse_batch_norm,dce"


def folded(program: fluid.Program, targets: Any, scope: fluid.Scope) -> fluid.Program:
    """The program without its batch norms."""
    with fluid.scope_guard(scope):
        made, _ = fluid.transpiler.apply_passes(program, FOLDING, targets)
    return made


def both_ways(
    program: fluid.Program, startup: fluid.Program, targets: Any, scope: fluid.Scope
) -> dict[str, Fluid]:
    plain = Fluid(program, startup, targets, scope)
    names = [getattr(t, "name", t) for t in targets]
    return {
        "plain": plain,
        "folded": Fluid(folded(program, targets, scope), fluid.Program(), names, scope),
    }


def resnet50() -> Iterator[Found]:
    """At several batch sizes, beside flax."""
    pixels, classes, batches = choose((224, 1000, (1, 16, 64)), (32, 10, (2,)))
    stages = choose(nets.STAGES, ((8, 1), (16, 1)))
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        logits = nets.resnet50_logits("NCHW", pixels, classes, stages)
    main = main.clone(for_test=True)
    ours = both_ways(main, startup, [main.global_block().var(logits.name)], fluid.Scope())
    model = nets.ResNet50(classes, stages)
    variables = jax.jit(model.init)(jax.random.key(0), jnp.zeros((2, pixels, pixels, 3)))
    predict = jax.jit(nets.ResNet50(classes, stages, train=False).apply)
    sides: dict[int, list[Side]] = {}
    for batch in batches:
        last = data.images(batch, pixels, 3)["img"]
        first = on_device({"img": np.ascontiguousarray(last.transpose(0, 3, 1, 2))})
        images = jax.device_put(last)
        made = [
            Side(name, net.run, first, partial(net.compiled, first)) for name, net in ours.items()
        ]
        made.append(
            Side(
                "flax",
                partial(predict, variables),
                images,
                partial(both, predict, variables, images),
            )
        )
        for side in made:
            side.prepare()
        sides[batch] = made
    figures = {
        side.name: executable(side, f"predict-resnet50-{batches[-1]}")
        for side in sides[batches[-1]]
    }
    yield {"sides": figures, "batch": batches[-1]}
    for batch, made in sides.items():
        yield {
            "batch": batch,
            "sides": compared(timed(made, turns=choose(7, 1)), "flax", batch),
            "peak_mb": peak(),
        }


def ocr() -> Iterator[Found]:
    """Detection, recognition and the classifier of directions; of the programs alone, drawn
    parameters, where no files are.
    """
    made = {}
    for name, (folder, *shapes) in OCR.items():
        path = (
            next(MODELS.rglob(f"{folder}/inference.pdiparams"), None) if MODELS.is_dir() else None
        )
        if path is None:
            continue
        scope, shape = fluid.Scope(), choose(*shapes)
        with fluid.scope_guard(scope):
            program, feeds, targets = fluid.io.load_inference_model(
                str(path.parent), fluid.Executor()
            )
        feed = {feeds[0]: np.random.default_rng(0).random(shape, np.float32)}
        sides = []
        for side, net in both_ways(program, fluid.Program(), targets, scope).items():
            given = on_device(feed)
            sides.append(Side(side, net.run, given, partial(net.compiled, given)))
        for side in sides:
            side.prepare()
        apart = [np.asarray(side.step(side.feed)[0]).astype(np.float64) for side in sides]
        made[name] = shape, sides, np.abs(apart[0] - apart[1]).max()
    if not made:
        yield {}
        yield {"skipped": "the models are not here: make models, and carry .cache/models"}
        return
    yield {}
    for name, (shape, sides, apart) in made.items():
        rows = compared(timed(sides, turns=choose(7, 1)), "plain", shape[0])
        yield {
            "model": name,
            "shape": shape,
            "sides": rows,
            "folding_moves": apart,
            "first_s": {s.name: s.first for s in sides},
        }
