"""Decoding against recordings of Paddle 1.8.5: programs op by op, what is found, and three steps of
training.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

from ..nets import fresh
from ..test_golden_programs import compare
from ..tools import decode_nets

RECORDS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "decode_1.8.5.json.gz").read_bytes())
)
NETS = {net.__name__: net for net in decode_nets.NETS}


def built(name: str) -> tuple[fluid.Program, fluid.Program, list[Any]]:
    """The main program, with SGD where it is trained, the startup program, and what to fetch."""
    with fresh() as (main, startup):
        found = NETS[name](fluid)
        if name not in decode_nets.TRAINED:
            return main, startup, found
        _, pairs = fluid.optimizer.SGD(0.1).minimize(found)
    return main, startup, [found, *(g for _, g in pairs)]


@pytest.mark.once
# 1.8.5 says of pos that it is a float, which it is not
@pytest.mark.parametrize("name", [n for n in NETS if n != "matched"])
def test_programs_equal_paddles(name: str) -> None:
    with fresh() as (main, _):
        NETS[name](fluid)
    compare(main, RECORDS[name]["forward"], "forward")
    if name in decode_nets.TRAINED:
        compare(built(name)[0], RECORDS[name]["main"], "main")


FOUND = [n for n in NETS if n not in decode_nets.PROGRAMS_ALONE]
FOUND.sort(key=lambda n: n == "contrib_search")  # the dearest last


@pytest.mark.first(8)
@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_equals_paddles(name: str) -> None:
    main, startup, fetches = built(name)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    for p in main.global_block().all_parameters():
        scope.find_var(p.name).get_tensor().set(
            decode_nets.initial(p.name, p.shape), fluid.CPUPlace()
        )
    for feed, want in zip(decode_nets.FEEDS[name], RECORDS[name]["steps"], strict=True):
        given = {k: decode_nets.fed(fluid, v) for k, v in feed.items()}
        got = exe.run(main, feed=given, fetch_list=fetches, scope=scope, return_numpy=False)
        for value, answer in zip(got, want, strict=True):
            lod = value.lod() if isinstance(value, fluid.LoDTensor) else []
            array = np.array(value)
            assert (list(array.shape), lod) == (answer["shape"], answer["lod"])
            right = np.array(answer["values"])
            np.testing.assert_allclose(
                array, right, rtol=2e-5, atol=2e-6 * max(1, np.abs(right).max(initial=0))
            )
