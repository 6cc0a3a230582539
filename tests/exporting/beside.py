"""Runs what was exported in onnxruntime, sequences as padded rows with their lengths."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid


def session(path: Path | str) -> Any:
    """One thread, quiet. Products of 8-bit numbers are added up exactly: by default onnxruntime's
    sums of two products saturate at 16 bits on processors without VNNI.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def padded(rows: np.ndarray, lengths: list[int]) -> np.ndarray:
    out = np.zeros((len(lengths), max([1, *lengths]), *rows.shape[1:]), rows.dtype)
    ends = np.cumsum(lengths)
    for i, (end, n) in enumerate(zip(ends, lengths, strict=True)):
        out[i, :n] = rows[end - n : end]
    return out


def as_fed(feed: Mapping[str, Any], inputs: Collection[str]) -> dict[str, np.ndarray]:
    """What Fluid is fed, as an exported model with these inputs takes it."""
    found: dict[str, np.ndarray] = {}
    for name, value in feed.items():
        levels = value.recursive_sequence_lengths() if isinstance(value, fluid.LoDTensor) else []
        if not any(n.startswith(f"{name}.lengths") for n in inputs):
            found[name] = np.asarray(value)
            continue
        found[name] = padded(np.asarray(value), levels[-1])
        for i, level in enumerate(levels):
            text = f"{name}.lengths" if len(levels) == 1 else f"{name}.lengths.{i}"
            found[text] = np.array(level, np.int64)
    return found


def run(path: Path | str, feed: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Every output by name; sequences as their rows, one behind another."""
    running = session(path)
    names = {i.name for i in running.get_inputs()}
    given = {n: v for n, v in as_fed(feed, names).items() if n in names}
    made = dict(zip((o.name for o in running.get_outputs()), running.run(None, given), strict=True))
    found = {}
    for name, value in made.items():
        if ".lengths" in name:
            continue
        last = [n for n in made if n == f"{name}.lengths" or n.startswith(f"{name}.lengths.")]
        found[name] = value
        if last:
            lengths = made[sorted(last)[-1]]
            parts = [value[i, :n] for i, n in enumerate(lengths)]
            found[name] = np.concatenate(parts) if parts else value.reshape(0, *value.shape[2:])
    return found
