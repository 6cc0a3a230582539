"""Matrices of different sizes in one ragged value."""

from ..sample import Sample, distinct, f32

SEVERAL = ([[2, 3, 1]], [[4, 1, 2]])


def total(channels, rows, columns):
    return sum(lengths(channels, rows, columns)[0])


def lengths(channels, rows, columns):
    return [[channels * rows[0][n] * columns[0][n] for n in range(len(rows[0]))]]


def match(rows, columns, dim_t=1, wide=(3, 3)):
    x, y = f32(sum(rows[0]), wide[0]), f32(sum(columns[0]), wide[1])
    return Sample(
        "match_matrix_tensor",
        {"X": x, "Y": y, "W": f32(wide[0], dim_t, wide[1])},
        {"dim_t": dim_t},
        ["Out", "Tmp"],
        ["X", "Y", "W"],
        of=["Out"],
        lod={"X": rows, "Y": columns},
        rows={"Out": total(dim_t, rows, columns)},
    )


def top(rows, columns, topks, channels=1):
    inputs = {
        "X": distinct(total(channels, rows, columns), 1),
        "ROW": f32(sum(rows[0]), 2),
        "COLUMN": f32(sum(columns[0]), 2),
    }
    return Sample(
        "sequence_topk_avg_pooling",
        inputs,
        {"topks": topks, "channel_num": channels},
        ["Out"],
        ["X"],
        lod={"X": lengths(channels, rows, columns), "ROW": rows, "COLUMN": columns},
    )


def conv(rows, columns, kernel, stride=(1, 1), channels=(1, 2)):
    inputs = {
        "X": f32(total(channels[0], rows, columns), 1),
        "ROW": f32(sum(rows[0]), 2),
        "COLUMN": f32(sum(columns[0]), 2),
        "W": f32(channels[1], channels[0] * kernel[0] * kernel[1]),
    }
    attrs = {
        "InputChannel": channels[0],
        "OutputChannel": channels[1],
        "KernelH": kernel[0],
        "KernelW": kernel[1],
        "StrideH": stride[0],
        "StrideW": stride[1],
    }
    made = [[[-(-n // stride[0]) for n in rows[0]]], [[-(-n // stride[1]) for n in columns[0]]]]
    return Sample(
        "var_conv_2d",
        inputs,
        attrs,
        ["Out"],
        ["X", "W"],
        of=["Out"],
        lod={"X": lengths(channels[0], rows, columns), "ROW": rows, "COLUMN": columns},
        rows={"Out": total(channels[1], *made)},
    )


SAMPLES = [
    match(*SEVERAL),
    match(*SEVERAL, dim_t=3),
    match([[2]], [[3]], dim_t=2, wide=(2, 2)),
    top(*SEVERAL, topks=[1, 3]),
    top(*SEVERAL, topks=[2, 3, 6], channels=2),
    top([[3]], [[5]], topks=[5], channels=3),
    conv(*SEVERAL, kernel=(3, 3)),
    conv(*SEVERAL, kernel=(2, 3), channels=(2, 3)),
    conv([[4, 5]], [[5, 3]], kernel=(3, 3), stride=(2, 2), channels=(2, 2)),
    conv([[4, 2]], [[3, 3]], kernel=(1, 5), stride=(1, 2)),
]
