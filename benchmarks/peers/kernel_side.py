"""The convolutions and matrix products of a net that fluid_side.py exported, by XLA's own kernels
with channels last and nothing between them: what is left to a net that does all else for nothing.
"""

import os


def load(side):
    import jax

    return "kernels of jax " + jax.__version__


def make(case):
    import jax
    import jax.numpy as jnp
    import numpy as np
    import onnx
    from jax import lax

    found = onnx.load(os.path.join(os.environ["PEER_MODEL"], "model.onnx"))
    graph = onnx.shape_inference.infer_shapes(found, data_prop=True).graph
    shapes = {t.name: tuple(t.dims) for t in graph.initializer}
    for value in (*graph.value_info, *graph.input, *graph.output):
        shapes[value.name] = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
    runs, arguments = [], []
    for node in graph.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Conv":
            (n, c, *sides), (out, each, *window) = (shapes[name] for name in node.input[:2])
            pads, half = attrs.get("pads", [0] * 4), len(sides)
            how = {
                "window_strides": attrs.get("strides", [1] * half),
                "padding": list(zip(pads[:half], pads[half:], strict=True)),
                "rhs_dilation": attrs.get("dilations", [1] * half),
                "feature_group_count": attrs.get("group", 1),
                "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
            }
            runs.append(lambda x, w, how=how: lax.conv_general_dilated(x, w, **how))
            arguments.append(((n, *sides, c), (*window, each, out)))
        elif node.op_type in ("MatMul", "Gemm"):
            x, w = (shapes[name] for name in node.input[:2])
            runs.append(jnp.matmul)
            arguments.append((x, w[::-1] if attrs.get("transB") else w))
    drawn = np.random.default_rng(0)
    given = [
        tuple(jnp.asarray(drawn.standard_normal(s, np.float32)) for s in pair) for pair in arguments
    ]
    step = jax.jit(lambda given: [run(*pair) for run, pair in zip(runs, given, strict=True)])

    def steps(count):
        for _ in range(count):
            jax.block_until_ready(step(given))
        return float("nan")  # it predicts nothing

    return steps
