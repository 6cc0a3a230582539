"""When a batch_norm (or one of its kin) keeps its statistics: it takes the running ones and leaves
them as they are.
"""

from __future__ import annotations

from ..ir.desc import FrozenMap, OpDesc
from .traits import Attrs, Unchanged


def keeps_statistics(is_test: bool, use_global_stats: bool, trainable_statistics: bool) -> bool:
    """Whether the op normalises by its running Mean and Variance and not by those of the batch.

    use_global_stats says so; is_test does too, unless trainable_statistics takes those of the batch
    even then.
    """
    return use_global_stats or (is_test and not trainable_statistics)


def fixed_statistics(attrs: Attrs) -> bool:
    """keeps_statistics of an op's attributes; one that is missing is False."""
    return keeps_statistics(
        *(
            bool(attrs.get(n, False))
            for n in ("is_test", "use_global_stats", "trainable_statistics")
        )
    )


def by_fixed_statistics(op: OpDesc) -> bool:
    """fixed_statistics of an op."""
    return fixed_statistics(op.attrs)


STATISTICS = Unchanged(FrozenMap({"MeanOut": "Mean", "VarianceOut": "Variance"}), fixed_statistics)
