"""Record the declarations of some op types of Paddle 2.x, and what it added to those of 1.8.5; run
with Paddle 3.3.1.

Writes tests/data/op_protos_2x.json and tests/data/op_additions_3.3.1.json: {op type: {"in": slots,
"out": slots, "attrs": {name: type}}}.
"""

import json
import os

from paddle.base.proto import framework_pb2
from paddle.framework import core

OPS = """
acosh adamw angle as_complex as_real asgd asinh atan2 atanh baddbmm batch_fc bernoulli bicubic_interp_v2
bilinear_interp_v2 bincount binomial bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor broadcast_tensors celu channel_shuffle check_finite_and_unscale cholesky cholesky_solve complex conj
copysign cosh cummax cummin cumprod dequantize_linear determinant diag_v2 diagonal digamma dirichlet eig eigh eigvals
eigvalsh einsum elementwise_fmax elementwise_fmin elementwise_heaviside empty equal_all erfinv expand_as_v2 expand_v2
expm1 fake_channel_wise_quantize_dequantize_abs_max fake_quantize_dequantize_abs_max fft_c2c fft_c2r fft_r2c fill_any
fill_diagonal fill_diagonal_tensor flatten_contiguous_range fold fractional_max_pool2d fractional_max_pool3d frame
fused_softmax_mask fused_softmax_mask_upper_triangle gammaincc gammaln generate_proposals_v2 graph_send_recv
graph_send_ue_recv graph_send_uv gumbel_softmax histogram i0 i0e i1 i1e identity_loss imag index_add index_put inverse
isclose isfinite_v2 isinf_v2 isnan_v2 kthvalue lerp lgamma linear_interp_v2 log10 log2 log_softmax logcumsumexp logit
logspace logsumexp lp_pool2d lstsq lu lu_unpack masked_fill masked_select matmul_v2 matrix_power matrix_rank memcpy
memcpy_d2h memcpy_h2d merged_adam merged_momentum mode multi_dot multiclass_nms3 multinomial mv nadam nanmedian
nearest_interp_v2 nextafter npu_identity overlap_add pad3d pixel_unshuffle poisson polygamma put_along_axis qr
quantize_linear radam real reduce_amax reduce_amin reduce_as renorm repeat_interleave rms_norm rnn rprop rrelu
searchsorted segment_pool set_value share_data silu sinh slogdeterminant solve standard_gamma std svd swiglu
take_along_axis tan tile top_k_v2 triangular_solve tril_indices trilinear_interp_v2 triu_indices trunc
unique_consecutive unpool3d update_loss_scaling viterbi_decode
""".split()
SHARED = {
    "op_role",
    "op_role_var",
    "op_namescope",
    "op_callstack",
    "op_device",
    "with_quant_attr",
    "op_proto_version",
}
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def marks(v):
    return v.name + "*" * v.duplicable + "?" * v.dispensable + "~" * v.intermediate


def declared(proto):
    types = {
        a.name: framework_pb2.AttrType.Name(a.type) for a in proto.attrs if a.name not in SHARED
    }
    return {
        "in": [marks(v) for v in proto.inputs],
        "out": [marks(v) for v in proto.outputs],
        "attrs": {n: [t] for n, t in sorted(types.items())},
    }


def added(now, before):
    slots = {s.rstrip("*?~") for way in ("in", "out") for s in before[way]}
    found = {
        "in": [s for s in now["in"] if s.rstrip("*?~") not in slots],
        "out": [s for s in now["out"] if s.rstrip("*?~") not in slots],
        "attrs": {n: t for n, (t,) in now["attrs"].items() if n not in before["attrs"]},
    }
    return {k: v for k, v in found.items() if v}


def write(name, table):
    with open(os.path.join(DATA, name), "w") as f:
        f.write(
            "{\n"
            + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items()))
            + "\n}\n"
        )


def main():
    protos = [framework_pb2.OpProto.FromString(data) for data in core.get_all_op_protos()]
    now = {p.type: declared(p) for p in protos}
    with open(os.path.join(DATA, "op_protos_1.8.5.json")) as f:
        before = json.load(f)
    write("op_protos_2x.json", {k: now[k] for k in OPS})
    both = {k: added(now[k], before[k]) for k in now.keys() & before.keys()}
    write("op_additions_3.3.1.json", {k: v for k, v in both.items() if v})


if __name__ == "__main__":
    main()
