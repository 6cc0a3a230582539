"""Ops that stand for several others on arrays."""

from ..sample import Sample, away_from_zero, f32


def fc(shape, wide, bias=True, **attrs):
    first = attrs.get("in_num_col_dims", 1)
    height = 1
    for n in shape[first:]:
        height *= n
    inputs = {"Input": f32(*shape), "W": f32(height, wide)}
    if bias:
        inputs["Bias"] = f32(1, wide)
    return Sample("fc", inputs, attrs, ["Out"])


def fused(functors, x=(2, 3, 4), y=None, **attrs):
    inputs = {"X": away_from_zero(*x), "Y": away_from_zero(*(y or x))}
    return Sample(
        "fused_elemwise_activation",
        inputs,
        dict(functor_list=functors, **attrs),
        ["Out"],
        ["X", "Y"],
    )


SAMPLES = [
    fc((3, 4), 5),
    fc((3, 4), 5, bias=False),
    fc((2, 3, 4), 5, in_num_col_dims=2, activation_type="relu"),
    fc((2, 3, 2), 4, activation_type="relu"),
    Sample(
        "fusion_squared_mat_sub",
        {"X": f32(3, 4), "Y": f32(4, 5)},
        {"scalar": 0.5},
        ["Out", "SquaredX", "SquaredY", "SquaredXY"],
    ),
    Sample(
        "fusion_repeated_fc_relu",
        {"X": f32(3, 4), "W": [f32(4, 5), f32(5, 6)], "Bias": [f32(1, 5), f32(1, 6)]},
        {},
        {"Out": None, "ReluOut": 1},
    ),
    Sample(
        "fusion_repeated_fc_relu",
        {
            "X": f32(2, 3),
            "W": [f32(3, 5), f32(5, 4), f32(4, 2)],
            "Bias": [f32(1, 5), f32(1, 4), f32(1, 2)],
        },
        {},
        {"Out": None, "ReluOut": 2},
    ),
    fused(["elementwise_add", "scale"], scale=0.5),
    fused(["scale", "elementwise_add"], scale=0.5),
    fused(["elementwise_add", "relu"]),
    fused(["relu", "elementwise_add"]),
    fused(["elementwise_mul", "scale"], y=(3,), axis=1, scale=2.0),
    fused(["tanh", "elementwise_add"], y=(4,), save_intermediate_out=True),
    fused(["elementwise_mul", "sigmoid"], save_intermediate_out=True),
    fused(["relu", "elementwise_add"], y=(3, 4), axis=1, save_intermediate_out=True),
]
