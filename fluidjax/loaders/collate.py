"""default_collate_fn: turns samples of a data set into a batch of arrays."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FluidTypeError, FluidValueError


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """A list of samples as a sample of arrays with a new first dimension: arrays and numbers
    stacked, texts kept as a list.

    Samples that are dicts or sequences are collated field by field. Raises FluidValueError for an
    empty batch and for samples with other lengths, keys or shapes than the first, FluidTypeError
    for other types.
    """
    if not batch:
        raise FluidValueError("default_collate_fn: a batch has one sample at least")
    first = batch[0]
    if isinstance(first, np.ndarray):
        shapes = {np.shape(sample) for sample in batch}
        if len(shapes) > 1:
            raise FluidValueError(
                f"default_collate_fn stacks arrays of one shape, not of {sorted(shapes)}"
            )
        return np.stack(batch)
    if isinstance(first, numbers.Number):
        return np.array(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        if any(sample.keys() != first.keys() for sample in batch):
            raise FluidValueError(
                "default_collate_fn: a sample has other keys than the first one's"
                f" {sorted(map(str, first))}"
            )
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise FluidValueError(
                "default_collate_fn: a sample has another number of fields than the first one's"
                f" {len(first)}"
            )
        return [default_collate_fn(fields) for fields in zip(*batch, strict=True)]
    raise FluidTypeError(
        "default_collate_fn takes arrays, numbers, texts, dicts and sequences of these, not"
        f" {type(first).__name__}"
    )


__all__ = ["default_collate_fn"]
