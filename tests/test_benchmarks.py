"""The benchmarks compare like with like: a net has as many weights in Fluid's script as in flax."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import fluidjax as fluid
from benchmarks import budget, cases, data, flax_models, fluid_models, kernels, page, parallel
from benchmarks.peers import ragged_nets
from benchmarks.peers.nets import CASES
from benchmarks.peers.ragged_nets import RAGGED

FLAX = {
    "fit-a-line": flax_models.FitALine, "2 layers": flax_models.TwoLayers, "LeNet": flax_models.LeNet,
    "MLP": flax_models.MLP, "small ResNet": flax_models.SmallResNet,
    "ResNet-32": flax_models.ResNet32, "ResNet-18": flax_models.ResNet18, "transformer": flax_models.Encoder,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_net_is_the_same_on_both_sides(case):
    net, _, batch = CASES[case]
    feed = batch()
    with fluid.program_guard(fluid.Program(), fluid.Program()) as _, fluid.unique_name.guard():
        net(fluid, feed)
        ours = [
            math.prod(p.shape) for p in fluid.default_main_program().all_parameters() if p.trainable
        ]
    x = next(iter(feed.values()))
    x = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x
    model = FLAX[case]()
    theirs = jax.eval_shape(lambda x: model.init(jax.random.key(0), x)["params"], np.asarray(x))
    assert sorted(ours) == sorted(v.size for v in jax.tree.leaves(theirs))


@pytest.mark.slow
@pytest.mark.parametrize("kind", parallel.KINDS)
def test_a_spread_step_computes_what_the_hand_written_one_is_to(kind):
    """The loss over two devices is that of one; each side of a pair runs as the benchmark runs it."""
    case = cases.Case(
        "words",
        fluid_models.word_model,
        flax_models.WordModel,
        cases.adam,
        lambda: data.words(4, 4, 2000),
    )
    alone, spread = cases.Ours(case), parallel.KINDS[kind](case, 2)
    for name in {v.name for v in alone.main.list_vars() if v.persistable} & set(
        alone.scope.local_var_names()
    ):
        spread.scope.var(name).set(np.asarray(alone.scope.find_var(name).get_tensor()))
    np.testing.assert_allclose(
        np.mean(np.asarray(spread.run())), np.asarray(alone.run()).item(), rtol=1e-5
    )
    assert np.isfinite(np.asarray(parallel.hand_written(case, 2)())).all()


@pytest.mark.parametrize("name", ["roles", "sentiment", "translation"])
def test_a_net_on_sentences_is_the_same_on_both_sides(name, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(ragged_nets.__file__).parent))
    scan_side = importlib.import_module("scan_side")
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        RAGGED[name][0](fluid)
        ours = sum(
            math.prod(p.shape) for p in fluid.default_main_program().all_parameters() if p.trainable
        )
    model = {
        "roles": scan_side.Roles,
        "sentiment": scan_side.Sentiment,
        "translation": scan_side.Translation,
    }[name]
    assert ours == sum(
        v.size
        for v in jax.tree.leaves(
            model(lambda *shape: np.broadcast_to(np.float32(0), shape)).weights
        )
    )


SMALL_KERNELS = (
    kernels.Kernel((1, 3, 4, 4), (5, 3, 1, 1)), kernels.Kernel((1, 2, 4, 4), (2, 2, 3, 3)), kernels.Kernel((1, 3, 5, 5), (3, 1, 3, 3), 2),
    kernels.Kernel((1, 4), (4, 6)),
)  # fmt: skip


def test_bare_kernels_compute_what_they_are_named_for(monkeypatch, capsys):
    """A convolution is a sum over the cells of its filter; and the table without peers says so."""
    for kernel in SMALL_KERNELS:
        (x, w), given = kernels.both(kernel)
        found = np.asarray(kernels.xla(kernel, x, w))
        np.testing.assert_allclose(kernels.ours(kernel, *given), found, rtol=1e-4, atol=1e-5)
        if x.ndim == 2:
            np.testing.assert_allclose(found, x @ w, rtol=1e-5)
            continue
        wide = np.pad(x, ((0, 0), (kernel.pad,) * 2, (kernel.pad,) * 2, (0, 0)))
        (_, height, width, _), (h, v) = found.shape, w.shape[:2]
        cells = [(wide[:, i : i + height * kernel.stride : kernel.stride, j : j + width * kernel.stride : kernel.stride], w[i, j])
                 for i in range(h) for j in range(v)]  # fmt: skip
        expected = sum(part * cell[0] if kernel.groups > 1 else part @ cell for part, cell in cells)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(kernels, "PYTHONS", dict.fromkeys(kernels.PEERS, Path("/nowhere")))
    monkeypatch.setattr(
        kernels, "milliseconds", lambda runs: [2.0 for run in runs if run() is not None]
    )
    monkeypatch.setattr(kernels, "KERNELS", {"small": SMALL_KERNELS[1:]})
    kernels.table()
    shown = capsys.readouterr().out
    assert shown.count("is not there; make bench-peers installs it") == 2
    names = ["3x3, 2 to 2, 4x4", "3x3, depthwise, 3 to 3, 5x5, stride 2", "product, 1x4 with 4x6"]
    assert [line.split("  ")[0] for line in shown.splitlines()[-3:]] == names


TABLE = page.Table("t", "Steps", ("net", "ms"), (("LeNet", "1.5"),), ("torch 9",))
FOUND = {
    "t": page.Measured("today", "here", ("jax 1",), TABLE),
    "loops": page.Measured("now", "there", (), lines=("a  1", "b  2")),
}
PLACES = (
    "Head\n<!-- figures: t -->\nold\n<!-- end of figures -->\nand\n<!-- figures: others -->\n<!--"
    " end of figures -->\n"
)


def test_figures_go_to_the_file_and_from_there_into_the_page(tmp_path):
    figures, text = tmp_path / "f.json", tmp_path / "p.md"
    text.write_text(PLACES)
    page.keep(FOUND, figures, text)
    assert page.read(figures) == FOUND
    made = text.read_text()
    assert (
        "Steps. Measured today on here; jax 1.\n\n| net | ms |\n| --- | --- |\n| LeNet | 1.5"
        " |\n<!-- end"
        in made
        and "old" not in made
    )
    assert (
        "`make bench ARGS=loops` printed this. Measured now on there" in made
        and "```text\na  1\nb  2\n```" in made
    )
    page.keep({"t": replace(FOUND["t"], when="tomorrow")}, figures, text)
    assert "Measured tomorrow" in text.read_text() and "a  1" in text.read_text()
    with pytest.raises(KeyError, match=r"places for .'u'."):
        page.rendered(PLACES.replace("figures: t", "figures: u"), FOUND)


def test_a_part_is_kept_as_its_tables_or_as_what_it_prints(capsys):
    rows = iter([["relu", "1"]])
    tables = page.measured(
        "ops", lambda: [page.shown("ops", "Ops", ["op", "ms"], rows, ["torch 9"], [8, 4])]
    )
    assert (
        tables["ops"].table
        == page.Table("ops", "Ops", ("op", "ms"), (("relu", "1"),), ("torch 9",))
        and not tables["ops"].lines
    )
    assert tables["ops"].versions[-1] == "torch 9" and "cores" in tables["ops"].where
    assert page.measured("passes", lambda: print("\nname  3"))["passes"].lines == ("name  3",)
    assert capsys.readouterr().out == "\nOps\nop        ms\nrelu       1\n\nname  3\n"


def test_the_page_shows_the_figures_that_are_kept():
    assert page.rendered(page.PAGE.read_text(), page.read()) == page.PAGE.read_text()


@pytest.mark.thorough
def test_budgets_are_measured_beside_the_same_step():
    """Under jax.checkpoint and within a budget, a step begins with the same loss and goes on with
    the same.
    """
    whole = budget.CASES["lstm"]
    case = replace(
        whole, network=lambda: budget.stacked_lstm(8, 8, 2), feed=lambda: budget.sequence(300, 8, 8)
    )
    runs = [
        budget.Ours(case),
        budget.Ours(case, 700_000),
        budget.Checkpointed(case, None),
        budget.Checkpointed(case, 0),
    ]
    losses = [[float(np.asarray(run.run()).reshape(())) for _ in range(3)] for run in runs]
    assert losses[0][2] < losses[0][0]
    np.testing.assert_allclose(losses[1:], [losses[0]] * 3, rtol=1e-4)
