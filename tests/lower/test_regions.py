"""A two-stage detector trains as in 1.8.5, and how many regions there are is data of its step."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from . import region_nets

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "regions_1.8.5.json").read_text())


@pytest.mark.slow
def test_a_detector_trains_as_in_paddle() -> None:
    main, found = region_nets.trained(fluid)
    for got, want in zip(found, RECORDED, strict=True):
        np.testing.assert_allclose(got["losses"], want["losses"], rtol=2e-5)
        np.testing.assert_allclose(got["rois"], want["rois"], rtol=1e-4, atol=1e-4)
        assert (got["lod"], got["labels"]) == (want["lod"], want["labels"])
    ways = str(main.explain(region_nets.feed(fluid, [2, 1])))
    assert "bounded" in ways and "specialised" not in ways


SEGMENTS = [
    ([1, 1], [1, 1], [5, 5]),
    ([2, 1], [1, 1, 1], [3, 4, 3]),
    ([1, 2], [1, 2, 1], [3, 3, 3, 3]),
]


@pytest.mark.slow
def test_masks_are_compiled_once_for_objects_and_polygons_of_any_number() -> None:
    """Up to their buckets; and they are what exact sizes give."""
    main, place, exe = fluid.Program(), fluid.CPUPlace(), fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, fluid.Program()):
        info, segments = (
            fluid.data("info", [None, 3]),
            fluid.data("segments", [None, 2], "float32", 3),
        )
        rois = fluid.data("rois", [None, 4], "float32", 1)
        classes, crowd, labels = (
            fluid.data(n, [None, 1], "int32", 1) for n in ("classes", "crowd", "labels")
        )
        masks = layers.generate_mask_labels(info, classes, crowd, segments, rois, labels, 3, 4)[2]
    box = np.array([[0, 0, 7, 9], [4, 2, 11, 9], [3, 3, 9, 8], [1, 1, 9, 9]], "float32")
    for objects, polygons, points in SEGMENTS:
        random, count = np.random.RandomState(sum(points)), sum(objects)
        rows = {
            "segments": ((random.rand(sum(points), 2) * 12).astype("float32"), [objects, polygons, points]), "rois": (box, [[3, 1]]),
            "classes": (random.randint(1, 3, (count, 1)).astype("int32"), [objects]), "crowd": (np.zeros((count, 1), "int32"), [objects]),
            "labels": (np.array([[1], [2], [1], [2]], "int32"), [[3, 1]]),
        }  # fmt: skip
        feed = {n: fluid.create_lod_tensor(array, lod, place) for n, (array, lod) in rows.items()}
        feed["info"] = np.array([[16, 16, 1]] * 2, "float32")
        (got,) = exe.run(main, feed=feed, fetch_list=[masks], return_numpy=False)
    assert len(exe.compilations(main)) == 1
    with jax.enable_x64(True):
        _, (want,) = jax.jit(fluid.step_fn(main, [masks]))({}, fluid.bucketed(feed, exact=True))
    np.testing.assert_array_equal(got, want.rows[: int(want.count)])
