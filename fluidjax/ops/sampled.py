"""Losses over a sample of the classes: nce, and sample_logits for a softmax over a few of many.

The sampled classes are outputs (SampleLabels, Samples), which the gradients read, so nothing is
sampled twice.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError, ShapeError
from .bounds import below, size_of
from .index import narrow, put, take
from .loss import MAX_LOG
from .outside import within
from .ragged import rows_of
from .registry import Array, Ints, Longs, SelectedRows, Strs, grad_of, op
from .samplers import GivenClasses, LogUniformClasses, Sampler, UniformClasses, draw_distinct
from .traits import Bounds, SparseGradient, mixes, row_wise

_HIT = 1e20  # subtracted by sample_logits from the logit of a sampled class that is also a label


def _sampler(kind: int, classes: int, probs: Any, alias: Any, alias_probs: Any) -> Sampler:
    """The sampler of nce's attribute `sampler`; the logarithmic one never samples the last class,
    as in 1.8.5.
    """
    if kind == 0:
        return UniformClasses(classes)
    if kind == 1:
        return LogUniformClasses(classes - 1)
    if kind != 2:
        raise FluidValueError(
            f"nce's sampler is 0 (uniform), 1 (log_uniform) or 2 (custom_dist), not {kind}"
        )
    for slot, table in (
        ("CustomDistProbs", probs),
        ("CustomDistAlias", alias),
        ("CustomDistAliasProbs", alias_probs),
    ):
        if table is None or table.shape != (classes,):
            there = "nothing" if table is None else f"shape {list(table.shape)}"
            raise ShapeError(
                f"nce with sampler 2 takes {slot} of shape [{classes}], one number a class, not"
                f" {there}"
            )
    return GivenClasses(probs, alias, alias_probs)


def _checked_nce(
    Input: Any, Label: Any, Weight: Any, Bias: Any, classes: int, negative: int, custom: Any
) -> int:
    """The number of true classes of a row."""
    if Input.ndim != 2 or Label.ndim not in (1, 2) or Label.shape[0] != Input.shape[0]:
        raise ShapeError(
            f"nce takes Input [N, D] and Label [N, true classes], not {list(Input.shape)} and"
            f" {list(Label.shape)}"
        )
    if Weight.shape != (classes, Input.shape[1]):
        raise ShapeError(
            f"nce takes Weight [num_total_classes, D] = {[classes, Input.shape[1]]}, not"
            f" {list(Weight.shape)}"
        )
    if Bias is not None and Bias.size != classes:
        raise ShapeError(
            f"nce takes a Bias of num_total_classes = {classes} numbers, not {list(Bias.shape)}"
        )
    if custom and len(custom) != negative:
        raise ShapeError(
            f"nce takes num_neg_samples = {negative} custom_neg_classes, not {len(custom)}"
        )
    if any(not 0 <= c < classes for c in custom):
        raise ShapeError(
            f"nce's custom_neg_classes are from 0 to {classes - 1}, not {list(custom)}"
        )
    return int(Label.shape[1]) if Label.ndim == 2 else 1


@op(
    outs="Cost SampleLogits~ SampleLabels~",
    rows=row_wise("Input", "Label", "SampleWeight", lod=None),
    bounds=Bounds("Label", "label", below("num_total_classes")),
    sparse=SparseGradient("is_sparse", "Weight", looks_up=False),
)
def nce(
    Input: Array, Label: Array, Weight: Array, Bias: Array | None, SampleWeight: Array | None, CustomDistProbs: Array | None,
    CustomDistAlias: Array | None, CustomDistAliasProbs: Array | None, *,
    num_total_classes: int, num_neg_samples: int = 10, sampler: int = 0, seed: int = 0, is_sparse: bool = False,
    remote_prefetch: bool = False, trainer_id: int = 0, height_sections: Longs = (), epmap: Strs = (), table_names: Strs = (),
    custom_neg_classes: Ints = (), key: jax.Array,
):  # fmt: skip
    """Cost [N, 1] = SampleWeight * (sum of -log(o / (o + b)) over true classes + sum of -log(b / (o
    + b)) over drawn ones).

    o = SampleLogits = sigmoid(Input . Weight[c] + Bias[c]) of the classes c = SampleLabels [N, true
    + num_neg_samples], the labels first; b = num_neg_samples * the probability that `sampler` gives
    c. custom_neg_classes: these instead of sampled ones.
    """
    true = _checked_nce(
        Input, Label, Weight, Bias, num_total_classes, num_neg_samples, custom_neg_classes
    )
    drawing = _sampler(
        sampler, num_total_classes, CustomDistProbs, CustomDistAlias, CustomDistAliasProbs
    )
    shape = (Input.shape[0], num_neg_samples)
    given = jnp.asarray(custom_neg_classes, np.int64)
    drawn = jnp.broadcast_to(given, shape) if custom_neg_classes else drawing.draw(key, shape)
    labels = jnp.concatenate([Label.reshape(-1, true).astype(np.int64), drawn], 1)
    rows = take(Weight, labels[..., None])
    logits = jnp.einsum("nd,nsd->ns", Input, rows)
    if Bias is not None:
        logits = logits + take(Bias.reshape(-1), labels[..., None])
    # it underflows in float32 below a logit of -88
    wide = 1 / (1 + jnp.exp(-logits.astype(np.float64)))
    o, b = wide.astype(Input.dtype), _expected(drawing, labels, num_neg_samples, Input.dtype)
    share = jnp.where(jnp.arange(labels.shape[1]) < true, wide, b) / (wide + b)
    cost = -jnp.log(share).astype(Input.dtype)
    if SampleWeight is not None:
        cost = cost * SampleWeight.reshape(-1, 1)
    return jnp.sum(cost, 1, keepdims=True), o, labels


def _expected(drawing: Sampler, labels: Any, count: int, dtype: Any) -> Any:
    return (drawing.probability(labels) * np.float32(count)).astype(dtype)


@grad_of(
    "nce",
    "Input Label Weight Bias SampleWeight CustomDistProbs CustomDistAlias CustomDistAliasProbs"
    " SampleLogits SampleLabels",
    nograd="Label SampleWeight CustomDistProbs CustomDistAlias CustomDistAliasProbs",
)
def nce_grad(
    Input: Array, Label: Array, Weight: Array, Bias: Array | None, SampleWeight: Array | None, CustomDistProbs: Array | None,
    CustomDistAlias: Array | None, CustomDistAliasProbs: Array | None, SampleLogits: Array, SampleLabels: Array, d_Cost: Array,
    *, num_total_classes: int, num_neg_samples: int, sampler: int, is_sparse: bool,
):  # fmt: skip
    """Input@GRAD = s . Weight[c], with s = Cost@GRAD * SampleWeight * (b (o - 1) / (o + b) for true
    classes, o (1 - o) / (o + b) for others).

    Weight@GRAD[c] += s Input, as sparse rows with is_sparse; Bias@GRAD[c] += s.
    """
    drawing = _sampler(
        sampler, num_total_classes, CustomDistProbs, CustomDistAlias, CustomDistAliasProbs
    )
    o, true = SampleLogits, Label.shape[1] if Label.ndim == 2 else 1
    b = _expected(drawing, SampleLabels, num_neg_samples, o.dtype)
    # log of o, which is above 0 though it may have been rounded to 0
    share = jnp.where(b == 0, 1, o / (o + b))
    slope = jnp.where(
        jnp.arange(o.shape[1]) < true, (1 - share) * (o - 1), (1 - o) * share
    ) * d_Cost.reshape(-1, 1)
    if SampleWeight is not None:
        slope = slope * SampleWeight.reshape(-1, 1)
    d_input = jnp.einsum("ns,nsd->nd", slope, take(Weight, SampleLabels[..., None]))
    at = narrow(SampleLabels.reshape(-1, 1), Weight.shape[:1])
    rows = (slope[..., None] * Input[:, None, :]).reshape(-1, Weight.shape[1])
    d_weight: Any = (
        SelectedRows(at[:, 0], rows, Weight.shape[0])
        if is_sparse
        else put(jnp.zeros_like(Weight), at, rows, add=True)
    )
    d_bias = (
        None
        if Bias is None
        else put(jnp.zeros(Bias.size, Bias.dtype), at, slope.reshape(-1), add=True).reshape(
            Bias.shape
        )
    )
    return d_input, d_weight, d_bias


def _checked_sampling(
    logits: Any, labels: Any, samples: Any, probabilities: Any, count: int, given: bool
) -> None:
    if logits.ndim != 2 or labels.ndim != 2 or labels.shape[0] != logits.shape[0]:
        raise ShapeError(
            f"sample_logits takes Logits [N, C] and Labels [N, T], not {list(logits.shape)} and"
            f" {list(labels.shape)}"
        )
    if not given:
        if not 0 < count <= logits.shape[1]:
            raise ShapeError(
                f"sample_logits samples num_samples different classes of {logits.shape[1]}, which"
                f" cannot be {count}"
            )
        return
    want = (logits.shape[0], labels.shape[1] + count)
    for slot, value in (("CustomizedSamples", samples), ("CustomizedProbabilities", probabilities)):
        if value is None or value.shape != want:
            there = "nothing" if value is None else list(value.shape)
            raise ShapeError(
                f"sample_logits with use_customized_samples takes {slot} {list(want)}, labels"
                f" before samples, not {there}"
            )


@op(
    outs="Samples~ Probabilities~ SampledLogits~ SampledLabels LogitsDim~ LabelsDim~",
    rows=mixes(),
    bounds=Bounds("Labels", "label", size_of("Logits", 1)),
    refuses=within(
        "CustomizedSamples", "sample", lambda inputs, attrs: rows_of(inputs["Logits"]).shape[1]
    ),
)
def sample_logits(
    Logits: Array, Labels: Array, CustomizedSamples: Array | None, CustomizedProbabilities: Array | None, *,
    use_customized_samples: bool = False, uniq: bool = True, remove_accidental_hits: bool = True, num_samples: int, seed: int = 0,
    key: jax.Array,
):  # fmt: skip
    """SampledLogits [N, T + num_samples] = Logits[Samples] - log(Probabilities); SampledLabels [N,
    T] = 0, 1, ..., T - 1.

    Samples: the labels, then num_samples different classes, equal for all rows, sampled
    log-uniformly; Probabilities: the expected count of each. With remove_accidental_hits, 1e20 is
    subtracted for a sampled class that is a label of its row. use_customized_samples: both are
    inputs.
    """
    n, true = Labels.shape if Labels.ndim == 2 else (0, 0)
    _checked_sampling(
        Logits,
        Labels,
        CustomizedSamples,
        CustomizedProbabilities,
        num_samples,
        use_customized_samples,
    )
    given: tuple[Any, Any] = CustomizedSamples, CustomizedProbabilities
    samples, probabilities = (
        given
        if use_customized_samples
        else _drawn(key, Logits, Labels.astype(np.int64), num_samples)
    )
    picked = jnp.take_along_axis(Logits, narrow(samples, Logits.shape[1:]), 1, mode="clip")
    if remove_accidental_hits:
        hit = (samples[:, true:, None] == samples[:, None, :true]).any(-1)
        picked = picked.at[:, true:].add(jnp.where(hit, np.asarray(-_HIT, picked.dtype), 0))
    kept = _tolerable(picked - _tolerable(jnp.log(probabilities)))
    labels = jnp.broadcast_to(jnp.arange(true, dtype=np.int64), (n, true))
    empty = np.zeros((*Logits.shape, 0), Logits.dtype), np.zeros((*Labels.shape, 0), Labels.dtype)
    return samples, probabilities, kept, labels, *empty


def _drawn(key: jax.Array, logits: Any, labels: Any, count: int) -> tuple[Any, Any]:
    """Samples and Probabilities of the sampled classes, after the labels."""
    sampler = LogUniformClasses(logits.shape[1])
    drawn, tries = draw_distinct(key, sampler, logits.shape[1], count)
    rows = jnp.broadcast_to(drawn, (labels.shape[0], count))
    samples = jnp.concatenate([labels, rows], 1)
    once = sampler.probability(samples).astype(logits.dtype)
    several = -jnp.expm1(tries.astype(logits.dtype) * jnp.log1p(-once))
    return samples, jnp.where(tries == count, once * count, several)


def _tolerable(x: Any) -> Any:
    """Infinities replaced by 1e20, as in 1.8.5; greater finite numbers stay."""
    return jnp.where(jnp.isinf(x), jnp.sign(x) * np.asarray(MAX_LOG, x.dtype), x)


@grad_of(
    "sample_logits",
    "LogitsDim LabelsDim Samples",
    nograd="Labels CustomizedSamples CustomizedProbabilities",
    grad_outs="SampledLogits",
)
def sample_logits_grad(LogitsDim: Array, LabelsDim: Array, Samples: Array, d_SampledLogits: Array):
    """Logits@GRAD[i, Samples[i]] += SampledLogits@GRAD[i], 0 elsewhere."""
    shape = LogitsDim.shape[:2]
    row = jnp.broadcast_to(jnp.arange(shape[0], dtype=Samples.dtype)[:, None], Samples.shape)
    return put(
        jnp.zeros(shape, d_SampledLogits.dtype),
        jnp.stack([row, Samples], -1),
        d_SampledLogits,
        add=True,
    )
