"""Convolutions: layouts, paddings, dilations and groups."""

from ..sample import Sample, f32

CONV_GRAD = ["Input", "Filter"]


def conv(op, x, w, paddle=True, note="", **attrs):
    return Sample(
        op,
        {"Input": f32(*x), "Filter": f32(*w)},
        attrs,
        outputs=["Output"],
        grad=CONV_GRAD,
        paddle=paddle,
        note=note,
    )


def conv2d():
    yield conv("conv2d", (2, 3, 6, 5), (4, 3, 3, 3))
    yield conv("conv2d", (2, 3, 6, 5), (4, 3, 3, 3), paddings=[1, 1], strides=[2, 2])
    yield conv("conv2d", (2, 3, 7, 6), (4, 3, 3, 2), paddings=[2, 1, 0, 3], strides=[2, 1])
    yield conv("conv2d", (1, 2, 9, 8), (3, 2, 3, 3), dilations=[2, 2], paddings=[2, 1])
    yield conv("conv2d", (2, 4, 6, 6), (6, 2, 3, 3), groups=2, paddings=[1, 1])
    yield conv("conv2d", (2, 6, 5, 4), (6, 4, 3, 3), data_format="NHWC", paddings=[1, 0])
    yield conv(
        "conv2d", (2, 6, 5, 4), (6, 2, 3, 3), data_format="NHWC", groups=2, paddings=[0, 1, 2, 0]
    )
    yield conv("conv2d", (2, 3, 7, 6), (2, 3, 3, 2), padding_algorithm="SAME", strides=[2, 2])
    # SAME resets the dilations to 1, and the paddings given do not matter
    yield conv(
        "conv2d",
        (2, 3, 7, 6),
        (2, 3, 3, 3),
        padding_algorithm="SAME",
        dilations=[2, 2],
        paddings=[1, 1],
    )
    yield conv(
        "conv2d",
        (2, 3, 7, 6),
        (2, 3, 3, 3),
        padding_algorithm="VALID",
        dilations=[2, 2],
        paddings=[1, 1],
    )
    yield conv("conv2d", (2, 3, 5, 4), (4, 3, 1, 1))
    yield conv("conv2d", (2, 3, 5, 4), (4, 3, 1, 1), strides=[2, 2])
    yield conv("conv2d", (2, 5, 4, 3), (4, 3, 1, 1), data_format="NHWC")
    yield conv("conv2d", (2, 5, 4, 3), (4, 3, 1, 1), data_format="NHWC", strides=[2, 2])
    yield conv("conv2d", (2, 5, 4, 3), (4, 3, 1, 1), data_format="NHWC", paddings=[1, 1])
    yield conv("conv2d", (2, 4, 5, 4), (4, 2, 1, 1), groups=2)
    # a bias and a residual are added by Paddle's MKLDNN kernels only; its plain CPU kernel ignores
    # both
    yield Sample(
        "conv2d",
        {
            "Input": f32(2, 3, 5, 5),
            "Filter": f32(4, 3, 3, 3),
            "Bias": f32(4),
            "ResidualData": f32(2, 4, 3, 3),
        },
        {},
        outputs=["Output"],
        grad=["Input", "Filter", "Bias"],
        paddle=False,
        note="the plain CPU kernel ignores Bias",
    )
    yield Sample(
        "conv2d",
        {"Input": f32(2, 5, 5, 3), "Filter": f32(4, 3, 3, 3), "Bias": f32(4)},
        {"data_format": "NHWC"},
        outputs=["Output"],
        grad=["Input", "Filter", "Bias"],
        paddle=False,
        note="the plain CPU kernel ignores Bias",
    )


def depthwise():
    yield conv("depthwise_conv2d", (2, 4, 6, 5), (4, 1, 3, 3), groups=4, paddings=[1, 1])
    yield conv(
        "depthwise_conv2d",
        (2, 3, 6, 5),
        (6, 1, 3, 2),
        groups=3,
        strides=[2, 2],
        paddings=[1, 0, 0, 1],
    )
    yield conv(
        "depthwise_conv2d",
        (2, 6, 5, 4),
        (4, 1, 3, 3),
        groups=4,
        data_format="NHWC",
        padding_algorithm="SAME",
    )
    yield conv("depthwise_conv2d", (1, 3, 8, 8), (3, 1, 3, 3), groups=3, dilations=[2, 3])


def transpose():
    op = "conv2d_transpose"
    yield conv(op, (2, 3, 4, 5), (3, 4, 3, 3))
    yield conv(op, (2, 3, 4, 5), (3, 4, 3, 3), strides=[2, 2], paddings=[1, 1])
    yield conv(op, (2, 3, 4, 4), (3, 2, 3, 3), strides=[2, 2], paddings=[1, 1], output_size=[8, 7])
    yield conv(op, (2, 3, 4, 4), (3, 2, 3, 3), strides=[3, 2], output_size=[14, 10])
    yield conv(op, (2, 3, 4, 5), (3, 2, 3, 2), strides=[2, 1], paddings=[1, 0, 2, 1])
    yield conv(op, (1, 2, 4, 4), (2, 3, 3, 3), dilations=[2, 2], paddings=[1, 1])
    yield conv(op, (2, 4, 4, 4), (4, 3, 3, 3), groups=2, strides=[2, 2])
    yield conv(op, (2, 4, 5, 3), (3, 4, 3, 3), data_format="NHWC", strides=[2, 2], paddings=[1, 1])
    yield conv(op, (2, 4, 5, 4), (4, 3, 3, 3), data_format="NHWC", groups=2)
    yield conv(op, (2, 3, 4, 5), (3, 2, 3, 3), padding_algorithm="SAME", strides=[2, 2])
    yield conv(op, (2, 3, 4, 5), (3, 2, 3, 3), padding_algorithm="SAME", dilations=[2, 2])
    yield conv(op, (2, 3, 4, 5), (3, 2, 3, 3), padding_algorithm="VALID", paddings=[1, 1])
    yield conv(op, (2, 3, 3, 3), (3, 2, 1, 1), strides=[2, 2])
    yield conv(op, (2, 3, 4, 4), (3, 2, 1, 1))
    yield conv(
        "depthwise_conv2d_transpose",
        (2, 4, 4, 5),
        (4, 1, 3, 3),
        groups=4,
        strides=[2, 2],
        paddings=[1, 1],
    )
    yield conv(
        "depthwise_conv2d_transpose",
        (2, 3, 4, 4),
        (3, 1, 4, 4),
        groups=3,
        strides=[2, 2],
        paddings=[1, 1],
        output_size=[9, 8],
    )


def volumes():
    yield conv("conv3d", (1, 2, 4, 5, 4), (3, 2, 3, 3, 2))
    yield conv(
        "conv3d", (1, 2, 4, 5, 4), (4, 1, 3, 3, 2), groups=2, strides=[1, 2, 1], paddings=[1, 0, 1]
    )
    yield conv(
        "conv3d", (1, 4, 4, 3, 2), (3, 2, 2, 2, 2), data_format="NDHWC", paddings=[1, 0, 0, 1, 2, 1]
    )
    yield conv(
        "conv3d", (1, 2, 5, 5, 6), (2, 2, 2, 2, 2), padding_algorithm="SAME", strides=[2, 2, 2]
    )
    yield conv("conv3d", (1, 2, 3, 4, 3), (3, 2, 1, 1, 1))
    yield conv("conv3d", (1, 3, 4, 3, 2), (3, 2, 1, 1, 1), data_format="NDHWC")
    yield conv(
        "conv3d_transpose", (1, 2, 3, 3, 4), (2, 3, 2, 3, 2), strides=[2, 1, 2], paddings=[0, 1, 0]
    )
    yield conv("conv3d_transpose", (1, 4, 3, 2, 3), (4, 1, 2, 2, 2), groups=2, dilations=[1, 2, 1])
    yield conv(
        "conv3d_transpose",
        (1, 2, 2, 3, 3),
        (2, 2, 2, 2, 2),
        strides=[2, 2, 2],
        output_size=[5, 6, 7],
    )
    yield conv(
        "conv3d_transpose", (1, 2, 3, 3, 2), (2, 3, 2, 2, 2), data_format="NHWC", strides=[2, 2, 2]
    )


def more():
    yield conv(
        "depthwise_conv2d",
        (2, 5, 6, 3),
        (6, 1, 3, 2),
        groups=3,
        strides=[2, 1],
        data_format="NHWC",
        paddings=[1, 0, 0, 1],
    )
    # groups equal to the channels, but 64 filter cells: not unrolled
    yield conv("depthwise_conv2d", (1, 2, 9, 9), (2, 1, 8, 8), groups=2)
    yield conv("conv2d_transpose", (2, 3, 3, 3), (3, 2, 1, 1), strides=[2, 2], data_format="NHWC")
    yield Sample(
        "conv2d_transpose",
        {"Input": f32(2, 4, 4, 3), "Filter": f32(3, 2, 3, 3), "Bias": f32(2)},
        {"data_format": "NHWC"},
        outputs=["Output"],
        grad=["Input", "Filter", "Bias"],
        paddle=False,
        note="the plain CPU kernel ignores Bias",
    )


SAMPLES = [*conv2d(), *depthwise(), *transpose(), *volumes(), *more()]


def cut_short():
    """Sizes are divided toward zero: a filter that lacks fewer cells than a stride has one output,
    beyond the end zeros.
    """
    yield conv("conv2d", (1, 2, 6, 6), (2, 2, 7, 7), strides=[7, 7])
    yield conv(
        "conv2d", (1, 1, 4, 4), (1, 1, 3, 3), strides=[7, 7], paddings=[1, 1], dilations=[3, 3]
    )
    yield conv("depthwise_conv2d", (1, 2, 3, 6), (2, 1, 4, 4), strides=[2, 2], groups=2)
    yield conv("conv3d", (1, 1, 2, 3, 3), (1, 1, 3, 3, 3), strides=[2, 2, 2])


SAMPLES += [*cut_short()]
