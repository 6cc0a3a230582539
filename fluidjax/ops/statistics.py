"""When a batch_norm (or a similar op) keeps its statistics: it uses the running ones and does not
update them.
"""

from __future__ import annotations

from ..ir.desc import FrozenMap, OpDesc
from .traits import Attrs, Unchanged


def keeps_statistics(is_test: bool, use_global_stats: bool, trainable_statistics: bool) -> bool:
    """Whether the op normalises by its running Mean and Variance instead of the batch's: if
    use_global_stats, or if is_test without trainable_statistics.
    """
    return use_global_stats or (is_test and not trainable_statistics)


def fixed_statistics(attrs: Attrs) -> bool:
    """keeps_statistics by an op's attributes; a missing one is False."""
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
