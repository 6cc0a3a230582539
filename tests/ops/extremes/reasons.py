"""Why an op here may differ from Paddle 1.8.5 at an extreme input. Every difference needs one of
these, or is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .judge import Difference


@dataclass(frozen=True)
class Reason:
    """`claims`: the differences that it explains, as (pattern of case names, pattern of keys,
    condition or None).

    rounding: the compiler and the processor decide about the last digits, so the page only names
    the outputs.
    """

    title: str
    text: str
    claims: tuple[tuple[str, str, Callable[[Difference], bool] | None], ...]
    rounding: bool = False

    def explains(self, difference: Difference) -> bool:
        return any(
            re.fullmatch(cases, difference.case)
            and re.fullmatch(keys, difference.key)
            and (holds is None or holds(difference))
            for cases, keys, holds in self.claims
        )


def given(difference: Difference, slot: str) -> Any:
    """The input of a pointwise case; nan where the slot has none."""
    return dict(difference.inputs).get(slot, np.nan)


def zeros(d: Difference) -> bool:
    """Zeros of different signs."""
    return d.here == 0 and all(p == 0 for p in d.paddle)


def paddle_nan(d: Difference) -> bool:
    """Paddle's answer is nan, this one's is not."""
    return all(np.isnan(p) for p in d.paddle) and not np.isnan(d.here)


def near_one(d: Difference) -> bool:
    """The answers differ by less than a sum of parts near 1 is rounded."""
    eps = np.finfo(d.here.dtype).eps
    return all(abs(float(p) - float(d.here)) <= 64 * eps for p in d.paddle)


def masked(d: Difference) -> bool:
    """Zero here, though what flows in is not finite."""
    return d.here == 0 and not np.isfinite(given(d, "Out@GRAD"))


REASONS: list[Reason] = [
    Reason(
        "Nothing is left",
        "Where every id is blank, 1.8.5's `ctc_align` gives one row of -1 that is in no sequence."
        " Here there are no rows, as the LoD says there too.",
        (("ctc_align .* all blank", "Output", None),),
    ),
    Reason(
        "The sign of a zero",
        "1.8.5 adds 0 to -0.0, or takes its maximum with 0, as its processor's instructions happen"
        " to do; XLA leaves out an added 0, and its maximum of the two zeros is 0.0.",
        ((".*", "[^@]*", zeros),),
    ),
    Reason(
        "A masked gradient is zero",
        "1.8.5 multiplies the gradient that flows in by a mask of zeros and ones, so an infinite or"
        " undefined one gives nan where the mask is 0. XLA makes a selection of such a product, so"
        " it is 0 here, whatever flows in.",
        (
            (
                r"(relu|brelu|soft_relu|hard_shrink|softshrink|thresholded_relu) .*",
                "X@GRAD",
                masked,
            ),
            (r"(hard_sigmoid|hard_swish|ceil|floor|round) .*", "X@GRAD", masked),
            (r"hinge_loss float32", "Logits@GRAD", paddle_nan),
        ),
    ),
    Reason(
        "Infinity times zero",
        "Paddle's formula multiplies an overflowed or infinite factor by 0 and gives nan, where the"
        " function has a limit.",
        (
            (r"(elu|logsigmoid|softplus|hard_swish) .*", ".*", paddle_nan),
            (r"sigmoid_focal_loss .*", ".*", paddle_nan),
            (r"soft_relu float64.*", "X@GRAD", lambda d: np.isnan(given(d, "X"))),
            (r"(expm1|silu) .*", "X@GRAD", paddle_nan),
        ),
    ),
    Reason(
        "Zero divided by zero",
        "1.8.5 divides by a norm, a sum of weights or a number of labels that is 0, and gives nan:"
        " every tensor of zeros that `clip_by_norm` meets, a batch whose labels are all ignored or"
        " weigh nothing. Here zeros stay zeros. (1.8.5's GPU kernel of"
        " `sigmoid_cross_entropy_with_logits` keeps the divisor above 0 too.)",
        (
            (r"(dgc_)?clip_by_norm .*", "Out", paddle_nan),
            (r"nll_loss .* mean no weight", "X@GRAD", paddle_nan),
            (r"sigmoid_cross_entropy_with_logits .* all ignored", ".*", paddle_nan),
        ),
    ),
    Reason(
        "polygamma of order 0",
        "3.3.1's op takes a zeta function at 1 for it, which is infinite; its function"
        " `paddle.polygamma` appends `digamma` for an n of 0, which the op here is too.",
        ((r"polygamma .* n=0", "out", lambda d: np.isinf(d.paddle[0])),),
    ),
    Reason(
        "Ignored labels have no gradient",
        "1.8.5's CPU kernel of `softmax_with_cross_entropy` leaves the gradient of an ignored row"
        " as if its label were there; its GPU kernel and the derivative say 0.",
        ((r"softmax_with_cross_entropy .*ignore.*", "Logits@GRAD", lambda d: d.here == 0),),
    ),
    Reason(
        "Digits lost to cancellation",
        "1.8.5 computes `log(1 + x)`, `exp(x) - 1`, `1 + erf(x)` or `1 - y * y` as they are"
        " written, which loses the digits of a small result; here `log1p`, `expm1` and `erfc` keep"
        " them, or the two round otherwise. The difference is below 64 units in the last place of 1"
        " (1024 in the gradients of an `lstm` whose gates are at their bounds).",
        (
            (
                (
                    r"(logsigmoid|softplus|soft_relu|tanh_shrink|log1p|expm1|elu|celu|selu|gelu|tanh|stanh) .*"
                ),
                ".*",
                near_one,
            ),
            (
                r"(sigmoid_cross_entropy_with_logits|rank_loss|bpr_loss|sigmoid_focal_loss) .*",
                ".*",
                near_one,
            ),
            (
                (
                    r"(teacher_student_sigmoid_loss|cos_sim|spectral_norm|linear_chain_crf|gru|lstmp?) .*"
                ),
                ".*",
                near_one,
            ),
            (r"softmax_with_cross_entropy float64 .*soft", "Logits@GRAD", near_one),
            (r"group_norm .* one", "X@GRAD", near_one),
            (
                r"expm1 .*",
                "X@GRAD",
                lambda d: (
                    abs(d.here - d.paddle[0])
                    <= 64 * np.finfo(d.here.dtype).eps * given(d, "Out@GRAD")
                ),
            ),
            (
                r"lstm .* bounds, plain, relu",
                ".*@GRAD",
                lambda d: abs(d.here - d.paddle[0]) <= 1024 * np.finfo(d.here.dtype).eps,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "The slope of swish far out",
        "Paddle adds `beta * out` and takes it away again, which leaves 0 of a slope of 1 where it"
        " is great.",
        (
            (
                r"swish .*",
                "X@GRAD",
                lambda d: abs(given(d, "X")) > 1e7 and d.here == 1 and d.paddle[0] == 0,
            ),
            (r"swiglu .* special", "x@GRAD", lambda d: d.here == 1 and d.paddle[0] == 0),
        ),
    ),
    Reason(
        "Numbers that overflow on the way",
        "1.8.5 multiplies and adds in another order, and a great intermediate result overflows"
        " before it becomes small again.",
        (
            (r"(square|pow) .*", "X@GRAD", lambda d: given(d, "Out@GRAD") > 1e38),
            (r"gelu .*", "Out", lambda d: given(d, "X") > 1e38),
            (r"bilinear_tensor_product .* (great|infinite)", "Y@GRAD", None),
            (r"linear_chain_crf .* infinite, .*", ".*", paddle_nan),
            (r"cumprod .* rows", "X@GRAD", paddle_nan),
            (r"gammaincc .* inside", "y@GRAD", lambda d: np.isnan(d.paddle[0]) or d.paddle[0] == 0),
            (r"multi_dot .* inf", "X@GRAD#1", None),
            (r"matrix_power .* inf", "X@GRAD", None),
            (r"log2 float32", "X@GRAD", lambda d: given(d, "Out@GRAD") > 1e38),
            (r"silu float32", "X@GRAD", lambda d: np.isinf(d.paddle[0])),
            (r"lerp float32", "Out", lambda d: np.isinf(d.paddle[0])),
            (r"sigmoid_cross_entropy_with_logits float32.*", "Out", lambda d: given(d, "X") > 1e38),
        ),
    ),
    Reason(
        "Numbers that underflow on the way",
        "A factor on the way to the result is subnormal, which XLA takes for 0. (It divides by a"
        " row by multiplying by its reciprocals.)",
        (
            (r"graph_send_uv .* MUL special", "out", lambda d: d.here == 0),
            (
                r"(swish|silu|mish|pow|rsqrt|reciprocal) float32.*",
                ".*",
                lambda d: all(abs(p) < 1e-35 for p in d.paddle),
            ),
            (r"pow float32.*", "X@GRAD", lambda d: given(d, "Out@GRAD") > 1e38),
            (r"elementwise_pow float32", "Y@GRAD", lambda d: all(abs(p) < 1e-35 for p in d.paddle)),
            (r"elementwise_div float32 row", "Out", lambda d: d.here == 0),
            (r"digamma float32", "X@GRAD", lambda d: d.here == 0 and abs(d.paddle[0]) < 1e-18),
            (r"celu float32", "X@GRAD", lambda d: d.here == 0 and given(d, "Out@GRAD") > 1e38),
            (r"mish float64", ".*", lambda d: all(abs(p) < 1e-300 for p in d.paddle)),
            (r"mish float32", "X@GRAD", lambda d: given(d, "X") <= -88),
        ),
    ),
    Reason(
        "Subnormal numbers count as 0",
        "XLA takes a subnormal number for 0 where it is compared, so it is not counted among the"
        " elements other than 0, and equals 0.",
        ((r"(where_index|unique|unique_with_counts) float32", ".*", None),),
    ),
    Reason(
        "The end of the range of exp",
        "The vector code of 1.8.5's exp stops at 88.7 (3.4e38) in float32, its scalar code"
        " overflows to infinity there, so `log(1 + exp(x))` depends on where in the tensor an"
        " element stands. Here it is x.",
        ((r"rank_loss float32.*", "Out", lambda d: not abs(d.here - d.paddle[0]) < 1),),
    ),
    Reason(
        "Constants in float32",
        "1.8.5 multiplies scale and alpha of `selu` in float32 for the gradient at some elements,"
        " in float64 at others.",
        ((r"selu float64", "X@GRAD", None),),
        rounding=True,
    ),
    Reason(
        "A zero that is added",
        "With epsilon = 0, XLA takes `x + epsilon` for x, so `log_loss` divides by -0.0 where 1.8.5"
        " divides by 0.0.",
        ((r"log_loss float32 epsilon=0", "Predicted@GRAD", lambda d: np.isinf(d.here)),),
    ),
    Reason(
        "nan among others",
        "Whether 1.8.5's maximum and minimum of a vector see a nan depends on where it stands. Here"
        " it always shows.",
        (
            (r"dist .* of \[nan, 0, 1\], p=-?inf", ".*", None),
            (r"put_along_axis .* am(ax|in)", "Result", lambda d: np.isnan(d.here)),
            (r"renorm .*", "X@GRAD", paddle_nan),
            (r"reduce_am(ax|in) .* one element", "X@GRAD", None),
        ),
    ),
    Reason(
        "The root of a square",
        "1.8.5's vector code has nan for the square root of infinity in float32, and squares"
        " overflow and underflow. XLA takes the root of the square of one element for its size.",
        ((r"frobenius_norm float32 (rows|one element)", ".*", None),),
    ),
    Reason(
        "What a comparison with nan leaves",
        "1.8.5 hands nan to `std::sort` and `std::partial_sort`, whose order is then anybody's."
        " Here `argsort` has nan last, in both directions, and `top_k` takes it for less than any"
        " number, and the best path of a CRF goes through it.",
        (
            (r"argsort .* nan .*", ".*", None),
            (r"top_k .* nan k=3", ".*", None),
            (r"crf_decoding .* nan, .*", ".*", None),
        ),
    ),
    Reason(
        "The order of equals",
        "`std::partial_sort` of 1.8.5's `top_k` leaves equal elements in the order of its heap;"
        " here the first go first. With k = 1 both take the first. So do `std::nth_element` and the"
        " sorts of 3.3.1's `top_k_v2`, `kthvalue`, `nanmedian` and, among nan, `mode`.",
        (
            (r"top_k .* k=3", "(Indices|X@GRAD)", None),
            (r"(top_k_v2|kthvalue|nanmedian) .*", "(Indices|X@GRAD)", None),
            (r"mode .* rows", "(Indices|X@GRAD)", None),
        ),
    ),
    Reason(
        "Sums of exponentials of infinities",
        "3.3.1's `logsumexp` takes an infinite maximum off itself, which gives nan; its"
        " `logcumsumexp` starts from the least number and passes over nan, with gradients to match."
        " Here they are the limits. Beside 3e38, where log 2 is lost, its gradient is exp(X - Out),"
        " here the softmax.",
        ((r"log(cum)?sumexp .* rows", "(Out|X@GRAD)", None),),
    ),
    Reason(
        "A floor under a softmax",
        "3.3.1's `log_softmax` on the CPU takes a number that lies more than 64 below the greatest"
        " for one that lies 64 below; here it is what it is.",
        ((r"log_softmax .* rows", "Out", lambda d: d.paddle[0] > -65),),
    ),
    Reason(
        "A masked number times infinity",
        "3.3.1 multiplies the branch that does not count by 0, where its exponential is infinite;"
        " here a branch is chosen.",
        ((r"celu .*", "X@GRAD", paddle_nan),),
    ),
    Reason(
        "Beside a pole or a root",
        "Near the poles of the gamma function, near 1 and 2, where its logarithm is 0, and where"
        " two slopes cancel far out, libraries differ in the digits that the subtraction leaves."
        " The slope of 3.3.1's `digamma` leaves the poles below 0 out in float32.",
        (
            (
                r"(lgamma|gammaln) .*",
                "(Out|out)",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-6,
            ),
            (r"gammaln .*", "x@GRAD", lambda d: np.isfinite(d.here)),
            (r"digamma .*", "X@GRAD", lambda d: not np.isfinite(d.paddle[0]) or given(d, "X") < 0),
            (r"i[01]e .*", "x@GRAD", lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-8),
        ),
        rounding=True,
    ),
    Reason(
        "The inverse of erf beside its ends",
        "3.3.1's `erfinv` takes the number next to 1 for 1, and gives 0 for numbers below the last"
        " digit of 1.",
        (
            (
                r"erfinv .*",
                "(Out|X@GRAD)",
                lambda d: np.isinf(d.paddle[0]) or d.paddle[0] == 0 or abs(float(d.here)) < 1e-4,
            ),
        ),
    ),
    Reason(
        "Integers by way of float64",
        "3.3.1's `trunc` of int64 rounds to float64's 53 bits; here an integer stays what it is.",
        ((r"trunc int64", "Out", None),),
    ),
    Reason(
        "Coefficients in float32",
        "3.3.1 takes the coefficients of a bicubic interpolation in float32 in float64 too.",
        (
            (
                r"bicubic_interp_v2 float64 .*",
                "(Out|X@GRAD)",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-4,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "Places in float32",
        "3.3.1's linear interpolations measure where a cell lies in float32 in float64 too.",
        (
            (
                r"linear_interp_v2 float64 .*centres",
                "(Out|X@GRAD)",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-6,
            ),
            (
                r"(tri)?linear_interp_v2 float64 great.*centres",
                "Out",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-6 * 3e38,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "Powers in float32",
        "3.3.1's `lp_pool2d` takes powers and their sums in float32 in float64 too, where they"
        " overflow.",
        (
            (
                r"lp_pool2d float64 (great|special), power [12]",
                "(out|x@GRAD)",
                lambda d: bool(np.isfinite(d.here)),
            ),
        ),
        rounding=True,
    ),
    Reason(
        "A factor of zero",
        "1.8.5's library leaves out a term whose factor is 0, rather than multiply infinity or nan"
        " by it; so do its recurrences at the first step, which has no hidden value before it.",
        (
            (r"sgd .* rate 0", "ParamOut", None),
            (r"matmul .* alpha=0", ".*", lambda d: np.isnan(d.here)),
            (r"addmm .*", "Out", lambda d: np.isnan(d.here)),
            (
                r"(gru|lstm) .* nan, single, .*",
                "(Weight|Bias)@GRAD",
                lambda d: np.isnan(d.here) and d.paddle[0] == 0,
            ),
        ),
    ),
    Reason(
        "The order of a sum",
        "Great numbers are added in another order, so that the sum overflows on the other side, or"
        " less is left where they cancel out.",
        (
            (
                r"(mul|matmul) float32",
                "Y@GRAD",
                lambda d: not np.isfinite(d.paddle[0]) and not np.isfinite(d.here),
            ),
            (
                r"pool2d avg float64 greatest .*",
                "Out",
                lambda d: np.isfinite(d.paddle[0]) and np.isfinite(d.here),
            ),
            (
                r"conv.* great, .*",
                ".*",
                lambda d: not np.isnan(d.paddle[0]) and not np.isnan(d.here),
            ),
            (r"(bicubic|trilinear)_interp .* great .*", "Out", None),
        ),
    ),
    Reason(
        "Averages that overflow on the way",
        "1.8.5 takes the variance as E[x^2] - E[x]^2, infinity less infinity, or moves a window"
        " along by adding one end and taking off the other; here deviations are squared, and"
        " windows summed.",
        (
            (r"(group_norm|instance_norm) .* great.*", ".*", paddle_nan),
            (r"group_norm float32 tiny.*", "(Variance|Y)", None),
            (r"lrn float32 (great|infinite)", ".*", paddle_nan),
        ),
        rounding=True,
    ),
    Reason(
        "The mean of infinities",
        "With an infinite value in the first sample, from whose mean batch_norm's pass measures"
        " (docs/numerics.md), the mean is nan here also where it is infinite in 1.8.5. Y is nan in"
        " both.",
        ((r"(batch_norm|inplace_abn) .* infinite.*", "(MeanOut|VarianceOut)", None),),
    ),
    Reason(
        "Zeros beyond the edge",
        "A convolution may multiply by the zeros of its padding, which gives nan beside an infinite"
        " or undefined number, or leave them out. Which it does depends on the library, in 1.8.5"
        " and here, on the direction and on the type.",
        ((r"(depthwise_)?conv\dd.*", ".*", lambda d: np.isnan(d.paddle[0]) != np.isnan(d.here)),),
    ),
    Reason(
        "Half of float64",
        "1.8.5's `shuffle_channel` copies four bytes of every number, so that of a float64 tensor"
        " half the numbers remain zeros.",
        ((r"shuffle_channel float64 .*", ".*", lambda d: d.paddle[0] == 0),),
    ),
    Reason(
        "Empty tensors",
        "1.8.5 fetches an empty tensor as a float64 array of shape [0]; here it keeps its shape and"
        " its type.",
        ((r"(fill_constant|range|where_index) .*", "Out", lambda d: d.paddle[0] == "float64[0]"),),
    ),
    Reason(
        "A number that int64 cannot hold",
        "1.8.5's `fill_constant` takes the greatest one in its place; here it is an error.",
        ((r"fill_constant 3 of .*", "", None),),
    ),
    Reason(
        "Metrics in float32",
        "The metrics are float64 numbers that both compute in float32, each in its order.",
        (
            (
                r"precision_recall .*",
                ".*Metrics",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-6,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "The square root of infinity",
        "1.8.5's vector code has nan for it in float32 (infinity times its reciprocal root), its"
        " scalar code infinity.",
        (
            (
                r"(adagrad|decayed_adagrad|adam|rmsprop|merged_adam|nadam|radam) float32.*",
                ".*",
                paddle_nan,
            ),
            (r"ftrl float32.*", "(LinearAccumOut|ParamOut)", None),
        ),
    ),
    Reason(
        "A norm in float32",
        "1.8.5's `dpsgd` rounds the factor by which it clips to float32 in float64 too.",
        (
            (
                r"dpsgd float64 .* clip 0.5",
                "ParamOut",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-7,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "A share in float32",
        "1.8.5 rounds one over the number of a window's cells to float32 for the gradient of an"
        " average pool in float64 too.",
        (
            (
                r"pool2d avg float64.*",
                "X@GRAD",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-6,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "A softmax that overflows",
        "1.8.5's `sequence_softmax` does not take off the maximum, so a logit above 88 (709 in"
        " float64) makes nan of its sequence.",
        ((r"sequence_softmax .*", ".*", None),),
    ),
    Reason(
        "Which of equal scores",
        "Where fewer boxes are looked at than there are, 1.8.5 takes some of those with equal"
        " scores as `std::nth_element` leaves them; here the first.",
        ((r"generate_proposals equal scores, few", "RpnRoi.*", None),),
    ),
    Reason(
        "A region without extent",
        "1.8.5's gradient of `prroi_pool` by the region divides 0 by 0; its forward op gives 0"
        " there, whose gradient is 0.",
        ((r"prroi_pool empty", "ROIs@GRAD", paddle_nan),),
    ),
    Reason(
        "An infinity in an image",
        "`roi_align` multiplies an image by the shares of rows and columns, zeros among them, so an"
        " infinity or nan anywhere in an image makes nan of its regions.",
        ((r"roi_align infinite", "Out", lambda d: bool(np.isnan(d.here))),),
    ),
    Reason(
        "Equal eigenvalues",
        "3.3.1's gradient of `eigh` divides by the difference of any two eigenvalues, and has nan"
        " where it is 0, also where nothing flows into the eigenvectors; here that part is left"
        " out.",
        ((r"eigh .* (identity|zero)", "X@GRAD", paddle_nan),),
    ),
    Reason(
        "A zero but for rounding",
        "Of a singular matrix, what is 0 in exact numbers is what a library's rounding leaves."
        " Where it alone tells two eigenvalues apart, it chooses their vectors too, through which"
        " the gradient goes.",
        (
            (
                r"(eigh|qr) .* of rank 1.*",
                "(Eigenvalues|R)",
                lambda d: max(abs(float(d.here)), abs(float(d.paddle[0]))) < 1e-6,
            ),
            (r"eigh .* of rank 1", "X@GRAD", None),
        ),
        rounding=True,
    ),
    Reason(
        "Residuals of dependent columns",
        "Where the rank is less than the columns, 3.3.1's `lstsq` has no Residuals with the drivers"
        " gelsd and gelss; here a shape does not depend on values.",
        ((r"lstsq .*, gels[ds]", "Residuals", lambda d: str(d.paddle[0]).endswith("[0]")),),
    ),
    Reason(
        "A gate that no longer moves",
        "3.3.1's `rnn` has nan in the gradients of a GRU whose gates are 1e4 or infinite, where"
        " nothing flows; its RNN_RELU makes 0 of nan.",
        (
            (r"rnn .* (far|infinite), GRU", ".*@GRAD.*", paddle_nan),
            (r"rnn .* nan, RNN_RELU", ".*", lambda d: d.paddle[0] == 0 and np.isnan(d.here)),
        ),
    ),
    Reason(
        "What tanh leaves of 1",
        "Far out the slope of tanh is 1 less its square, the last digits of which every library"
        " rounds in its own way.",
        (
            (
                r"rnn .* (bounds|far), (RNN_TANH|GRU|LSTM)",
                ".*@GRAD.*",
                lambda d: abs(float(d.here) - float(d.paddle[0])) < 1e-4,
            ),
        ),
        rounding=True,
    ),
    Reason(
        "The order of equal scores",
        "3.3.1's `generate_proposals_v2` takes boxes of equal scores as its sort leaves them; here"
        " the first comes first.",
        ((r"generate_proposals_v2 (equal|infinite) scores.*", "RpnRoi.*", None),),
    ),
]


def reason_of(difference: Difference) -> Reason | None:
    return next((r for r in REASONS if r.explains(difference)), None)
