"""Calls of paddle.vision.transforms, as expressions; recorded from Paddle 2.6.2 by
tests/tools/record_transforms.py.

Names: ``T`` is the module, ``rgb`` and ``grey`` are images of Pillow's (7 x 5), ``array`` is rgb as
uint8, ``float_array`` [3, 5, 7]. Python's and NumPy's random numbers begin anew for each.
Importable on Python 3.8 with nothing but NumPy and Pillow.
"""

import random

import numpy as np
from PIL import Image

CASES = {
    "to_tensor": "T.to_tensor(rgb)",
    "to_tensor last": "T.to_tensor(grey, 'HWC')",
    "to_tensor array": "T.to_tensor(array)",
    "resize": "T.resize(rgb, (4, 9))",
    "resize edge": "T.resize(rgb, 10, 'nearest')",
    "resize same": "T.resize(rgb, 5)",
    "resize bicubic": "T.resize(grey, [8, 3], 'bicubic')",
    "pad": "T.pad(rgb, 2, (1, 2, 3))",
    "pad number": "T.pad(rgb, 1, 7)",
    "pad two": "T.pad(grey, (1, 2), 9)",
    "pad edge": "T.pad(rgb, [1, 2, 3, 0], padding_mode='edge')",
    "pad reflect": "T.pad(grey, 2, padding_mode='reflect')",
    "pad symmetric": "T.pad(rgb, (2, 1), padding_mode='symmetric')",
    "crop": "T.crop(rgb, 1, 2, 3, 4)",
    "crop beyond": "T.crop(rgb, 3, 5, 4, 4)",
    "crop array": "T.crop(array, 1, 2, 3, 4)",
    "center_crop": "T.center_crop(rgb, (2, 4))",
    "center_crop array": "T.center_crop(array, 3)",
    "hflip": "T.hflip(rgb)",
    "vflip": "T.vflip(rgb)",
    "rotate": "T.rotate(rgb, 30, 'bilinear', fill=(9, 8, 7))",
    "rotate expand": "T.rotate(rgb, 90, expand=True)",
    "rotate center": "T.rotate(rgb, 45, center=[1, 1], fill=5)",
    "brightness": "T.adjust_brightness(rgb, 1.7)",
    "contrast": "T.adjust_contrast(rgb, 0.4)",
    "saturation": "T.SaturationTransform([2.0, 2.0])(rgb)",
    "hue": "T.adjust_hue(rgb, -0.3)",
    "hue grey": "T.adjust_hue(grey, 0.3)",
    "to_grayscale": "T.to_grayscale(rgb)",
    "to_grayscale 3": "T.to_grayscale(rgb, 3)",
    "normalize": "T.normalize(float_array, [1.0, 2.0, 3.0], [0.5, 2.0, 4.0])",
    "normalize last": "T.normalize(rgb, [1.0, 2.0, 3.0], [0.5, 2.0, 4.0], 'HWC')",
    "Resize": "T.Resize(8)(rgb)",
    "CenterCrop": "T.CenterCrop(3)(rgb)",
    "Pad": "T.Pad([1, 2], 3, 'constant')(grey)",
    "Normalize": "T.Normalize(127.5, 100.0)(float_array)",
    "Transpose": "T.Transpose()(rgb)",
    "Transpose grey": "T.Transpose((2, 1, 0))(grey)",
    "ToTensor": "T.ToTensor('HWC')(rgb)",
    "Grayscale": "T.Grayscale(3)(rgb)",
    "RandomHorizontalFlip": "[T.RandomHorizontalFlip()(rgb) for _ in range(4)]",
    "RandomVerticalFlip": "[T.RandomVerticalFlip(0.3)(rgb) for _ in range(4)]",
    "RandomRotation": (
        "[T.RandomRotation(60, 'bicubic', fill=3)(rgb), T.RandomRotation([10, 20],"
        " expand=True)(rgb)]"
    ),
    "RandomCrop": (
        "[T.RandomCrop(3)(rgb), T.RandomCrop((5, 7))(rgb), T.RandomCrop([4, 4], padding=2,"
        " fill=9)(rgb)]"
    ),
    "RandomCrop padded": "T.RandomCrop(9, pad_if_needed=True, padding_mode='edge')(rgb)",
    "RandomResizedCrop": "[T.RandomResizedCrop(4)(rgb) for _ in range(4)]",
    "RandomResizedCrop middle": (
        "[T.RandomResizedCrop((3, 4), (2.0, 3.0), r)(rgb) for r in ((0.1, 0.2), (4.0, 5.0), (0.5,"
        " 2.0))]"
    ),
    "BrightnessTransform": "[T.BrightnessTransform(0.4)(rgb), T.BrightnessTransform(0)(rgb)]",
    "ContrastTransform": "T.ContrastTransform(3.0)(rgb)",
    "SaturationTransform": "T.SaturationTransform([0.5, 0.7])(rgb)",
    "HueTransform": "[T.HueTransform(0.3)(rgb), T.HueTransform(0)(rgb)]",
    "ColorJitter": "[T.ColorJitter(0.4, 0.3, 0.2, 0.1)(rgb) for _ in range(3)]",
    "Compose": "T.Compose([T.Resize(6), T.RandomCrop(4), T.ToTensor()])(rgb)",
    "keys": "T.Resize((2, 2), keys=['image'])((rgb, 'label'))[0]",
    "own": "own(T)(2, ('image', 'boxes'))((rgb, np.arange(4), 'label'))[:2]",
}

# recorded from Paddle 3.3.1 with Pillow 13; without `fill`, which it hands to Pillow as another
# argument, so that it is lost
LATER = {
    "affine": "T.affine(rgb, 30, [1, -1], 1.2, [10, 5], 'bilinear')",
    "affine nearest": (
        "[T.affine(rgb, -75.5, (0, 2), 0.7, 20), T.affine(rgb, 0, (0, 0), 1.0, (0, 0))]"
    ),
    "affine center": "T.affine(rgb, 90, [0, 0], 1.0, [0.0, 0.0], 'bicubic', 0, [1, 2])",
    "perspective": (
        "T.perspective(rgb, [[0, 0], [6, 0], [6, 4], [0, 4]], [[1, 0], [5, 1], [6, 4], [0, 3]],"
        " 'bilinear')"
    ),
    "perspective nearest": (
        "T.perspective(rgb, [[0, 0], [6, 0], [6, 4], [0, 4]], [[0.3, 0.9], [5.8, 0.2], [5.1, 3.2],"
        " [0.7, 3.9]])"
    ),
    "erase": (
        "[T.erase(rgb, 1, 2, 3, 4, 7), T.erase(array, 0, 0, 2, 3, np.array([1, 2, 3])),"
        " T.erase(float_array, 1, 1, 9, 2, 0.5)]"
    ),
    "RandomAffine": (
        "[T.RandomAffine(40)(rgb), T.RandomAffine([10, 20], (0.3, 0.2), (0.5, 2.0), 15,"
        " 'bilinear')(rgb)]"
    ),
    "RandomAffine shears": (
        "[T.RandomAffine(0, shear=[-5, 5, 10, 20], center=(2, 2))(rgb), T.RandomAffine(0, shear=(5,"
        " 6))(rgb)]"
    ),
    "RandomPerspective": (
        "[T.RandomPerspective()(rgb) for _ in range(4)] + [T.RandomPerspective(1.0, 0.9,"
        " 'bicubic')(rgb)]"
    ),
    "RandomErasing": (
        "[T.RandomErasing(0.7)(v) for v in (rgb, array, rgb, array)] + [T.RandomErasing(1,"
        " value=[1, 2, 3])(rgb)]"
    ),
    "RandomErasing random": (
        "[T.RandomErasing(1.0, (0.2, 0.9), (0.5, 2.0), 'random')(rgb), T.RandomErasing(1.0,"
        " value=(5,))(float_array)]"
    ),
    "RandomErasing none fits": "T.RandomErasing(1.0, (1.0, 1.0), (1.0, 1.0))(rgb)",
}


def own(T):
    """a transform of a user's, which shares what it draws"""

    class Shift(T.BaseTransform):
        def __init__(self, by, keys):
            T.BaseTransform.__init__(self, keys)
            self.by = by

        def _get_params(self, inputs):
            return self.by * random.randint(1, 5)

        def _apply_image(self, image):
            return np.asarray(image) // self.params

        def _apply_boxes(self, boxes):
            return boxes + self.params

    return Shift


def names(module):
    n = np.arange(5 * 7 * 3)
    array = (np.sin(n * n * 0.37 + n) * 127 + 128).astype("uint8").reshape(5, 7, 3)
    return {
        "T": module,
        "np": np,
        "own": own,
        "array": array,
        "rgb": Image.fromarray(array),
        "grey": Image.fromarray(array[..., 0].copy()),
        "float_array": array.transpose(2, 0, 1).astype("float32"),
    }


def results(module, text):
    """The arrays that a case gives."""
    random.seed(7)
    np.random.seed(7)
    value = eval(text, names(module))
    return [np.asarray(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
