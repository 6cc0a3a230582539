"""docs/compile-time.md is what tests/ops/compile_time.py writes; and what it measures is a program of the op and its gradient."""

from __future__ import annotations

import pytest

from .ops import compile_time
from .ops.samples import samples_of


@pytest.mark.once
def test_the_page_is_written_by_the_tool() -> None:
    text = compile_time.PATH.read_text()
    found = compile_time.read(text)
    assert len(found) > 100 and compile_time.page(found) == text


def test_a_program_of_one_sample() -> None:
    index, sample = next((i, s) for i, s in enumerate(samples_of("activation")) if s.op == "relu")
    net = compile_time.Net(compile_time.Named("activation", index, sample))
    kinds = [op.type for op in net.block.ops]
    assert kinds[0] == "relu" and "relu_grad" in kinds and len(net.fetched) == 2
    assert 0 < net.seconds() < 60
