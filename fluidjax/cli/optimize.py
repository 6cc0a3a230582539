"""``fluidjax optimize MODEL OUT``: rewrite a saved model by passes, and print the certificate."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..errors import FluidValueError
from ..graph.program import Program
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
        "--json", type=Path, metavar="FILE", help="write the certificates as JSON too"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="run both models on a random input and compare what they give",
    )
    add_sizes(parser)


def run(args: argparse.Namespace) -> int:
    """Load, rewrite, write, report. The new model has the form of the old: a file each, or all
    values in one.

    Raises what loading, the passes and saving raise; OUT is then as it was. Raises FluidValueError
    if OUT is MODEL's folder.
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
    # refused before there is anything to lose
    sizes = shapes(args, model.program, model.feeds) if args.check else {}
    program, result = apply_passes(model.program, args.passes, model.targets, model.scope)
    print(result)
    for certificate in result.certificates:
        print(certificate)
    if args.check:
        check(model, program, sizes)
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
    if args.json:
        text = json.dumps([c.to_dict() for c in result.certificates], indent=1).encode()
        write_files(args.json.parent, {args.json.name: lambda: [text]})
    print(f"wrote {args.out}: {len(program.global_block().ops)} ops, {len(arrays)} parameters")
    return 0


def check(model: Model, program: Program, sizes: dict[str, tuple[int, ...]]) -> None:
    """Print the largest difference that the passes make on a random input."""
    import numpy as np

    from ..executor import Executor

    feed = random_feed(model.program, sizes)
    names = [t.name for t in model.targets]
    before, after = (
        Executor().run(p, feed=feed, fetch_list=names, scope=model.scope)
        for p in (model.program, program)
    )
    for name, a, b in zip(names, before, after, strict=True):
        error = float(np.abs(np.asarray(a, "float64") - b).max(initial=0))
        print(
            f"{name}: largest difference {error:.1e}, largest value"
            f" {float(np.abs(a).max(initial=0)):.1e}"
        )
