"""``fluidjax infer MODEL``: run a saved model on arrays, and time it."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

from ..errors import FluidValueError
from .models import Model, add_model, add_sizes, open_model, random_feed, read_archive, shapes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, --input, --output, --repeat, --json."""
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
    parser.add_argument(
        "--json", action="store_true", help="print shapes, dtypes, figures and times as JSON"
    )
    add_sizes(parser)


def run(args: argparse.Namespace) -> int:
    """Run once and print the outputs. Raises the errors of loading and running, and FluidValueError
    for an --input that does not fit.
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

    def once() -> tuple[list[Any], float]:
        start = time.perf_counter()
        results = model.run(exe, model.program, feed)
        return results, 1e3 * (time.perf_counter() - start)

    results, first = once()
    times = [once()[1] for _ in range(args.repeat)]
    median = statistics.median(times) if times else None
    outputs = {name: described(value) for name, value in zip(names, results, strict=True)}
    if args.json:
        report = {
            "inputs": {name: described(np.asarray(value)) for name, value in feed.items()},
            "outputs": outputs,
            "milliseconds": {"first": first, "median": median, "runs": len(times)},
        }
        print(json.dumps(report, indent=1))
    else:
        for name, about in outputs.items():
            print(f"{name}: {about.pop('dtype')}{about.pop('shape')}", *map(shown, about.items()))
        if median is not None:
            print(f"median of {len(times)} runs: {median:.2f} ms")
    if args.output:
        buffer = io.BytesIO()
        np.savez(buffer, **{f"out{i}": v for i, v in enumerate(results)})
        write_files(args.output.parent, {args.output.name: lambda: [buffer.getvalue()]})
    return 0


def described(value: Any) -> dict[str, Any]:
    """Dtype and shape; smallest, mean and largest number of arrays that are not empty."""
    numbers = {"min": value.min(), "mean": value.mean(), "max": value.max()} if value.size else {}
    return {
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        # JSON has no infinity
        **{k: float(v) if math.isfinite(v) else str(v) for k, v in numbers.items()},
    }


def shown(figure: tuple[str, Any]) -> str:
    name, value = figure
    return f"{name} {value if isinstance(value, str) else format(value, '.6g')}"


def read_feed(path: Path, model: Model) -> dict[str, Any]:
    """The arrays of an .npz file for the model's inputs. With one input and one array, names are
    not compared.
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
