"""fluid.plan: times out of work and links, what it refuses, how it shows itself, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.planning import Device, Link, Links, Plan
from fluidjax.planning.hlo import payload
from fluidjax.planning.links import LINKS, wire_bytes
from fluidjax.planning.units import speed
from tests.document_code import carry_out
from tests.planning.nets import build, clicks, dense

FLAT = Links("flat", Link("1GB/s", "1us"))
SLOW = Device("slow", {"float32": 1e9}, 1e9, 1e9)


@pytest.fixture(scope="module")
def net() -> Any:
    main, _, loss = build(dense, fluid.optimizer.Adam(0.1))
    return main, loss


def test_a_ring_moves_what_it_must() -> None:
    """n ranks that each have n pieces: each piece travels n - 1 times to be summed, and n - 1 times to be known."""
    n, size = 8, 4096
    sent_by_each = 2 * (n - 1) * (size // n)
    assert wire_bytes("all-reduce", size, n) == sent_by_each
    assert wire_bytes("all-gather", size, n) == wire_bytes("reduce-scatter", size, n) == sent_by_each / 2
    assert wire_bytes("send/recv", size, n) == size and wire_bytes("all-reduce", size, 1) == 0


def test_groups_send_their_part_to_other_groups() -> None:
    links = Links("two levels", Link(100.0), 4, Link(10.0))
    inside, across = 2 * 800 * 3 / 4 / 100, 2 * 200 * 1 / 2 / 10
    assert links.seconds("all-reduce", 800, 8) == pytest.approx(inside + across)
    assert links.seconds("all-reduce", 800, 4) == pytest.approx(inside)
    with pytest.raises(FluidValueError, match="6 devices are no full groups of 4"):
        links.seconds("all-reduce", 800, 6)


def test_times_go_with_the_work(net: Any) -> None:
    main, loss = net
    given: dict[str, Any] = {"strategies": "data parallel", "links": FLAT, "fetch_list": [loss]}
    one, four = fluid.plan(main, (1, 4), batch_per_device=32, measured={32: 0.5}, **given).rows
    assert one.seconds == 0.5 and one.links == 0
    moved = sum(wire_bytes(k, b, 4) for k, b in four.payload.items())
    assert four.sent == moved and four.seconds == pytest.approx(0.5 + moved / 1e9 + 4e-6)  # a tree of two messages up, two down
    assert four.samples_a_second == pytest.approx(128 / four.seconds)
    between = fluid.plan(main, 1, batch=32, measured={16: 1.0, 64: 4.0}, **given).rows[0].seconds
    assert 1.9 < between < 2.1  # the work of 32 samples lies at about a third of the way
    shared = fluid.plan(main, (1, 4), batch_per_device=32, measured={32: 0.5}, cores=2, **given).rows
    assert shared[0].compute == 0.25 and shared[1].compute == 1.0


def test_a_device_bounds_by_its_peaks_and_its_room(net: Any) -> None:
    main, loss = net
    row = fluid.plan(main, 1, batch=32, device=SLOW, strategies="data parallel", fetch_list=[loss]).rows[0]
    assert row.compute == pytest.approx(row.flops / 1e9) and row.seconds == max(row.compute, row.traffic)
    tight = Device("tight", {"float32": 1e9}, row.bytes - 1, 1e9)
    assert fluid.plan(main, 1, batch=32, device=tight, strategies="data parallel", fetch_list=[loss]).rows[0].bound == "room"
    assert fluid.plan(main, 1, batch=32, fetch_list=[loss]).rows[0].seconds is None


def test_a_table_of_a_hundred_billion_rows_is_planned_on_paper() -> None:
    main, _, loss = build(clicks, fluid.optimizer.Adagrad(0.1), rows=10**11)
    p = fluid.plan(main, (1, 4096), batch_per_device=8, strategies="pservers", fetch_list=[loss])
    whole, part = p.row(1), p.row(4096)
    assert whole.parameters == 10**11 * 8 * 4 + 41 * 4
    assert part.parameters == -(-(10**11) // 4096) * 8 * 4 + 41 * 4
    assert part.payload["all-gather"] < 4096 * 8 * 5 * (8 + 32) + 10**6  # ids and rows of everybody's batch, and no table


def test_it_shows_itself(net: Any) -> None:
    main, loss = net
    p = fluid.plan(main, (2, 4), batch=32, links="h100", device="h100", fetch_list=[loss])
    assert isinstance(p, Plan) and [r.strategy for r in p.rows[::2]] == ["data parallel", "pieces", "pservers"]
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
    ({"devices": []}, FluidValueError, "devices is empty"),
    ({"batch": 30}, FluidValueError, "30 samples does not divide over 8"),
    ({"batch": 0}, FluidValueError, "batch is a positive integer, not 0"),
    ({"batch_per_device": 4}, FluidValueError, "give one of batch"),
    ({"batch": None}, FluidValueError, "give one of batch"),
    ({"links": None, "device": "h100"}, FluidValueError, "the speed of a link is missing"),
    ({"links": 0}, FluidValueError, "positive number of bytes a second, not 0"),
    ({"links": "0GB/s"}, FluidValueError, "positive number of bytes a second"),
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
]


@pytest.mark.parametrize(("given", "error", "told"), WRONG)
def test_what_it_refuses(given: dict[str, Any], error: type[FluidError], told: str, net: Any) -> None:
    main, loss = net
    arguments = {"devices": 8, "batch": 32, "links": "h100", "fetch_list": [loss], **given}
    with pytest.raises(error, match=told):
        fluid.plan(main, **arguments)


def test_links_that_are_none() -> None:
    with pytest.raises(FluidValueError, match="between groups of 8 devices is missing"):
        Links("half", Link(1.0), 8)
    with pytest.raises(FluidValueError, match="latency of a link is a number of seconds"):
        Link("1GB/s", -1.0)
    with pytest.raises(FluidTypeError, match="within groups are a Link"):
        Links("text", "1GB/s")  # type: ignore[arg-type]
    with pytest.raises(FluidValueError, match="flops of float32 of device 'none' is a positive number"):
        Device("none", {"float32": 0.0}, 1e9, 1e9)
    assert speed("x", "400Gb/s") == speed("x", "50 GB/s") == speed("x", 50e9) == LINKS["h100"].between.speed


def test_programs_that_are_not_planned(net: Any) -> None:
    main, loss = net
    again = fluid.Program.from_desc(fluid.CompiledProgram(main).with_data_parallel(loss.name).program.desc)
    with fluid.program_guard(again):
        again.global_block().append_op("c_allreduce_sum", inputs={"X": [loss.name]}, outputs={"Out": [loss.name]})
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
    assert payload(text, 2) == {"all-reduce": 40, "all-gather": 64, "reduce-scatter": 32, "send/recv": 6, "all-to-all": 16}


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    main, _, _ = build(dense, fluid.optimizer.SGD(0.1))
    path = tmp_path / "model"
    path.write_bytes(main.serialize_to_string())
    line = ["plan", str(path), "--batch", "32", "--links", "h100", "--device", "h100"]
    assert cli.main([*line, "--devices", "1,8,16"]) == 0
    told = capsys.readouterr().out
    assert "pservers" in told and "all-reduce" in told
    assert cli.main([*line, "--devices", "8", "--measured", "4=2ms", "--strategies", "pieces", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["strategy"] == "pieces" and row["compute"] == pytest.approx(2e-3)
    forward = tmp_path / "forward"
    with fluid.program_guard(program := fluid.Program(), fluid.Program()):
        y = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
    forward.write_bytes(program.serialize_to_string())
    assert cli.main(["plan", str(forward)]) == 1 and "--fetch NAME" in capsys.readouterr().err
    assert cli.main(["plan", str(forward), "--devices", "1", "--fetch", y.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["flops"] == 4
    for wrong in (["--devices", "8,x"], ["--devices", "5"], ["--links", "1furlong/s"], ["--measured", "4=soon"]):
        assert cli.main([*line, *wrong]) == 1
        assert capsys.readouterr().err.count("\n") == 1


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
    assert row.temporaries == figures.temporaries and row.bytes == row.parameters + row.state + row.feeds + figures.temporaries
    wanted = figures.total - figures.temporaries // 8
    less = fluid.plan(main, 4, budget=wanted, strategies="pieces", **given).rows[0]
    assert less.temporaries is not None and figures.total - figures.temporaries + less.temporaries <= wanted
    assert less.flops >= row.flops
    with pytest.raises(FluidValueError, match="cannot be made to need"):
        fluid.plan(main, 4, budget="10kB", strategies="pieces", **given)


@pytest.mark.thorough
def test_the_page_prints_what_it_says() -> None:
    carry_out("docs/planning.md")
