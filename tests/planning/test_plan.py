"""fluid.plan: times out of work and links, what it refuses, how it shows itself, the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.base.units import speed
from fluidjax.errors import (
    FluidError,
    FluidTypeError,
    FluidValueError,
    ShapeError,
    UnsupportedError,
)
from fluidjax.planning import Device, Link, Links, Plan
from fluidjax.planning.hlo import payload
from fluidjax.planning.links import LINKS, wire_bytes
from tests.document_code import carry_out
from tests.planning.nets import build, clicks, dense

MODELS = Path(__file__).parents[1] / "data" / "models"
FLAT = Links("flat", Link("1GB/s", "1us"))
SLOW = Device("slow", {"float32": 1e9}, 1e9, 1e9)


@pytest.fixture(scope="module")
def net() -> Any:
    main, _, loss = build(dense, fluid.optimizer.Adam(0.1))
    return main, loss


def test_a_ring_moves_what_it_must() -> None:
    """n ranks that each have n pieces: each piece travels n - 1 times to be summed, and n - 1 times
    to be known.
    """
    n, size = 8, 4096
    sent_by_each = 2 * (n - 1) * (size // n)
    assert wire_bytes("all-reduce", size, n) == sent_by_each
    assert (
        wire_bytes("all-gather", size, n)
        == wire_bytes("reduce-scatter", size, n)
        == sent_by_each / 2
    )
    assert wire_bytes("send/recv", size, n) == size and wire_bytes("all-reduce", size, 1) == 0


def test_groups_send_their_part_to_other_groups() -> None:
    links = Links("two levels", Link(100.0), 4, Link(10.0))
    inside, across = 2 * 800 * 3 / 4 / 100, 2 * 200 * 1 / 2 / 10
    assert links.seconds("all-reduce", 800, 8) == pytest.approx(inside + across)
    assert links.seconds("all-reduce", 800, 4) == pytest.approx(inside)
    with pytest.raises(FluidValueError, match="6 devices do not make full groups of 4"):
        links.seconds("all-reduce", 800, 6)


def test_times_go_with_the_work(net: Any) -> None:
    main, loss = net
    given: dict[str, Any] = {"strategies": "data parallel", "links": FLAT, "fetch_list": [loss]}
    one, four = fluid.plan(main, (1, 4), batch_per_device=32, measured={32: 0.5}, **given).rows
    assert one.seconds == 0.5 and one.links == 0
    moved = sum(wire_bytes(k, b, 4) for k, b in four.payload.items())
    # a tree of two messages up, two down
    assert four.sent == moved and four.seconds == pytest.approx(0.5 + moved / 1e9 + 4e-6)
    assert four.samples_a_second == pytest.approx(128 / four.seconds)
    between = fluid.plan(main, 1, batch=32, measured={16: 1.0, 64: 4.0}, **given).rows[0].seconds
    assert 1.9 < between < 2.1  # the work of 32 samples lies at about a third of the way
    shared = fluid.plan(
        main, (1, 4), batch_per_device=32, measured={32: 0.5}, cores=2, **given
    ).rows
    assert shared[0].compute == 0.25 and shared[1].compute == 1.0


def test_a_device_bounds_by_its_peaks_and_its_room(net: Any) -> None:
    main, loss = net
    row = fluid.plan(
        main, 1, batch=32, device=SLOW, strategies="data parallel", fetch_list=[loss]
    ).rows[0]
    assert (
        row.compute == pytest.approx(row.flops / 1e9)
        and max(row.compute, row.traffic) <= row.seconds <= row.compute + row.traffic
    )
    tight = Device("tight", {"float32": 1e9}, row.bytes - 1, 1e9)
    assert (
        fluid.plan(main, 1, batch=32, device=tight, strategies="data parallel", fetch_list=[loss])
        .rows[0]
        .bound
        == "room"
    )
    assert fluid.plan(main, 1, batch=32, fetch_list=[loss]).rows[0].seconds is None


def test_a_table_of_a_hundred_billion_rows_is_planned_on_paper() -> None:
    main, _, loss = build(clicks, fluid.optimizer.Adagrad(0.1), rows=10**11)
    p = fluid.plan(main, (1, 4096), batch_per_device=8, strategies="pservers", fetch_list=[loss])
    whole, part = p.row(1), p.row(4096)
    assert whole.parameters == 10**11 * 8 * 4 + 41 * 4
    assert part.parameters == -(-(10**11) // 4096) * 8 * 4 + 41 * 4
    # ids and rows of everybody's batch, and no table
    assert part.payload["all-gather"] < 4096 * 8 * 5 * (8 + 32) + 10**6


def test_it_shows_itself(net: Any) -> None:
    main, loss = net
    p = fluid.plan(main, (2, 4), batch=32, links="h100", device="h100", fetch_list=[loss])
    assert isinstance(p, Plan) and [r.strategy for r in p.rows[::2]] == [
        "data parallel",
        "pieces",
        "pservers",
    ]
    text, page = str(p), p._repr_html_()
    for told in ("h100, 80 GB", "450 GB/s", "all-reduce", "reduce-scatter"):
        assert told in text and told in page
    assert json.loads(json.dumps(p.to_dict()))["rows"][0]["bytes"] == p.row(2).bytes
    with pytest.raises(KeyError, match="no row of 3"):
        p.row(3)


WRONG: list[tuple[dict[str, Any], type[FluidError], str]] = [
    ({"devices": -8}, FluidValueError, "devices is a positive integer or several, not -8"),
    ({"devices": [8, 2.0]}, FluidValueError, "not 2.0"),
    ({"devices": True}, FluidValueError, "not True"),
    ({"devices": 0}, FluidValueError, "not 0"),
    ({"devices": []}, FluidValueError, "devices is empty"),
    ({"batch": 30}, FluidValueError, "30 samples does not divide over 8"),
    ({"batch": 0}, FluidValueError, "batch is a positive integer, not 0"),
    ({"batch_per_device": 4}, FluidValueError, "give one of batch"),
    ({"batch": None}, FluidValueError, "give one of batch"),
    ({"links": None, "device": "h100"}, FluidValueError, "the speed of a link is missing"),
    ({"links": 0}, FluidValueError, "positive number of bytes a second, not 0"),
    ({"links": "0GB/s"}, FluidValueError, "positive number of bytes a second"),
    ({"links": -1e9}, FluidValueError, "positive number of bytes a second, not -1000000000.0"),
    ({"links": "50GiB/s"}, FluidValueError, "one of the units B, KB"),
    ({"links": "50GB"}, FluidValueError, "one of the units"),
    ({"links": float("inf")}, FluidValueError, "finite"),
    ({"links": "h1000"}, FluidValueError, "did you mean 'h100'"),
    ({"links": [1]}, FluidTypeError, "the speed of a link is"),
    ({"device": "h10"}, FluidValueError, "no device 'h10'"),
    ({"strategies": "piece"}, FluidValueError, "did you mean 'pieces'"),
    ({"measured": {0: 1.0}}, FluidValueError, "positive number of samples, not of 0"),
    ({"measured": {8: 0}}, FluidValueError, "positive number of seconds"),
    ({"measured": 0.5}, FluidTypeError, "samples: seconds"),
    ({"cores": 0}, FluidValueError, "cores is how many"),
    ({"lengths": 3}, FluidValueError, "ragged feeds, of which the program has none"),
    ({"feed_shapes": {"x": (-1, 91)}}, FluidValueError, r"feed_shapes\['x'\] is \[4, 91\]"),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG)
def test_what_it_refuses(
    given: dict[str, Any], error: type[FluidError], message: str, net: Any
) -> None:
    main, loss = net
    arguments = {"devices": 8, "batch": 32, "links": "h100", "fetch_list": [loss], **given}
    with pytest.raises(error, match=message):
        fluid.plan(main, **arguments)


def test_links_that_are_none() -> None:
    with pytest.raises(FluidValueError, match="between groups of 8 devices is missing"):
        Links("half", Link(1.0), 8)
    with pytest.raises(FluidValueError, match="latency of a link is a number of seconds"):
        Link("1GB/s", -1.0)
    with pytest.raises(FluidTypeError, match="within groups are a Link"):
        Links("text", "1GB/s")  # type: ignore[arg-type]
    with pytest.raises(
        FluidValueError, match="flops of float32 of device 'none' is a positive number"
    ):
        Device("none", {"float32": 0.0}, 1e9, 1e9)
    assert (
        speed("x", "400Gb/s")
        == speed("x", "50 GB/s")
        == speed("x", 50e9)
        == LINKS["h100"].between.speed
    )


def test_programs_that_are_not_planned(net: Any) -> None:
    main, loss = net
    again = fluid.Program.from_desc(
        fluid.CompiledProgram(main).with_data_parallel(loss.name).program.desc
    )
    with fluid.program_guard(again):
        again.global_block().append_op(
            "c_allreduce_sum", inputs={"X": [loss.name]}, outputs={"Out": [loss.name]}
        )
    with pytest.raises(UnsupportedError, match="collectives already"):
        fluid.plan(again, 2, batch=4, fetch_list=[loss.name])
    forward = main.clone(for_test=True)
    with pytest.raises(FluidValueError, match="programs that train"):
        fluid.plan(forward, 2, batch=4, strategies="pieces", fetch_list=[loss.name])
    with pytest.raises(FluidTypeError, match="takes a Program"):
        fluid.plan("main", 2, batch=4)  # type: ignore[arg-type]


def test_the_texts_of_other_compilers() -> None:
    """Collectives that begin and end apart, as on GPUs and TPUs, and tuples with comments."""
    text = """
      %a = (f32[8]{0}, /*index=1*/bf16[4]{0}) all-reduce-start(%x, %y), replica_groups={{0,1}}
      %b = (f32[8]{0}, f32[16]{0}) all-gather-start(%x), dimensions={0}
      %c = f32[16]{0} all-gather-done(%b)
      ROOT %d = f32[4]{0:T(128)} reduce-scatter(%x), to_apply=%sum
      %e = (u8[6]{0}, u8[6]{0}, u32[], u32[]) collective-permute-start(%z)
      %f = (f32[2]{0}, f32[2]{0}) all-to-all(%p, %q)
    """
    assert payload(text, 2) == {
        "all-reduce": 40,
        "all-gather": 64,
        "reduce-scatter": 32,
        "send/recv": 6,
        "all-to-all": 16,
    }


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    main, _, _ = build(dense, fluid.optimizer.SGD(0.1))
    path = tmp_path / "model"
    path.write_bytes(main.serialize_to_string())
    line = ["plan", str(path), "--batch", "32", "--links", "h100", "--device", "h100"]
    assert cli.main([*line, "--devices", "1,8,16"]) == 0
    printed = capsys.readouterr().out
    assert "pservers" in printed and "all-reduce" in printed
    assert (
        cli.main(
            [
                *line,
                "--devices",
                "8",
                "--measured",
                "4=2ms",
                "--strategies",
                "data parallel",
                "--json",
            ]
        )
        == 0
    )
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["strategy"] == "data parallel" and row["compute"] == pytest.approx(2e-3)
    forward = tmp_path / "forward"
    with fluid.program_guard(program := fluid.Program(), fluid.Program()):
        y = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
    forward.write_bytes(program.serialize_to_string())
    assert cli.main(["plan", str(forward)]) == 1 and "--fetch NAME" in capsys.readouterr().err
    assert cli.main(["plan", str(forward), "--devices", "1", "--fetch", y.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["flops"] == 4
    for wrong in (
        ["--devices", "8,x"],
        ["--devices", "5"],
        ["--links", "1furlong/s"],
        ["--measured", "4=soon"],
    ):
        assert cli.main([*line, *wrong]) == 1
        assert capsys.readouterr().err.count("\n") == 1


def fails(capsys: Any, *line: str) -> str:
    """The one line that the command ends with."""
    assert cli.main(["plan", *line]) == 1
    return str(capsys.readouterr().err)


def test_ragged_models_are_planned_for_told_lengths(capsys: Any) -> None:
    """LAC by Paddle 1.8.5: a sequence of n words is n rows of an embedding of 128, which feeds 3 x
    256 gates of two GRUs.
    """
    lac = str(MODELS / "lac_seg" / "model")
    found = {}
    for n in (30, 60):
        assert (
            cli.main(
                [
                    "plan",
                    lac,
                    "--length",
                    f"words={n}",
                    "--devices",
                    "2",
                    "--batch-per-device",
                    "3",
                    "--json",
                ]
            )
            == 0
        )
        (found[n],) = json.loads(capsys.readouterr().out)["rows"]
    on_disk = sum(
        p.stat().st_size for p in (MODELS / "lac_seg" / "model").iterdir() if p.name != "__model__"
    )
    assert 0 < on_disk - found[30]["parameters"] < 100 * 20  # each file has a head
    assert found[30]["feeds"] == 3 * 30 * 8 + (3 + 1) * 4  # words and where their sequences begin
    assert 1.9 < found[60]["flops"] / found[30]["flops"] < 2.1
    assert (
        "input 'words' is ragged; say how many rows its sequences have with --length words=N"
        in fails(capsys, lac)
    )
    assert "positive integers, not 0" in fails(capsys, lac, "--length", "0")
    assert "1 levels of sequences, and lengths tells 2" in fails(capsys, lac, "--length", "3,4")
    assert "'word', which is not fed (did you mean 'words'?)" in fails(
        capsys, lac, "--length", "words=3", "--length", "word=3"
    )
    assert "stands alone" in fails(capsys, lac, "--length", "3", "--length", "4")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "shape"), [("ocr_det", "64,64"), ("ocr_rec", "48,64"), ("ocr_cls", "48,192")]
)
def test_models_of_newer_paddles_are_planned(name: str, shape: str, capsys: Any) -> None:
    path = MODELS / f"{name}.pdmodel"
    assert "give its sizes, as in --shape x=1,3," in fails(capsys, str(path))
    assert (
        cli.main(["plan", str(path), "--shape", f"x=1,3,{shape}", "--devices", "1", "--json"]) == 0
    )
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    block = fluid.Program.parse_from_string(path.read_bytes()).global_block()
    held = [v for v in block.vars.values() if v.persistable and v.desc.kind == "LOD_TENSOR"]
    assert row["parameters"] + row["state"] == sum(math.prod(v.shape) * 4 for v in held)


def test_programs_in_archives(tmp_path: Path, capsys: Any) -> None:
    main, _, _ = build(dense, fluid.optimizer.SGD(0.1))
    path = tmp_path / "recorded.npz"
    np.savez(path, main_0=np.frombuffer(main.serialize_to_string(), np.uint8), meta=np.zeros(3))
    line = [str(path), "--devices", "1", "--strategies", "data parallel"]
    assert (
        cli.main(["plan", *line, "--model-file", "main_0"]) == 0
        and "data parallel" in capsys.readouterr().out
    )
    assert "is an archive: name its program with --model-file, one of main_0, meta" in fails(
        capsys, *line
    )
    assert "there is no 'main_1' in it" in fails(capsys, *line, "--model-file", "main_1")
    assert "not a program, which is an array of bytes, but float64[3]" in fails(
        capsys, *line, "--model-file", "meta"
    )
    path.write_bytes(path.read_bytes()[:300])
    assert "not an .npz file of arrays" in fails(capsys, *line, "--model-file", "main_0")


def test_sizes_that_do_not_fit_are_told_with_the_op() -> None:
    with fluid.program_guard(main := fluid.Program(), fluid.Program()):
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [20, 4])
        out = x + y
    with pytest.raises(ShapeError, match="a step on 3 samples does not fit the program") as caught:
        fluid.plan(main, 1, batch=3, fetch_list=[out])
    assert any("elementwise_add" in told for told in caught.value.__notes__)


@pytest.mark.thorough
@pytest.mark.optimized
def test_temporaries_are_the_compilers_as_the_program_is_and_within_a_budget() -> None:
    with fluid.program_guard(main := fluid.Program(), fluid.Program()):
        h = fluid.data("x", [None, 64])
        for _ in range(8):
            h = fluid.layers.fc(h, 64, act="tanh")
        loss = fluid.layers.mean(h)
        fluid.optimizer.SGD(0.1).minimize(loss)
    given: dict[str, Any] = {"batch_per_device": 2048, "fetch_list": [loss]}
    row = fluid.plan(main, (1, 4), compiled=True, strategies="pieces", **given).row(4)
    figures = main.memory_report(batch_size=2048, fetch_list=[loss]).compiled["default"]
    assert (
        row.temporaries == figures.temporaries
        and row.bytes == row.parameters + row.state + row.feeds + figures.temporaries
    )
    wanted = figures.total - figures.temporaries // 8
    less = fluid.plan(main, 4, budget=wanted, strategies="pieces", **given).rows[0]
    assert (
        less.temporaries is not None
        and figures.total - figures.temporaries + less.temporaries <= wanted
    )
    assert less.flops >= row.flops
    with pytest.raises(FluidValueError, match="cannot be made to need"):
        fluid.plan(main, 4, budget="10kB", strategies="pieces", **given)


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["planning", "planning-reference"])
def test_the_page_prints_what_it_says(page: str) -> None:
    carry_out(f"docs/{page}.md")
