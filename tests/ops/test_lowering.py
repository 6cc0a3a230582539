"""Every op in a step that is lowered for a GPU, and in a jit of the caller's own in which 64-bit
types are off.

Nothing is compiled, so no GPU is needed: what is shown is that each op and its gradient have rules
for one, and that no op hands out a type which exists only while 64-bit types are on.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fluidjax as fluid

from .one_op import Named, Net
from .samples import all_samples

pytestmark = pytest.mark.once

# Their sizes follow from the values of what they are fed, which no jit of a caller's tells.
SIZED = {"range", "linspace", "logspace", "bincount", "segment_pool"}
# These take attributes or as many outputs as Net does not give them.
OTHERWISE = {"flip", "rmsprop", "einsum"}


def plain(named: Named) -> bool:
    """Whether its inputs are arrays, none of them of 64-bit floats, and its program can be built."""
    arrays = (array for slot in named.sample.inputs for _, array in named.sample.variables(slot))
    wide = any(np.asarray(a).dtype in (np.float64, np.complex128) for a in arrays)
    return not (
        wide or named.sample.lod or named.sample.rows or named.sample.op in SIZED | OTHERWISE
    )


PLAIN = [n for n in (Named(*n) for n in all_samples()) if plain(n)]
FIRST = {named.sample.op: named for named in reversed(PLAIN)}


# without 64-bit types int64 is int32
@pytest.mark.first(60)
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("op", sorted(FIRST))
def test_lowers_for_a_gpu_and_without_64_bit_types(op: str) -> None:
    net = Net(FIRST[op])
    state = {n: np.asarray(net.scope.find_var(n).get_tensor()) for n in net.scope.local_var_names()}
    step = jax.jit(fluid.step_fn(net.main, net.fetched))
    assert (
        step.trace(state, net.feed, jax.random.key(0))
        .lower(lowering_platforms=("cpu", "cuda"))
        .as_text()
    )
