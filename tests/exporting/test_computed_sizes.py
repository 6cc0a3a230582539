"""Programs that compute sizes from `layers.shape`, exported once for any batch and length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers as L
from fluidjax.exporting import ExportError

pytest.importorskip("flatbuffers", reason="pip install 'fluidjax[export]'")

Build = Callable[[Any], Any]


def size(x: Any, axis: int) -> Any:
    return L.shape(x)[axis]


def four() -> Any:
    return L.fill_constant([1], "int32", 4)


# each a program of x [b, t, 4], and what it is in NumPy
CASES: dict[str, tuple[Build, Callable[[np.ndarray], Any]]] = {
    "a product": (
        lambda x: L.reshape(x, [size(x, 0) * size(x, 1), 4]), lambda x: x.reshape(-1, 4),
    ),
    "the whole shape": (lambda x: L.reshape(x * 2, L.shape(x)), lambda x: x * 2),
    "heads": (
        lambda x: L.transpose(L.reshape(x, [0, size(x, 1), 2, 2]), [0, 2, 1, 3]),
        lambda x: x.reshape(*x.shape[:2], 2, 2).swapaxes(1, 2),
    ),
    "a part of the shape": (
        lambda x: L.reshape(x, L.concat([L.shape(x)[0:1], L.fill_constant([1], "int32", -1)])),
        lambda x: x.reshape(len(x), -1),
    ),
    "stacked sizes": (
        lambda x: L.reshape(x, L.reshape(L.stack([size(x, 1), size(x, 0), four()]), [3])),
        lambda x: x.reshape(x.shape[1], x.shape[0], 4),
    ),
    "the greater, twice": (
        lambda x: L.reshape(
            L.concat([x, x], 1), [L.elementwise_max(size(x, 0), size(x, 0)), size(x, 1) * 2, 4]
        ),
        lambda x: np.concatenate([x, x], 1),
    ),
    "constants": (
        lambda x: L.fill_constant([size(x, 1) + 1, 3], "float32", 2.5),
        lambda x: np.full((x.shape[1] + 1, 3), 2.5, "float32"),
    ),
    "repeated": (
        lambda x: L.expand(L.reduce_max(x, [1], keep_dim=True), [1, size(x, 1), 1]),
        lambda x: np.broadcast_to(x.max(1, keepdims=True), x.shape),
    ),
    "numbers": (
        lambda x: L.range(1, size(x, 1), 2, "int32"), lambda x: np.arange(1, x.shape[1], 2),
    ),
    "resized": (
        lambda x: L.resize_nearest(L.unsqueeze(x, [1]), [size(x, 1) * 2, 4]),
        lambda x: np.repeat(x, 2, 1)[:, None],
    ),
    "a box": (
        lambda x: L.crop_tensor(x, [size(x, 0), size(x, 1), 2], [0, 0, 1]), lambda x: x[..., 1:3],
    ),
    "all but the last": (lambda x: L.slice(x, [1], [0], [size(x, 1) - 1]), lambda x: x[:, :-1]),
    "from the second": (lambda x: x[:, 1:], lambda x: x[:, 1:]),
    "to the last": (lambda x: x[:, :-1], lambda x: x[:, :-1]),
    "two at most": (lambda x: x[:, :2], lambda x: x[:, :2]),
    "the last": (lambda x: x[:, -1], lambda x: x[:, -1]),
    "the one before": (lambda x: x[:, -2], lambda x: x[:, -2]),
    "every second": (lambda x: x[:, ::2], lambda x: x[:, ::2]),
    "backwards": (lambda x: x[:, ::-1], lambda x: x[:, ::-1]),
    "backwards but for the last": (lambda x: x[:, -2::-1], lambda x: x[:, -2::-1]),
    "backwards to the second": (lambda x: x[:, :0:-1], lambda x: x[:, :0:-1]),
    "two at most, backwards": (
        lambda x: L.strided_slice(x, [1], [1], [-100], [-1]), lambda x: x[:, 1::-1],
    ),
    "two at most of the end": (lambda x: L.slice(x, [1], [-2], [1000]), lambda x: x[:, -2:]),
    "turned round": (lambda x: L.reverse(x, [0, 1]), lambda x: x[::-1, ::-1]),
    "entries by number": (
        lambda x: L.gather(x, L.fill_constant([2], "int32", 0)), lambda x: x[[0, 0]],
    ),
    "entries by place": (
        lambda x: L.gather_nd(x, L.fill_constant([3, 2], "int64", 0)), lambda x: x[[0, 0, 0], 0],
    ),
    "in order": (lambda x: L.argsort(x, 1)[1], lambda x: x.argsort(1, kind="stable")),
    "the greatest": (lambda x: L.argmax(x, 1), lambda x: x.argmax(1)),
    "a mask": (
        lambda x: L.sequence_mask(
            L.fill_constant_batch_size_like(x, [-1], "int64", 2), size(x, 1), "float32"
        ),
        lambda x: np.broadcast_to(np.arange(x.shape[1]) < 2, x.shape[:2]).astype("float32"),
    ),
    "numbers that end": (
        lambda x: L.linspace(1.0, L.cast(size(x, 1) * 2 + 1, "float32"), size(x, 1) + 1, "float32"),
        lambda x: np.arange(1, x.shape[1] * 2 + 2, 2, "float32"),
    ),
    "a loop that changes its feed": (
        lambda x: L.while_loop(
            lambda i, v: L.less_than(i, size(v, 1)), lambda i, v: [i + 1, v * 2],
            [L.fill_constant([1], "int32", 0), x],
        )[1] + 0.0,
        lambda x: x * 2 ** x.shape[1],
    ),
    "sizes as values": (
        lambda x: L.cast(L.shape(x) * 3 + 1, "float32"),
        lambda x: np.array(x.shape, "float32") * 3 + 1,
    ),
    "sizes in a condition": (
        lambda x: L.cond(L.less_than(size(x, 1), four()), lambda: x * 2, lambda: x * 3),
        lambda x: x * (2 if x.shape[1] < 4 else 3),
    ),
}  # fmt: skip


def half(x: Any) -> Any:
    return L.pool2d(x, 2, "max", 2)


def pyramid(x: Any) -> Any:
    """A map, and what is left of it at half the size."""
    return x + L.resize_bilinear(half(x), L.shape(x)[2:])


# each a program of images [b, 3, h, w]
IMAGES: dict[str, Build] = {
    "a filter inside": lambda x: L.conv2d(x, 4, 3),
    "a filter that steps": lambda x: L.conv2d(x, 4, 5, stride=2),
    "a dilated filter": lambda x: L.conv2d(x, 4, 3, dilation=2, padding="SAME"),
    "a transposed filter": lambda x: L.conv2d_transpose(x, 4, filter_size=3, stride=2),
    "tiles": lambda x: L.pool2d(x, 2, "max", 2),
    "tiles that reach out": lambda x: L.pool2d(x, 3, "max", 2, ceil_mode=True),
    "averages": lambda x: L.pool2d(x, 3, "avg", 1),
    "groups": lambda x: L.group_norm(L.conv2d(x, 4, 1), 2),
    "a border of what is inside": lambda x: L.pad2d(x, [3, 2, 0, 4], "reflect"),
    "a border of the edge": lambda x: L.pad2d(x, [3, 2, 0, 4], "edge"),
    "windows": lambda x: L.unfold(x, [3, 2], 2, 1),
    "windows with gaps": lambda x: L.unfold(x, 3, 1, [2, 0, 1, 1], 2),
    "half as large as it was": lambda x: L.resize_bilinear(x, L.shape(half(x))[2:]),
    "larger by what is lost": lambda x: L.concat([x, L.resize_nearest(half(x), L.shape(x)[2:])], 1),
    "a pyramid": lambda x: pyramid(L.conv2d(x, 3, 3, stride=2)),
    "sorted rows": lambda x: L.argsort(x, 2, descending=True)[0],
    "losses of pixels": lambda x: L.cross_entropy(
        L.softmax(L.transpose(x, [0, 2, 3, 1])), L.unsqueeze(L.argmax(x, 1), [3])
    ),
    "places": lambda x: L.affine_grid(
        L.reshape(L.fill_constant_batch_size_like(x, [-1, 6], "float32", 0.3), [-1, 2, 3]),
        L.shape(x),
    ),
    "boxes of priors": lambda x: L.prior_box(half(x), x, [4.0], [8.0], [2.0])[0],
    "dense boxes": lambda x: L.density_prior_box(
        half(x), x, densities=[2], fixed_sizes=[4.0], fixed_ratios=[1.0, 2.0]
    )[0],
    "detections": lambda x: L.yolo_box(
        L.conv2d(x, 14, 1),
        L.fill_constant_batch_size_like(x, [-1, 2], "int32", 64),
        [10, 13, 16, 30],
        2,
        0.01,
        8,
    )[0],
    "twice as large": lambda x: L.resize_bilinear(x, [size(x, 2) * 2, size(x, 3) * 2]),
}


def exported(build: Build, folder: Path, *sizes: Any) -> tuple[Any, Any]:
    """What runs the program, and what runs its export. sizes: those of its input, open ones as
    texts.
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = build(fluid.data("x", [n if isinstance(n, int) else None for n in sizes]))
    exe = fluid.Executor()
    exe.run(startup)
    fluid.export(main, folder / "m.hlo", fetches=[out], shapes={"x": sizes}, platforms=["cpu"])
    loaded = fluid.load_exported(folder / "m.hlo")
    return lambda x: exe.run(main, {"x": x}, [out])[0], lambda x: loaded({"x": x})[out.name]


@pytest.mark.first(6)
@pytest.mark.parametrize("name", CASES)
def test_one_export_serves_every_size(name: str, tmp_path: Path) -> None:
    build, wanted = CASES[name]
    run, again = exported(build, tmp_path, "b", "t", 4)
    for sizes in ((2, 3), (1, 5), (3, 2)):
        x = np.random.RandomState(1).standard_normal((*sizes, 4)).astype("float32")
        want = wanted(x)
        for found in (run(x), again(x)):
            assert found.shape == want.shape
            np.testing.assert_array_equal(found, want)


@pytest.mark.first(4)
@pytest.mark.parametrize("name", IMAGES)
def test_one_export_serves_images_of_every_size(name: str, tmp_path: Path) -> None:
    run, again = exported(IMAGES[name], tmp_path, "b", 3, "h", "w")
    for sizes in ((2, 7, 8), (1, 12, 9)):
        x = np.random.RandomState(1).standard_normal((sizes[0], 3, *sizes[1:])).astype("float32")
        want = run(x)
        found = again(x)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, atol=1e-6 * np.abs(want).max())


def test_a_size_from_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"'reshape2'.* makes a size of its input ShapeTensor"):
        exported(lambda x: L.reshape(x, [L.cast(L.reduce_max(x), "int32"), -1]), tmp_path, "b", 4)


def test_a_size_that_is_at_least_a_number(tmp_path: Path) -> None:
    def greatest(x: Any) -> Any:
        return L.topk(L.transpose(x, [0, 2, 1]), 3)[0]

    with pytest.raises(ExportError, match=r"'t' >= '3' is inconclusive.*as 'h>=32' does"):
        exported(greatest, tmp_path, "b", "t", 4)
    _, again = exported(greatest, tmp_path, "b", "t>=3", 4)
    for length in (3, 5):
        x = np.random.RandomState(length).standard_normal((2, length, 4)).astype("float32")
        np.testing.assert_array_equal(again(x), -np.sort(-x.swapaxes(1, 2))[..., :3])
    with pytest.raises(fluid.FluidError, match=r"float32\[b, t>=3, 4\]"):
        again(np.zeros((2, 2, 4), "float32"))
