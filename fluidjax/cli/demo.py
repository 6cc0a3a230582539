"""``fluidjax demo``: train a LeNet on handwritten digits; fluidjax.demo does the work."""

from __future__ import annotations

import argparse
from pathlib import Path


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--mnist, --epochs, --batch, --seed, --out, --quiet."""
    parser.add_argument("--mnist", type=Path, metavar="FOLDER",
                        help="read MNIST's four IDX files there (plain or .gz); default: scikit-learn's digits")  # fmt: skip
    parser.add_argument(
        "--epochs", type=_positive, metavar="N", help="default: 15, or 3 with --mnist"
    )
    parser.add_argument(
        "--batch", type=_positive, default=64, metavar="N", help="images a step (default: 64)"
    )
    parser.add_argument(
        "--seed", type=_positive, default=1, metavar="N", help="random seed (default: 1)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        metavar="DIR",
        help="where the pictures go (default: demo-output)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Train, draw, report. Exit code 0 if the test accuracy is high enough, 1 otherwise."""
    from ..demo import run_demo

    return run_demo(args.mnist, args.epochs, args.batch, args.seed, args.out, args.quiet)
