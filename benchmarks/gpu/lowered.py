"""Programs lowered for CUDA where there is none: ``python -m benchmarks.gpu.lowered PATH...`` for
recorded models of the zoo, files or folders of them, each as it trains and as it predicts.

A step is made as it would be for a GPU and lowered to what XLA's CUDA compiler is given, which
shows that every op has a form there; nothing is compiled. A recorded model has startup, main_0,
..., feed_0:NAME and lod_0:NAME, and meta, as tests/data and others keep them.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.compiling.recompiles import Recompiles
from fluidjax.devices.placement import OneDevice
from fluidjax.errors import FluidError, NotOneStep
from fluidjax.memory.compiler import lower_padded
from fluidjax.partition import segments
from fluidjax.partition.run import CutStep
from fluidjax.runtime.compiled import Compiled
from fluidjax.runtime.plan import StepPlan


@dataclass(frozen=True)
class Elsewhere:
    """A device that is not here, of which a step asks no more than its platform."""

    platform: str = "gpu"
    device_kind: str = "a GPU that is not here"


def compiled_for(program: fluid.Program, fetches: Sequence[str], platform: str = "gpu") -> Compiled:
    """The step as it is made for a platform; it cannot run."""
    return Compiled(
        StepPlan.of(program.desc, tuple(fetches), OneDevice(Elsewhere(platform))), Recompiles()
    )


def state_of(step: Compiled, scope: fluid.Scope) -> dict[str, jax.ShapeDtypeStruct]:
    """The types of what a step reads of a scope."""
    values, _ = step.collect(scope, ())
    return {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in values.items()}


def for_cuda(
    program: fluid.Program, fetches: Sequence[str], scope: fluid.Scope, feed: Mapping[str, Any]
) -> str:
    """What the CUDA compiler would be given: the step, or, where it cannot be one function, each of
    the segments that it runs in.
    """
    step = compiled_for(program, fetches)
    try:
        return lower_padded(
            step, state_of(step, scope), step.plan.check_feed(feed), platform="cuda"
        ).as_text()
    except NotOneStep as why:
        return in_segments(step, scope, feed, why)


def in_segments(
    step: Compiled, scope: fluid.Scope, feed: Mapping[str, Any], why: NotOneStep
) -> str:
    """The segments of a step that is cut, one after another. Their values decide how they go on, so
    they run, on the CPU.
    """
    texts: dict[str, None] = {}

    def jit(function: Any) -> Any:
        made = jax.jit(function)

        def call(*values: Any) -> Any:
            texts[made.trace(*values).lower(lowering_platforms=("cuda",)).as_text()] = None
            return made(*values)

        return call

    cut = CutStep(step.plan.step)
    cut.refine(why)
    state, _ = step.collect(scope, ())
    with mock.patch.object(segments, "jax", SimpleNamespace(**vars(jax) | {"jit": jit})):
        cut.run(state, step.plan.check_feed(feed), jax.random.key(0))
    return "\n".join(texts)


def recorded(path: Path) -> list[str]:
    """The text of each program of a recorded model, trained as it was recorded, and of what it
    predicts.
    """
    with np.load(path) as file:
        data = {n: file[n] for n in file.files}
    meta = json.loads(str(data["meta"]))
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(
        fluid.Program.parse_from_string(data["startup"].tobytes()), scope=scope
    )
    texts = []
    for run in meta["runs"]:
        main = fluid.Program.parse_from_string(data[f"main_{run['main']}"].tobytes())
        key, feed = f"feed_{run['main']}:", {}
        for name in [n for n in data if n.startswith(key)]:
            lod = data.get(name.replace("feed_", "lod_", 1))
            rows = data[name]
            feed[name[len(key) :]] = (
                rows
                if lod is None
                else fluid.create_lod_tensor(rows, json.loads(str(lod)), fluid.CPUPlace())
            )
        texts.append(for_cuda(main, run["fetch"], scope, feed))
        predicts = main.clone(for_test=True)
        if any("@GRAD" in n for op in predicts.global_block().ops for n in op.input_arg_names):
            continue  # what it computes needs slopes, as the penalty of some discriminators
        made = {n for op in predicts.global_block().ops for n in op.output_arg_names}
        if (asked := [n for n in run["fetch"] if n in made]) and len(
            predicts.desc.blocks[0].ops
        ) < len(main.desc.blocks[0].ops):
            texts.append(for_cuda(predicts, asked, scope, feed))
    return texts


def saved(program: fluid.Program, targets: Sequence[str], feed: Mapping[str, Any]) -> str:
    """What the CUDA compiler would be given of a saved model; its values are not needed."""
    step = compiled_for(program, targets)
    state = {
        v.name: jax.ShapeDtypeStruct(v.shape, np.dtype(v.dtype))
        for block in program.desc.blocks
        for v in block.vars.values()
        if v.persistable and v.kind == "LOD_TENSOR"
    }
    return lower_padded(step, state, step.plan.check_feed(feed), platform="cuda").as_text()


def branches(text: str) -> int:
    """Those that values decide. One of two by platform is written as a case of a constant, and one
    of what that gives.
    """
    return (
        text.count('"stablehlo.case"')
        - 2 * len(re.findall(r'"stablehlo.case"\(%c(_\d+)?\)', text))
        + text.count('"stablehlo.if"')
    )


def main(*paths: str) -> int:
    bad = 0
    files = [f for p in map(Path, paths) for f in (sorted(p.glob("*.npz")) if p.is_dir() else [p])]
    for path in files:
        began = time.perf_counter()
        try:
            texts = recorded(path)
            result = (
                f"{len(texts)} programs, {sum(map(len, texts)) / 1e6:.1f} MB of text,"
                f" {sum(map(branches, texts))} branches by data"
            )
        except (
            FluidError,
            jax.errors.JAXTypeError,
            NotImplementedError,
            TypeError,
            ValueError,
        ) as error:
            result, bad = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}", bad + 1
        print(f"{path.stem:30} {time.perf_counter() - began:6.1f} s  {result}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
