"""The command line: the table of commands, and scripts that import paddle."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fluidjax
from fluidjax import cli
from fluidjax.errors import FluidValueError

ROOT = Path(__file__).parents[2]


def write(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    return str(script)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_what_the_table_promises(name, capsys):
    module = importlib.import_module(f"fluidjax.cli.{cli.COMMANDS[name].module}")
    assert callable(module.run) and module.__doc__
    with pytest.raises(SystemExit) as exit:
        cli.main([name, "--help"])
    assert exit.value.code == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_example_of_a_command_is_one(name: str, monkeypatch, tmp_path) -> None:
    """The command takes the arguments of its example; a job's are those that it starts with."""
    command, _, arguments = cli.COMMANDS[name].example.partition(">")[0].partition(" ")
    asked: list[argparse.Namespace] = []
    module = importlib.import_module(f"fluidjax.cli.{cli.COMMANDS[name].module}")
    own = module.run
    monkeypatch.setattr(module, "run", lambda args: asked.append(args) or 0)
    assert command == "fluidjax" and cli.main(shlex.split(arguments)) == 0
    (args,) = asked
    assert args.command == name
    if name == "launch":
        from fluidjax.dist.jobs import launch

        (tmp_path / "train.py").write_text("")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(launch, "run_job", lambda command, *counts, **more: counts)
        assert own(args) == (2, 2)


def test_without_a_command_the_help_is_printed(capsys):
    assert cli.main([]) == 2
    out = " ".join(capsys.readouterr().out.split())  # as one line
    assert all(name in out and command.help in out for name, command in cli.COMMANDS.items())


def test_unknown_command_names_the_nearest(capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["demoo"])
    assert exit.value.code == 2
    assert "unknown command 'demoo' (did you mean 'demo'?)" in capsys.readouterr().err


def test_our_errors_are_one_line(capsys, tmp_path):
    assert cli.main(["run", str(tmp_path / "nothing.py")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("fluidjax run: there is no script ") and err.count("\n") == 1


def test_notes_are_printed_and_ctrl_c_has_its_code(monkeypatch, capsys):
    command = ModuleType("command")
    command.add_arguments = lambda parser: None
    monkeypatch.setattr(cli, "_module", lambda name: command)

    def noted(args):
        error = FluidValueError("bad")
        error.add_note("in op: relu")
        raise error

    def interrupted(args):
        raise KeyboardInterrupt

    command.run = noted
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "fluidjax demo: bad\nin op: relu\n"
    command.run = interrupted
    assert cli.main(["demo"]) == 130


def test_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.startswith("fluidjax ")


# -- run -------------------------------------------------------------------------------------------


def test_run_gives_the_script_fluidjax_for_paddle(tmp_path, capsys):
    script = write(
        tmp_path,
        "import sys\n"
        "import paddle.fluid as fluid\n"
        "from paddle.fluid import layers\n"
        "import paddle.fluid.unique_name, helper\n"
        "print(__name__, sys.argv[1:], fluid.Program.__module__, layers.fc.__module__, helper.X)\n",
    )
    (tmp_path / "helper.py").write_text("X = 'beside the script'\n")
    argv, path, spec = sys.argv[:], sys.path[:], fluidjax.__spec__
    assert cli.main(["run", script, "--epochs", "3", "-v"]) == 0
    out = capsys.readouterr().out.split(maxsplit=1)
    assert out[0] == "__main__"
    assert (
        out[1]
        == "['--epochs', '3', '-v'] fluidjax.graph.program fluidjax.layers.nn_dense beside the"
        " script\n"
    )
    assert (sys.argv, sys.path, fluidjax.__spec__) == (argv, path, spec)
    assert not [n for n in sys.modules if n.split(".")[0] == "paddle"]
    assert "helper" not in sys.modules


def test_run_passes_the_scripts_exit_code_on(tmp_path):
    with pytest.raises(SystemExit) as exit:
        cli.main(["run", write(tmp_path, "raise SystemExit(7)\n")])
    assert exit.value.code == 7


def test_run_shows_the_scripts_own_traceback(tmp_path, capsys):
    script = write(tmp_path, "def f():\n    return 1 / 0\n\nf()\n")
    assert cli.main(["run", script]) == 1
    err = capsys.readouterr().err
    assert f'File "{script}", line 4' in err and "ZeroDivisionError" in err
    assert "runpy" not in err


def test_run_shows_a_syntax_error(tmp_path, capsys):
    assert cli.main(["run", write(tmp_path, "def f(:\n")]) == 1
    assert "SyntaxError" in capsys.readouterr().err


def test_a_missing_name_is_named_with_the_nearest(tmp_path, capsys):
    assert cli.main(["run", write(tmp_path, "from paddle.fluid.layers import conv2dd\n")]) == 1
    assert (
        "fluidjax has no paddle.fluid.layers.conv2dd (did you mean 'conv2d'"
        in capsys.readouterr().err
    )


def test_no_cache_holds_for_the_script_and_what_it_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FLAGS_compilation_cache", "1")
    before = fluidjax.get_flags("FLAGS_compilation_cache")
    fluidjax.set_flags({"FLAGS_compilation_cache": True})
    asks = (
        "import os, paddle\nprint(os.environ['FLAGS_compilation_cache'],"
        " paddle.get_flags('FLAGS_compilation_cache'))\n"
    )
    for option, told in (
        ([], "1 {'FLAGS_compilation_cache': True}"),
        (["--no-cache"], "0 {'FLAGS_compilation_cache': False}"),
    ):
        assert cli.main(["run", *option, write(tmp_path, asks)]) == 0
        assert capsys.readouterr().out.strip() == told
    assert (
        cli.main(
            [
                "run",
                write(tmp_path, "import sys\nassert sys.argv[1:] == ['--no-cache']\n"),
                "--no-cache",
            ]
        )
        == 0
    )
    fluidjax.set_flags(before)


def test_a_script_trains(tmp_path, capsys):
    script = write(
        tmp_path,
        "import numpy as np\nimport paddle\npaddle.enable_static()\nx = paddle.static.data('x',"
        " [None, 3])\nloss = paddle.mean(paddle.static.nn.fc(x,"
        " 1))\npaddle.optimizer.SGD(0.1).minimize(loss)\nexe ="
        " paddle.static.Executor(paddle.CPUPlace())\nexe.run(paddle.static.default_startup_program())\ncosts"
        " = [exe.run(feed={'x': np.ones((4, 3), 'float32')}, fetch_list=[loss])[0] for _ in"
        " range(3)]\nprint(costs[0] > costs[1] > costs[2])\n",
    )
    done = subprocess.run(
        [sys.executable, "-m", "fluidjax", "run", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=240,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[ True]\n", "")


MODEL = ROOT / "tests/data/saved/combined"
FILES = ["--model-file", "model", "--params-file", "params"]


def test_show_forms(capsys):
    assert cli.main(["show", str(MODEL), *FILES]) == 0
    assert " = batch_norm(" in capsys.readouterr().out
    assert cli.main(["show", str(MODEL / "model"), "--dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph")
    assert cli.main(["show", str(ROOT / "tests/data/saved/separate"), "--html"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert cli.main(["show", str(MODEL), *FILES, "--counts"]) == 0
    assert "  1  conv2d\n" in capsys.readouterr().out


def test_passes_lists_and_explains(capsys):
    assert cli.main(["passes"]) == 0
    assert "fuse_batch_norm(probe=True)" in capsys.readouterr().out
    assert cli.main(["passes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["fuse_batch_norm"]["options"] == {"probe": {"type": "bool", "default": True}}
    assert "dce" in listed and all(each["text"] for each in listed.values())
    assert cli.main(["passes", "dce", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["dce"]
    assert cli.main(["passes", "dce", "dze"]) == 1
    assert "there is no pass 'dze' (did you mean 'dce'?)" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["combined", "separate"])
def test_optimize_then_infer(form, capsys, tmp_path):
    import numpy as np

    reference = np.load(ROOT / "tests/data/saved/ref.npz")
    np.savez(tmp_path / "in.npz", x=reference["x"])
    files = FILES if form == "combined" else []
    model = str(ROOT / "tests/data/saved" / form)
    command = ["optimize", model, str(tmp_path / "out"), *files, "--check"]
    assert cli.main(command) == 0
    out = capsys.readouterr().out
    assert (
        "batch_norm: 1 -> 0" in out
        and "fuse_batch_norm: 1 folded, 0 refused" in out
        and "largest difference" in out
    )
    assert cli.main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["counts"]["batch_norm"] == [1, 0] and printed["written"]["ops"] == 9
    assert printed["certificates"][0]["folds"][0]["layer"] == "conv2d+elementwise_add+batch_norm"
    ((error, largest),) = printed["differences"].values()
    assert error < 1e-5 * largest
    for path in (model, str(tmp_path / "out")):
        command = [
            "infer",
            path,
            *files,
            "--input",
            str(tmp_path / "in.npz"),
            "--output",
            str(tmp_path / "y.npz"),
            "--repeat",
            "2",
        ]
        assert cli.main(command) == 0
        assert "float32[4, 5]" in capsys.readouterr().out
        np.testing.assert_allclose(
            np.load(tmp_path / "y.npz")["out0"], reference["y"], rtol=1e-5, atol=1e-6
        )
        assert cli.main([*command, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        (output,) = report["outputs"].values()
        assert report["inputs"]["x"]["shape"] == [4, 3, 6, 6] and output["dtype"] == "float32"
        assert output["max"] == pytest.approx(reference["y"].max(), rel=1e-5)
        assert report["milliseconds"]["runs"] == 2 and report["milliseconds"]["median"] > 0


@pytest.mark.slow
def test_a_model_of_sequences_runs_on_sequences_of_random_numbers(capsys, tmp_path):
    """3 sequences of 10 words have 30 tags, and equal sequences have equal ones."""
    import numpy as np

    model, out = str(ROOT / "tests/data/models/lac_seg/model"), tmp_path / "out.npz"
    assert cli.main(["infer", model, "--batch", "3", "--output", str(out)]) == 0
    assert "int64[30, 1]" in capsys.readouterr().out
    with np.load(out) as archive:
        tags = archive["out0"]
    np.testing.assert_array_equal(tags[:10], tags[10:20])
    command = ["optimize", model, str(tmp_path / "o"), "--passes", "inference,dce", "--check"]
    assert cli.main(command) == 0
    assert "largest difference" in capsys.readouterr().out


def test_mistakes_on_the_command_line(capsys, tmp_path):
    model = str(ROOT / "tests/data/saved/separate")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 nothing")
    cases = [
        (["optimize", model, model], "name another one"),
        (
            ["optimize", model, str(tmp_path), "--passes", "fuse_batchnorm"],
            "did you mean 'fuse_batch_norm'",
        ),
        (
            ["optimize", model, str(tmp_path / "out"), "--check", "--shape", "y=1"],
            "has no such input; it has x",
        ),
        (["infer", model, "--shape", "y=1"], "has no such input; it has x"),
        (["infer", model, "--shape", "x=a"], "should look like"),
        (["infer", model, "--batch", "0"], "is a positive number"),
        (["infer", model, "--input", str(tmp_path / "no.npz")], "is not an .npz file"),
        (["infer", model, "--input", str(tmp_path / "bad.npz")], "is not an .npz file"),
        (["show", str(tmp_path)], "name model_filename (--model-file in a shell)"),
        (["show", str(tmp_path / "bad.npz")], "is not an .npz file"),
    ]
    for command, text in cases:
        assert cli.main(command) == 1, command
        err = capsys.readouterr().err
        assert text in err and "Traceback" not in err, (command, err)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.npz"]


def test_an_input_with_open_sizes_is_given_them_by_the_option_that_the_sentence_writes() -> None:
    from fluidjax.cli.models import example

    assert example("x", [-1, 3, -1, -1]) == "--shape x=1,3,32,32"
    assert example("x", [-1, 3, 48, -1]) == "--shape x=1,3,48,32"


@pytest.mark.slow
def test_memory_of_a_saved_model(capsys, tmp_path):
    model = str(ROOT / "tests/data/saved/separate")
    assert cli.main(["memory", model, "--batch", "4", "--picture", str(tmp_path / "m.svg")]) == 0
    out = capsys.readouterr().out
    assert (
        "fed x [4, 3, 6, 6]" in out
        and "compiler, default" in out
        and "alive at op 2, batch_norm" in out
    )
    assert (tmp_path / "m.svg").read_text().lstrip().startswith("<?xml")
    assert cli.main(["memory", model, "--batch", "4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["feeds"] == {"x": [4, 3, 6, 6]} and report["peak"]["op"] == "batch_norm"
    assert report["plain"] == max(point["bytes"] for point in report["timeline"])


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_error() -> None:
    """As `fluidjax passes | head` has it."""
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "fluidjax", "passes"],
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writes)
    assert done.stderr == "" and done.returncode == cli.FAILED
