"""The op types that compute in half precision (white), in float32 (black), and in the dtype of
their inputs (gray).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import FluidValueError

white_list = frozenset({"conv2d", "matmul", "mul"})
black_list = frozenset(
    "exp square log mean sum cos_sim softmax softmax_with_cross_entropy "
    "sigmoid_cross_entropy_with_logits cross_entropy cross_entropy2".split()
)
gray_list = frozenset(
    "elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max"
    " elementwise_min elementwise_pow elementwise_mod elementwise_floordiv batch_norm tanh sigmoid"
    " lookup_table top_k pool2d pool3d dropout relu relu6 leaky_relu soft_relu flatten2 stack"
    " unstack uniform_random_batch_size_like gaussian_random gaussian_random_batch_size_like slice"
    " rank scale transpose2 reshape2 gather fill_constant get_tensor_from_selected_rows sign cast".split()
)
# The same for ops of fluid.trace. Ops with a dtype attribute, and those with blocks (such as relu,
# for its gradient), are on no list and compute in float32.
_TRACED_WHITE = frozenset({"jax.dot_general", "jax.conv_general_dilated"})
_TRACED_GRAY = frozenset(
    f"jax.{name}"
    for name in "add sub mul div max min rem neg abs sign tanh logistic select_n clamp copy reshape transpose"
    " squeeze expand_dims broadcast_in_dim slice rev concatenate reduce_max reduce_min reduce_window_max".split()
)


class AutoMixedPrecisionLists:
    """The lists of one training: white_list, black_list, gray_list (sets of op types),
    black_varnames. They include ops of traced programs: products and convolutions are white.

    custom_white_list, custom_black_list: op types to move to these lists. custom_black_varnames:
    ops that read or write one of these variables compute in float32. Raises FluidValueError for an
    op type on both custom lists.
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
    ) -> None:
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            both = ", ".join(sorted(white & black))
            raise FluidValueError(
                f"an op type is on the custom white list or on the black one: {both} is on both"
            )
        self.white_list = (white_list | _TRACED_WHITE | white) - black
        self.black_list = (black_list | black) - white
        self.gray_list = (gray_list | _TRACED_GRAY) - white - black
        self.black_varnames = None if custom_black_varnames is None else set(custom_black_varnames)


__all__ = ["AutoMixedPrecisionLists"]
