"""``fluidjax optimize MODEL OUT``: rewrite a saved model by passes, and print the certificate."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..errors import FluidValueError
from ..graph.program import Program
from . import terminal
from .models import Model, add_model, add_sizes, open_model, random_feed, shapes

PASSES = "inference,fuse_batch_norm,fuse_conv_affine,dce"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, OUT, --passes, --json, --check."""
    add_model(parser)
    parser.add_argument(
        "out", type=Path, metavar="OUT", help="the folder to write the new model to"
    )
    parser.add_argument(
        "--passes",
        default=PASSES,
        metavar="TEXT",
        help=f"passes with commas between (default: {PASSES})",
    )
    parser.add_argument(
        "--json", action="store_true", help="print what was done and the certificates as JSON"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="run both models on a random input and compare what they give",
    )
    add_sizes(parser)


def run(args: argparse.Namespace) -> int:
    """Load, rewrite, write, report. The new model's values are stored like the old one's: one file
    each, or all in one.

    Raises the errors of loading, the passes and saving; OUT does not change then. Raises
    FluidValueError if OUT is MODEL's folder.
    """
    from ..saved.files import write_files
    from ..saved.values import collect, descs, is_persistable
    from ..saved.vars import files_of
    from ..transpiler import apply_passes

    model = open_model(args)
    if args.out.resolve() == model.path.parent.resolve():
        raise FluidValueError(
            f"OUT {str(args.out)!r} is the folder of the model; name another one, so that the old"
            " model stays"
        )
    # refuse before anything can be lost
    sizes = shapes(args, model.program, model.feeds) if args.check else {}
    program, result = apply_passes(model.program, args.passes, model.targets, model.scope)
    differences = check(model, program, sizes) if args.check else {}
    arrays = collect(
        sorted(descs(program, filter(is_persistable, program.list_vars()))), model.scope
    )
    data = program.serialize_to_string()
    write_files(
        args.out,
        {
            model.path.name: lambda: [data],
            **(files_of(arrays, model.values_file) if arrays else {}),
        },
    )
    made = {
        "path": str(args.out),
        "ops": len(program.global_block().ops),
        "parameters": len(arrays),
    }
    if args.json:
        report = {
            "passes": args.passes,
            "changed": result.changed,
            "counts": result.counts(),
            "certificates": [c.to_dict() for c in result.certificates],
            "differences": differences,
            "written": made,
        }
        print(json.dumps(report, indent=1))
        return 0
    terminal.say(result)
    for certificate in result.certificates:
        terminal.say(certificate)
    for name, (error, largest) in differences.items():
        print(f"{name}: largest difference {error:.1e}, largest value {largest:.1e}")
    print(f"wrote {args.out}: {made['ops']} ops, {made['parameters']} parameters")
    return 0


def check(
    model: Model, program: Program, sizes: dict[str, tuple[int, ...]]
) -> dict[str, tuple[float, float]]:
    """For each result on a random input, the largest difference that the passes cause, and the
    largest value.
    """
    import numpy as np

    from ..executor import Executor

    feed = random_feed(model.program, sizes)
    names = [t.name for t in model.targets]
    before, after = (model.run(Executor(), p, feed) for p in (model.program, program))
    return {
        name: (
            float(np.abs(a.astype("float64") - b).max(initial=0)),
            float(np.abs(a).max(initial=0)),
        )
        for name, a, b in zip(names, before, after, strict=True)
    }
