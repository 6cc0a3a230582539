"""What a plan says, beside formulas that one writes by hand: bytes, what travels and how long it
takes.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.planning import DEVICES, LINKS, Device, Link, Links, Row
from tests.planning.nets import build, clicks

BATCH, WIDE, OUT = 16, 300, 700
COUNT = WIDE * OUT  # parameters: one matrix
LINK = Links("by hand", Link("10GB/s", "2us"))
MEMORY_ALONE = Device("memory", {"float32": 1e30}, 1e12, 1e9)


def one_layer(optimizer: Any) -> Any:
    loss = layers.mean(layers.fc(fluid.data("x", [None, WIDE]), OUT, bias_attr=False))
    optimizer.minimize(loss)
    return loss


def planned(optimizer: Any, devices: int, strategy: str, **given: Any) -> Row:
    main, _, loss = build(one_layer, optimizer)
    return fluid.plan(
        main, devices, batch_per_device=BATCH, strategies=strategy, fetch_list=[loss], **given
    ).rows[0]


@pytest.mark.parametrize("n", [2, 64])
def test_adam_holds_twelve_bytes_a_parameter_and_an_all_reduce_passes_two_shares_of_four(
    n: int,
) -> None:
    row = planned(fluid.optimizer.Adam(0.1), n, "data parallel", links=LINK, measured={BATCH: 1.0})
    assert row.parameters + row.state == 12 * COUNT + 3 * 4  # two powers and the rate
    assert dict(row.payload) == {"all-reduce": 4 * COUNT}
    assert row.sent == pytest.approx(2 * (n - 1) / n * 4 * COUNT)
    assert row.links == pytest.approx(row.sent / 10e9 + 2 * math.log2(n) * 2e-6)
    assert row.seconds == pytest.approx(1.0 + row.links)


@pytest.mark.parametrize("n", [2, 64])
def test_pieces_hold_a_share_of_the_moments_and_send_the_same(n: int) -> None:
    row = planned(fluid.optimizer.Adam(0.1), n, "pieces", links=LINK, measured={BATCH: 1.0})
    assert row.parameters == 4 * COUNT and row.state == 8 * math.ceil(COUNT / n) + 3 * 4
    padded = 4 * n * math.ceil(COUNT / n)
    assert dict(row.payload) == {"reduce-scatter": padded, "all-gather": padded}
    assert row.sent == pytest.approx(2 * (n - 1) / n * padded)
    # two collectives of one tree each
    assert row.links == pytest.approx(row.sent / 10e9 + 2 * math.log2(n) * 2e-6)


def test_what_passes_through_the_memory() -> None:
    """Two products, the layer's and that of its gradient: x, w -> y; x, dy -> dw. SGD: w, dw and
    its rate -> w.
    """
    x, w, y = BATCH * WIDE, COUNT, BATCH * OUT
    products, sgd = 4 * 2 * (x + w + y), 4 * (3 * w + 1)
    one = planned(fluid.optimizer.SGD(0.1), 1, "data parallel", device=MEMORY_ALONE)
    assert (
        one.seconds == one.traffic == pytest.approx((products + sgd) / 1e9)
        and one.bound == "memory"
    )
    adam = planned(fluid.optimizer.Adam(0.1), 1, "data parallel", device=MEMORY_ALONE)
    # and numbers: two powers, the rate
    assert adam.traffic == pytest.approx((products + 28 * w) / 1e9, rel=1e-4)
    quarter = planned(fluid.optimizer.Adam(0.1), 4, "pieces", device=MEMORY_ALONE, links=LINK)
    # and its piece of w is cut out
    assert quarter.traffic == pytest.approx((products + 28 * w / 4 + 2 * 4 * w / 4) / 1e9, rel=1e-4)
    assert (
        planned(
            fluid.optimizer.Adam(0.1), 4, "data parallel", device=MEMORY_ALONE, links=LINK
        ).traffic
        == adam.traffic
    )


def test_a_measured_step_goes_with_both_phases() -> None:
    """Where the memory alone counts, a device with a quarter of the update takes that much less."""
    given: dict[str, Any] = {"device": MEMORY_ALONE, "links": LINK}
    whole, quarter = (
        planned(fluid.optimizer.Adam(0.1), n, "pieces", **given).traffic for n in (1, 4)
    )
    told = planned(fluid.optimizer.Adam(0.1), 4, "pieces", measured={BATCH: 2.0}, **given)
    assert told.compute == pytest.approx(2.0 * quarter / whole) and told.compute < 2.0


@pytest.mark.parametrize("rows", [10**9, 10**11])
def test_tables_by_rows(rows: int) -> None:
    main, _, loss = build(clicks, fluid.optimizer.Adagrad(0.1), rows=rows)
    row = fluid.plan(
        main,
        64,
        batch_per_device=4,
        strategies="pservers",
        device="h100",
        links="h100",
        fetch_list=[loss],
    ).rows[0]
    share = math.ceil(rows / 64) * 8 * 4
    # and a layer of 41 numbers
    assert share < row.parameters < share + 200 and share < row.state < share + 300
    assert (row.bound == "room") == (2 * share > 80e9)


def test_presets_are_in_bytes() -> None:
    assert LINKS["v100"].between == Link("50Gb/s", "5us") and LINKS["h200"].within.speed == 450e9
    assert set(DEVICES) - {"tpu-v4", "tpu-v5e", "tpu-v5p"} == set(LINKS) - {
        n for n in LINKS if n[:3] in ("eth", "tpu")
    }
