"""``fluidjax infer MODEL``: run a saved model on arrays, and time it."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from ..errors import FluidValueError
from .models import Model, add_model, add_sizes, open_model, random_feed, read_archive, shapes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, --input, --output, --repeat."""
    add_model(parser)
    parser.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="an .npz file with an array for each input (default: random numbers)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write what the model gives to this .npz file"
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=0,
        metavar="N",
        help="run N more times and print the median time",
    )
    add_sizes(parser)


def run(args: argparse.Namespace) -> int:
    """Run once, print what came out. Raises what loading and running raise, and FluidValueError for
    an unfit --input.
    """
    import io

    import numpy as np

    from ..executor import Executor
    from ..saved.files import write_files

    model = open_model(args)
    feed = (
        read_feed(args.input, model)
        if args.input
        else random_feed(model.program, shapes(args, model.program, model.feeds))
    )
    names, exe = [t.name for t in model.targets], Executor()
    results = exe.run(model.program, feed=feed, fetch_list=names, scope=model.scope)
    for name, value in zip(names, results, strict=True):
        print(f"{name}: {value.dtype.name}{list(value.shape)}{summary(value)}")
    if args.repeat > 0:
        times = []
        for _ in range(args.repeat):
            start = time.perf_counter()
            exe.run(model.program, feed=feed, fetch_list=names, scope=model.scope)
            times.append(time.perf_counter() - start)
        print(f"median of {args.repeat} runs: {statistics.median(times) * 1e3:.2f} ms")
    if args.output:
        buffer = io.BytesIO()
        np.savez(buffer, **{f"out{i}": v for i, v in enumerate(results)})
        write_files(args.output.parent, {args.output.name: lambda: [buffer.getvalue()]})
    return 0


def summary(value: Any) -> str:
    """Smallest, mean and largest number."""
    return (
        f" min {value.min():.6g} mean {value.mean():.6g} max {value.max():.6g}"
        if value.size
        else ""
    )


def read_feed(path: Path, model: Model) -> dict[str, Any]:
    """The arrays of an .npz file for the model's inputs; with one input and one array the name does
    not matter.
    """
    arrays = read_archive(path, "--input", list)
    if len(arrays) == len(model.feeds) == 1:
        return {model.feeds[0]: next(iter(arrays.values()))}
    missing = [n for n in model.feeds if n not in arrays]
    if missing:
        raise FluidValueError(
            f"--input {str(path)!r} lacks {', '.join(missing)}; it has"
            f" {', '.join(arrays) or 'nothing'}"
        )
    return {n: arrays[n] for n in model.feeds}
