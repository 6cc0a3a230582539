"""Detection as a program: what is fetched where nothing is found, one compilation for all batches,
the loss of a detector.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import evaluator, layers
from fluidjax.errors import EnforceNotMet, FluidError

from . import detection_cases, detection_map_cases

BOXES = np.array([[[0, 0, 0.4, 0.4], [0.05, 0, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9]]] * 2, "float32")
SCORES = np.array(
    [[[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]], [[0.1, 0.2, 0.3], [0.0, 0.1, 0.6]]], "float32"
)


def run(main: fluid.Program, feed: dict, fetches: list) -> list:
    return fluid.Executor(fluid.CPUPlace()).run(
        main, feed=feed, fetch_list=fetches, return_numpy=False, scope=fluid.Scope()
    )


@pytest.fixture
def nms() -> tuple[fluid.Program, fluid.Variable]:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        boxes, scores = fluid.data("boxes", [None, 3, 4]), fluid.data("scores", [None, 2, 3])
        return main, layers.multiclass_nms(
            boxes, scores, score_threshold=0.5, nms_top_k=3, keep_top_k=3
        )


def test_rows_and_lod_of_what_is_detected(nms: tuple) -> None:
    (out,) = run(nms[0], {"boxes": BOXES, "scores": SCORES}, [nms[1]])
    assert out.lod() == [[0, 2, 3]]
    np.testing.assert_allclose(np.array(out)[:, :2], [[1, 0.9], [1, 0.7], [1, 0.6]])
    np.testing.assert_array_equal(np.array(out)[:, 2:], [BOXES[0, 0], BOXES[0, 2], BOXES[1, 2]])


def test_nothing_is_minus_one(nms: tuple) -> None:
    """As in 1.8.5, in one sequence, however many images there are."""
    (out,) = run(nms[0], {"boxes": BOXES, "scores": np.zeros_like(SCORES)}, [nms[1]])
    assert out.lod() == [[0, 1]] and np.array(out).tolist() == [[-1.0]]


@pytest.mark.parametrize("wrong", ["boxes", "scores", "polygons", "limit"])
def test_shapes_that_do_not_fit_are_refused_while_building(wrong: str) -> None:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        pytest.raises(FluidError, match="multiclass_nms"),
    ):
        boxes = fluid.data(
            "boxes", {"boxes": [None, 3], "polygons": [None, 3, 10]}.get(wrong, [None, 3, 4])
        )
        scores = fluid.data("scores", [None, 2, 4] if wrong == "scores" else [None, 2, 3])
        layers.multiclass_nms(
            boxes,
            scores,
            score_threshold=0.5,
            nms_top_k=-2 if wrong == "limit" else 3,
            keep_top_k=3,
        )


@pytest.mark.first(1)
@pytest.mark.parametrize("name", detection_cases.CASES)
def test_the_loss_of_a_detector_and_its_gradients(name: str) -> None:
    with np.load(Path(__file__).parents[1] / "data" / "detection_1.8.5.npz") as recorded:
        wanted = [recorded[f"{name}/{i}"] for i in range(3)]
    for got, want in zip(
        detection_cases.ssd_loss(fluid, **detection_cases.CASES[name]), wanted, strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def recorded_means(name: str) -> tuple[np.ndarray, ...]:
    with np.load(Path(__file__).parents[1] / "data" / "detection_map_1.8.5.npz") as recorded:
        return tuple(recorded[f"{name}/{part}"] for part in ("means", "state", "lod"))


@pytest.mark.parametrize("name", detection_map_cases.CASES)
def test_mean_average_precision_of_all_batches_so_far(name: str) -> None:
    """Each batch alone, all since the last reset, and what the scope keeps of them, with its LoD."""
    case = detection_map_cases.CASES[name]
    old = pytest.warns(DeprecationWarning, match="use fluid.metrics")
    with old if case["evaluator"] else contextlib.nullcontext():
        means, state, lod = detection_map_cases.run(fluid, evaluator, **case)
    for got, want in zip((means, state, lod), recorded_means(name), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_state_is_added_to_where_there_is_one_and_refused_where_it_is_none() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        found, true = (
            fluid.data("found", [None, 6], lod_level=1),
            fluid.data("true", [None, 5], lod_level=1),
        )
        mark, count = fluid.data("mark", [1], "int32"), fluid.data("count", [None, 1], "int32")
        records = [fluid.data(n, [None, 2], lod_level=1) for n in ("right", "wrong")]
        mean = layers.detection.detection_map(
            found, true, 3, overlap_threshold=0.5, has_state=mark, input_states=[count, *records]
        )
    place = fluid.CPUPlace()
    rows = np.array([[1, 0.9, 0, 0, 0.5, 0.5], [1, 0.8, 0.5, 0.5, 1, 1]], "float32")
    given = {
        "found": rows,
        "true": rows[:, [0, 2, 3, 4, 5]],
        "right": rows[:, :2],
        "wrong": rows[:, :2],
    }
    feed = {name: fluid.create_lod_tensor(array, [[1, 1]], place) for name, array in given.items()}
    for size, sentence in (
        (2, "a PosCount for each of its 3 classes"),
        (3, "a sequence for each of its 3 classes"),
    ):
        with pytest.raises(EnforceNotMet, match=sentence):
            run(
                main,
                {**feed, "mark": np.ones(1, "int32"), "count": np.ones((size, 1), "int32")},
                [mean],
            )
    (got,) = run(
        main, {**feed, "mark": np.zeros(1, "int32"), "count": np.ones((2, 1), "int32")}, [mean]
    )
    assert np.array(got).tolist() == [1.0]
    feed["right"] = fluid.create_lod_tensor(
        np.array([[0.95, 0], [0.7, 1]], "float32"), [[0, 2, 0]], place
    )
    feed["wrong"] = fluid.create_lod_tensor(
        np.array([[0.95, 1], [0.7, 0]], "float32"), [[0, 2, 0]], place
    )
    (got,) = run(
        main,
        {**feed, "mark": np.ones(1, "int32"), "count": np.array([[0], [2], [0]], "int32")},
        [mean],
    )
    # hits of four boxes at the second, third, fourth score
    np.testing.assert_allclose(got, [(1 / 2 + 2 / 3 + 3 / 4) / 4], rtol=1e-6)


LEVELS = [(0, 1, 0, 0), (0, 0, 1, 1), (0, 1, 2, 2), (1, 1, 0, 1), (1, 0, 1, 0), (1, 1, 2, 1)]


@pytest.mark.parametrize("axis, priors, targets, made", LEVELS)
def test_decoded_boxes_have_the_lod_of_what_goes_along_the_rows(axis, priors, targets, made):
    """lod_level of box_coder's output, as in 1.8.5."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        prior = fluid.data("prior", [-1, 4], lod_level=priors)
        target = fluid.data("target", [-1, 3, 4], lod_level=targets)
        found = layers.box_coder(
            prior, [0.1, 0.1, 0.2, 0.2], target, code_type="decode_center_size", axis=axis
        )
    assert found.lod_level == made


@pytest.mark.parametrize("size", [2, 1])
def test_priors_of_a_map_that_is_no_smaller_than_its_image(size: int) -> None:
    """1.8.5 takes one: each place is a pixel, or half of one."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        shapes = {"features": [1, 3, 2, 2], "image": [1, 3, size, size]}
        boxes, _ = fluid.layers.prior_box(*(fluid.data(n, s) for n, s in shapes.items()), [1.0])
        feed = {n: np.zeros(s, "float32") for n, s in shapes.items()}
        (got,) = fluid.Executor().run(feed=feed, fetch_list=[boxes])
    assert boxes.shape == (2, 2, 1, 4)
    centres = (np.arange(2) + 0.5) / 2
    y, x = np.meshgrid(centres, centres, indexing="ij")
    half = 0.5 / size
    np.testing.assert_allclose(got[:, :, 0], np.stack([x - half, y - half, x + half, y + half], -1))
