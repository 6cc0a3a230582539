"""The command line: ``python -m fluidjax COMMAND ...`` (also installed as ``fluidjax``).

A command is a module with ``add_arguments(parser)`` and ``run(args) -> exit code``. It is imported
only when it is asked for, so that ``fluidjax --help`` needs nothing beyond the standard library.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from textwrap import fill

from .. import __version__
from ..errors import FluidError, near


@dataclass(frozen=True)
class Command:
    """One row of the table: the module that holds the command, its line in the help, an example."""

    module: str
    help: str
    example: str


COMMANDS: dict[str, Command] = {
    "run": Command(
        "run",
        "run a script that imports paddle, with fluidjax in paddle's place",
        "fluidjax run train.py --epochs 3",
    ),
    "compat": Command(
        "compat",
        "say which names of Paddle a script uses are there, different or absent, without"
        " running it",
        "fluidjax compat train.py models/",
    ),
    "launch": Command(
        "launch",
        "run a script as a job of several processes",
        "fluidjax launch --nproc 2 --pservers 2 train.py",
    ),
    "show": Command(
        "show", "print a saved model's program", "fluidjax show MODEL --html -o net.html"
    ),
    "optimize": Command(
        "optimize",
        "rewrite a saved model by passes, and say what was done",
        "fluidjax optimize MODEL OUT --check",
    ),
    "memory": Command(
        "memory",
        "show what a saved model holds in memory, op by op",
        "fluidjax memory MODEL --batch 32",
    ),
    "plan": Command(
        "plan",
        "show what a saved model needs on many devices: bytes, work, what travels, time",
        "fluidjax plan MODEL --devices 8,64 --batch-per-device 32 --device h100 --links h100",
    ),
    "infer": Command(
        "infer",
        "run a saved model on arrays, and time it",
        "fluidjax infer MODEL --input in.npz",
    ),
    "trace": Command(
        "trace",
        "show a function of JAX's as a program",
        'fluidjax trace my_module:forward "f32[8, 16]" --graph -o net.html',
    ),
    "export": Command(
        "export",
        "write a saved model for another runtime, and say what was done",
        "fluidjax export MODEL net.onnx --shape x=n,3,640,640",
    ),
    "serve": Command("serve", "serve a saved model over HTTP", "fluidjax serve MODEL --port 8000"),
    "passes": Command("passes", "list the passes and their options", "fluidjax passes dce"),
    "demo": Command(
        "demo", "train a LeNet on handwritten digits and draw how it went", "fluidjax demo"
    ),
    "completion": Command(
        "completion",
        "print what makes a shell complete the commands and their options",
        "fluidjax completion bash > ~/.local/share/bash-completion/completions/fluidjax",
    ),
}

COMPILING = (
    "run",
    "launch",
    "demo",
    "infer",
    "serve",
)  # these keep what they compile for later runs

OTHERS_CODE = ("run", "launch", "serve")  # a broken pipe may be one of theirs

FAILED = 1  # an error that was reported in one sentence, or a command whose answer is no
INTERRUPTED = 130  # what a shell reports for Ctrl-C


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (default: the process's arguments) names, and return its exit
    code.

    An error that fluidjax raises on purpose becomes one line on stderr and exit code 1; wrong usage
    exits with 2.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((a for a in arguments if not a.startswith("-")), None)
    parser = _parser(name)
    if name is not None and name not in COMMANDS:
        parser.error(
            f"unknown command {name!r}{near(name, COMMANDS)}; there are {', '.join(COMMANDS)}"
        )
    args = parser.parse_args(arguments)
    if name is None:
        parser.print_help()
        return 2
    if getattr(args, "no_cache", False):
        _without_cache()
    try:
        code: int = _module(name).run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if name in OTHERS_CODE:
            raise
        # the pipe's reader is gone (`| head`); Python would report it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except FluidError as exc:
        for line in (f"fluidjax {name}: {exc}", *getattr(exc, "__notes__", ())):
            print(line, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"fluidjax {name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _without_cache() -> None:
    """Turn the cache off for this process and the processes that it starts."""
    from ..base.flags import set_flags

    set_flags({"FLAGS_compilation_cache": False})
    os.environ["FLAGS_compilation_cache"] = "0"


def _module(name: str):  # type: ignore[no-untyped-def]  # a module with `add_arguments` and `run`
    return import_module(f".{COMMANDS[name].module}", __name__)


def whole_parser(kind: type[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The parser, of this class, with the arguments of all commands."""
    return _parser(None, kind, every=True)


def _parser(
    chosen: str | None,
    kind: type[argparse.ArgumentParser] = argparse.ArgumentParser,
    every: bool = False,
) -> argparse.ArgumentParser:
    """The parser with the arguments of the chosen command, or of all."""
    parser = kind(
        prog="fluidjax", description="Fluid's static-graph programs on JAX.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"fluidjax {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.help,
            description=fill(command.help[:1].upper() + command.help[1:] + ".", 78),
            allow_abbrev=False,
            epilog=f"example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if every or name == chosen:
            if name in COMPILING:
                sub.add_argument(
                    "--no-cache",
                    action="store_true",
                    help="compile everything anew, and keep nothing for the next time",
                )
            _module(name).add_arguments(sub)
    return parser


__all__ = ["COMMANDS", "Command", "main", "whole_parser"]
