"""A two-stage detector trains as in 1.8.5, and how many regions there are is data of its step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import fluidjax as fluid

from . import region_nets

RECORDED = json.loads((Path(__file__).parent / "data" / "regions_1.8.5.json").read_text())


def test_a_detector_trains_as_in_paddle() -> None:
    main, found = region_nets.trained(fluid)
    for got, want in zip(found, RECORDED, strict=True):
        np.testing.assert_allclose(got["losses"], want["losses"], rtol=2e-5)
        np.testing.assert_allclose(got["rois"], want["rois"], rtol=1e-4, atol=1e-4)
        assert (got["lod"], got["labels"]) == (want["lod"], want["labels"])
    ways = str(main.explain(region_nets.feed(fluid, [2, 1])))
    assert "bounded" in ways and "specialised" not in ways
