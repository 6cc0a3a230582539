"""paddle.vision.transforms: images and arrays become what they became in Paddle 2.6.2, whose random
draws are the same.
"""

from __future__ import annotations

import builtins
from pathlib import Path

import numpy as np
import pytest

import fluidjax.paddle.vision.transforms as T
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, UnsupportedError
from tests.paddle import transform_cases as cases

DATA = Path(__file__).parents[1] / "data"
RECORDED, LATER = np.load(DATA / "transforms_2.6.2.npz"), np.load(DATA / "transforms_3.3.1.npz")
NAMES = cases.names(T)
RGB, ARRAY = NAMES["rgb"], NAMES["array"]


@pytest.mark.parametrize("name", cases.CASES)
def test_as_2_6_2(name):
    got = cases.results(T, cases.CASES[name])
    assert len(got) == sum(key.rpartition("/")[0] == name for key in RECORDED.files)
    for k, array in enumerate(got):
        wanted = RECORDED[f"{name}/{k}"]
        assert array.shape == wanted.shape and (array.dtype == wanted.dtype or name == "own")
        # Pillow 10, which recorded, rounds what it resizes otherwise than Pillow 13 does
        within = (
            (1 if array.dtype == np.uint8 else 1 / 255)
            if any(w in name for w in ("esize", "Compose"))
            else 0
        )
        np.testing.assert_allclose(
            array.astype("float64"), wanted.astype("float64"), rtol=1e-6, atol=within
        )


def certain(text: str) -> list[np.ndarray]:
    """Of each array of a case, where it does not hang on the last digits of a solution: a pixel may
    lie just on an image's edge.
    """
    solve, near, found = np.linalg.lstsq, np.random.default_rng(0), []

    def moved(*args, **kwargs):
        solution, *more = solve(*args, **kwargs)
        return solution + near.uniform(-1e-11, 1e-11, solution.shape), *more

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "lstsq", moved)
        for _ in range(8):
            found.append(cases.results(T, text))
    return [np.all([array == each[0] for array in each], 0) for each in zip(*found, strict=True)]


@pytest.mark.parametrize("name", cases.LATER)
def test_as_3_3_1(name):
    got = cases.results(T, cases.LATER[name])
    wanted = [LATER[key] for key in LATER.files if key.rpartition("/")[0] == name]
    assert len(got) == len(wanted) > 0
    for array, want, sure in zip(got, wanted, certain(cases.LATER[name]), strict=True):
        assert (array.dtype, array.shape) == (want.dtype, want.shape)
        assert sure.mean() > 0.94 and ("erspective" in name or sure.all())
        np.testing.assert_array_equal(array[sure], want[sure])


def test_what_comes_in_is_the_fill():
    corners, inner = [[0, 0], [6, 0], [6, 4], [0, 4]], [[1, 1], [5, 1], [6, 4], [0, 3]]
    for warp in (
        lambda i, f: T.affine(i, 30, [1, 0], 0.6, 0, fill=f),
        lambda i, f: T.perspective(i, corners, inner, "nearest", f),
    ):
        outside = warp(np.full_like(ARRAY, 255), 0) == 0
        assert 0 < outside.sum() < outside.size
        for img in (ARRAY, RGB):
            filled, black = np.asarray(warp(img, [9, 8, 7])), np.asarray(warp(img, 0))
            np.testing.assert_array_equal(filled, np.where(outside, np.uint8([9, 8, 7]), black))


ALIKE = [
    "T.resize({}, (4, 9))", "T.rotate({}, 30, 'bilinear', True, fill=4)", "T.adjust_brightness({}, 1.7)",
    "T.adjust_contrast({}, 0.4)", "T.adjust_saturation({}, 2.0)", "T.adjust_hue({}, -0.3)", "T.to_grayscale({}, 3)",
    "T.pad({}, 1, (1, 2, 3))", "T.pad({}, 2, 0, 'reflect')", "T.hflip({})", "T.vflip({})", "T.to_tensor({})",
    "T.Transpose()({})", "T.affine({}, 30, [1, 0], 1.5, 10, fill=3)", "T.RandomPerspective(1.0)({})",
    "T.RandomErasing(1.0, value='random')({})", "T.ColorJitter(0.4, 0.3, 0.2, 0.1)({})", "T.RandomCrop(3, 2)({})",
]  # fmt: skip


def test_arrays_become_what_images_become():
    for text in ALIKE:
        (image,), (array,) = (cases.results(T, text.format(name)) for name in ("rgb", "array"))
        np.testing.assert_array_equal(image, array, err_msg=text)
    floats = ARRAY[..., :2].astype("float64")
    for one, other in zip(
        np.moveaxis(T.resize(floats, (3, 4)), -1, 0),
        (T.resize(ARRAY[..., k], (3, 4)) for k in range(2)),
        strict=True,
    ):
        # of bytes, which are rounded after either direction
        np.testing.assert_allclose(one, other, atol=1)
    assert (
        T.resize(ARRAY[..., :1], 5).shape == (5, 7, 1) and T.resize(floats, 10).dtype == np.float64
    )
    np.testing.assert_array_equal(T.adjust_saturation(RGB, 2.0), RECORDED["saturation/0"])
    np.testing.assert_array_equal(
        T.normalize(NAMES["float_array"], 1.0, 2.0, to_rgb=True),
        (NAMES["float_array"][::-1] - 1) / 2,
    )


def test_the_name_that_lists_cut_short():
    np.testing.assert_array_equal(T.RandomHorizontalFli(1.0)(ARRAY), ARRAY[:, ::-1])


def test_bad_input():
    for call, error, told in (
        (lambda: T.resize([1], 3), FluidTypeError, "Pillow's or a NumPy array, not list"),
        (lambda: T.hflip(np.zeros(3)), FluidTypeError, r"\[H, W\] or \[H, W, C\], not \[3\]"),
        (lambda: T.resize(RGB, 2.5), FluidTypeError, r"an integer or \[height, width\], not 2.5"),
        (
            lambda: T.resize(RGB, 3, "cubic"),
            FluidValueError,
            "interpolation is 'nearest' or 'bilinear'",
        ),
        (
            lambda: T.resize(ARRAY.astype("int32"), 3),
            FluidTypeError,
            "uint8 or floats, not of int32",
        ),
        (
            lambda: T.adjust_hue(ARRAY / 255, 0.1),
            FluidTypeError,
            "an array of uint8, not of float64",
        ),
        (lambda: T.resize(ARRAY[..., :2], 3), FluidValueError, "1, 3 or 4 channels, not 2"),
        (lambda: T.pad(RGB, (1, 2, 3)), FluidValueError, "one, two or four numbers, not 3"),
        (lambda: T.pad(RGB, "1"), FluidTypeError, "a number or a list"),
        (lambda: T.pad(RGB, 1, padding_mode="wrap"), FluidValueError, "not 'wrap'"),
        (lambda: T.adjust_hue(RGB, 0.6), FluidValueError, "between -0.5 and 0.5, not 0.6"),
        (lambda: T.to_grayscale(RGB, 2), FluidValueError, "1 or 3, not 2"),
        (lambda: T.to_tensor(RGB, "NCHW"), FluidValueError, "'CHW' or 'HWC'"),
        (lambda: T.normalize(ARRAY[..., 0], 0.0, 1.0), FluidValueError, "three dimensions"),
        (
            lambda: T.RandomCrop(9)(RGB),
            FluidValueError,
            r"\[9, 9\] of an image, and this one has \[5, 7\]",
        ),
        (lambda: T.RandomRotation(-1), FluidValueError, "not negative"),
        (lambda: T.BrightnessTransform(-1), FluidValueError, "not negative"),
        (lambda: T.HueTransform([-0.6, 0.1]), FluidValueError, "between -0.5 and 0.5"),
        (lambda: T.ContrastTransform("a"), FluidTypeError, r"a number or \(least, most\)"),
        (lambda: T.RandomResizedCrop(3, (2.0, 1.0)), FluidValueError, "scale is"),
        (lambda: T.Resize(3, keys="image"), FluidValueError, "a list of names, not 'image'"),
        (
            lambda: T.Resize(3, keys=["image", "boxes"]),
            UnsupportedError,
            "Resize has no method _apply_boxes",
        ),
        (lambda: T.affine(RGB, 1, [1], 1.0, 0), FluidValueError, "translate is two numbers, not 1"),
        (lambda: T.affine(RGB, 1, [1, 1], 0, 0), FluidValueError, "scale is above 0"),
        (lambda: T.perspective(RGB, [[0, 0]], [[1, 1]]), FluidValueError, "four points"),
        (lambda: T.RandomAffine(10, (2, 0)), FluidValueError, "of shares"),
        (lambda: T.RandomAffine("a"), FluidTypeError, "degrees is a number or a list"),
        (lambda: T.RandomPerspective(2), FluidValueError, "prob lies between 0 and 1"),
        (lambda: T.RandomErasing(value="zeros"), FluidValueError, "or 'random'"),
        (lambda: T.RandomErasing(ratio=(2, 1)), FluidValueError, "least, most"),
        (lambda: T.BaseTransform()(RGB), NotImplementedError, "BaseTransform has no _apply_image"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_without_pillow_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def lacking(name, *args):
        if name.startswith("PIL"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(FluidError, match="not installed: pip install"):
        T.resize(ARRAY, 3)
    assert T.to_tensor(ARRAY).shape == (3, 5, 7) and T.crop(ARRAY, 0, 0, 2, 2).shape == (2, 2, 3)
