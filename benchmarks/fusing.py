"""Prediction with and without folded batch_norm: saved OCR models, ResNet-50 and MobileNet-v1, with
onnxruntime beside it.

The OCR models are read from .cache/models (`make models`) or $FLUIDJAX_MODELS; where they are not
there, they are left out. onnxruntime is timed where it is installed, on what fluid.export writes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fluidjax as fluid

from . import fluid_models
from .cases import cost
from .timing import Paired, interleaved, seconds

PIPELINE = "inference,fuse_batch_norm(probe=False),fuse_conv_affine(probe=False),dce"
ROOT = Path(__file__).parents[1]
SAVED = {
    "PP-OCRv4 det 640x640": ("ch_PP-OCRv4_det_infer", (3, 640, 640)),
    "PP-OCRv4 rec 48x320": ("ch_PP-OCRv4_rec_infer", (3, 48, 320)),
    "PP-OCR cls 48x192": ("ch_ppocr_mobile_v2_cls_infer", (3, 48, 192)),
}
MODELS = Path(os.environ.get("FLUIDJAX_MODELS") or ROOT / ".cache/models")


@dataclass
class Predictor:
    """A program that predicts, with its parameters, one feed, and what is fetched."""

    name: str
    program: fluid.Program
    scope: fluid.Scope
    feed: dict[str, np.ndarray]
    fetch: list[str]

    def __post_init__(self) -> None:
        self.exe = fluid.Executor()

    def run(self) -> Any:
        return self.exe.run(
            self.program,
            feed=self.feed,
            fetch_list=self.fetch,
            scope=self.scope,
            return_numpy=False,
        )

    def fused(self) -> tuple[Predictor, Any]:
        program, result = fluid.transpiler.apply_passes(
            self.program, PIPELINE, self.fetch, self.scope
        )
        return Predictor(self.name, program, self.scope, self.feed, self.fetch), result


@dataclass(frozen=True)
class Row:
    """One line of the table. errors are relative to the largest output; onnx is in seconds, None
    where it was not run.
    """

    name: str
    folds: dict[str, int]
    left: int
    error: float
    bytes_ratio: float
    times: Paired
    onnx: float | None


def network(name: str, build: Callable[[], Any], batch: int) -> Predictor:
    """A network with random parameters and plausible statistics."""
    main, startup, _ = fluid_models.build(build, fluid.optimizer.SGD(0.1))
    test = main.clone(for_test=True)
    scope, rng = fluid.Scope(), np.random.RandomState(0)
    fluid.Executor().run(startup, scope=scope)
    softmax = next(op for op in test.global_block().ops if "cross_entropy" in op.type)
    out = (softmax.input("Logits") or softmax.input("X"))[0]
    for op in test.global_block().ops:
        for slot, low, high in (
            (("Mean", -0.1, 0.1), ("Variance", 0.5, 1.5)) if op.type == "batch_norm" else ()
        ):
            shape = test.global_block().var(op.input(slot)[0]).shape
            scope.var(op.input(slot)[0]).set(rng.uniform(low, high, shape).astype("float32"))
    shape = test.global_block().var("img").shape
    feed = {"img": rng.standard_normal((batch, *shape[1:])).astype("float32")}
    return Predictor(
        f"{name}, batch {batch}", test._prune_with_input(["img"], [out]), scope, feed, [out]
    )


def there_is(name: str) -> bool:
    """Whether this saved model is at hand."""
    return MODELS.is_dir() and any(MODELS.rglob(f"{SAVED[name][0]}/inference.pdmodel"))


def saved(name: str, folder: str, shape: tuple[int, ...]) -> Predictor | None:
    """A model that Paddle saved, or None where it is not at hand."""
    found = next(MODELS.rglob(f"{folder}/inference.pdmodel"), None) if MODELS.is_dir() else None
    if found is None:
        return None
    scope, exe = fluid.Scope(), fluid.Executor()
    with fluid.scope_guard(scope):
        program, feeds, targets = fluid.io.load_inference_model(
            str(found.parent),
            exe,
            model_filename="inference.pdmodel",
            params_filename="inference.pdiparams",
        )
    x = np.random.RandomState(0).uniform(-1, 1, shape).astype("float32")
    return Predictor(
        f"{name}, batch {shape[0]}",
        program,
        scope,
        {feeds[0]: x},
        [t.name for t in targets],
    )


def encoder(batch: int) -> Predictor:
    """The BERT of 4 layers."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = fluid_models.bert()
    fluid.Executor().run(startup, scope=scope)
    words = np.random.RandomState(0).randint(0, 8000, (batch, 128)).astype("int64")
    return Predictor(f"BERT, 4 layers, batch {batch}", main, scope, {"words": words}, [out.name])


def predictors() -> Iterator[Predictor]:
    for batch in (1, 8):
        for name, (folder, shape) in SAVED.items():
            found = saved(name, folder, (batch, *shape))
            if found is not None:
                yield found
        yield network("ResNet-50", fluid_models.resnet50, batch)
        yield network("MobileNet-v1", fluid_models.mobilenet_v1, batch)


def measure(plain: Predictor) -> Row:
    fused, result = plain.fused()
    (a, *_), (b, *_) = (jax.device_get(p.run()) for p in (plain, fused))
    error = float(np.abs(a - b).max() / np.abs(a).max())
    moved = cost(fused.exe, fused.program, fused.scope, fused.feed)["bytes accessed"]
    moved /= cost(plain.exe, plain.program, plain.scope, plain.feed)["bytes accessed"]
    times = interleaved(fused.run, plain.run, jax.block_until_ready, turns=7, budget=12.0)
    left = sum(op.type == "batch_norm" for op in fused.program.global_block().ops)
    folds = {c.title.split("(")[0]: len(c.folds) for c in result.certificates}
    return Row(plain.name, folds, left, error, moved, times, _onnx(plain))


def export(p: Predictor, path: Path) -> None:
    """The model as ONNX, for feeds of the shapes that it has."""
    shapes = {n: v.shape for n, v in p.feed.items()}
    fluid.export(p.program, path, feeds=[*p.feed], fetches=p.fetch, scope=p.scope, shapes=shapes)


def _onnx(p: Predictor) -> float | None:
    """Seconds of onnxruntime on the same model and input, with as many threads as there are cores;
    None without it.
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export(p, path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    answer, (ours, *_) = session.run(None, p.feed)[0], jax.device_get(p.run())
    if not np.allclose(answer, ours, rtol=1e-3, atol=1e-3 * np.abs(ours).max()):
        raise AssertionError(f"{p.name}: onnxruntime computes something else")

    def run() -> Any:
        return session.run(None, p.feed)

    seconds(run, lambda last: None, 2)
    return sorted(seconds(run, lambda last: None, 3) for _ in range(5))[2]


def table() -> None:
    print("\nPrediction: folded / not folded (medians of interleaved turns)")
    head = ("model", "folds", "left", "error", "bytes", "ms", "unfused", "ratio", "onnx ms")
    print(
        f"{head[0]:<32}{head[1]:>8}{head[2]:>6}{head[3]:>10}{head[4]:>8}{head[5]:>10}{head[6]:>10}{head[7]:>8}{head[8]:>9}"
    )
    for plain in predictors():
        r = measure(plain)
        onnx = "-" if r.onnx is None else f"{r.onnx * 1e3:.1f}"
        folds = "+".join(str(v) for v in r.folds.values())
        print(
            f"{r.name:<32}{folds:>8}{r.left:>6}{r.error:>10.1e}{r.bytes_ratio:>8.3f}{r.times.ours * 1e3:>10.2f}"
            f"{r.times.theirs * 1e3:>10.2f}{r.times.ratio:>8.3f}{onnx:>9}",
            flush=True,
        )
