"""The demo's pictures. They are drawn without a display (matplotlib's Agg canvas), and no global
state changes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .digits import Digits
from .train import History

COLUMNS, ROWS = 8, 4


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_loss(history: History, path: Path) -> Path:
    """The loss of every step and, below it, the test accuracy after every epoch. Returns `path`."""
    figure = _figure(7, 5)
    top, bottom = figure.subplots(2, 1, sharex=True)
    steps = np.arange(1, len(history.loss) + 1)
    ends = steps[-1] // len(history.accuracy) * np.arange(1, len(history.accuracy) + 1)
    top.semilogy(steps, history.loss, color="0.8", linewidth=1, label="each step")
    width = max(1, len(steps) // 30)
    smooth = np.convolve(history.loss, np.ones(width) / width, "valid")
    top.semilogy(steps[width - 1 :], smooth, color="tab:blue", label=f"mean of {width}")
    top.set_ylabel("training loss")
    top.legend(frameon=False)
    bottom.plot(
        ends, np.multiply(history.accuracy, 100), marker="o", markersize=4, color="tab:green"
    )
    bottom.set_xlabel("step")
    bottom.set_ylabel("test accuracy, %")
    bottom.grid(axis="y", alpha=0.3)
    figure.suptitle(f"LeNet with batch normalisation: {history.accuracy[-1]:.2%}")
    figure.savefig(path, dpi=120)
    return path


def draw_mistakes(data: Digits, prediction: np.ndarray, path: Path) -> Path:
    """The misread test images, the most confident mistakes first; the last row is filled up with
    the least confident correct ones.

    prediction: probabilities [n, 10]. Returns `path`.
    """
    labels, read, sure = data.test_labels[:, 0], prediction.argmax(1), prediction.max(1)
    order = np.lexsort((np.where(read != labels, -sure, sure), read == labels))
    wrong = int((read != labels).sum())
    rows = min(max(1, -(-wrong // COLUMNS)), ROWS)
    figure = _figure(COLUMNS * 1.1, rows * 1.4 + 0.6)
    axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for ax, i in zip(axes, order, strict=False):
        ax.imshow(data.test_images[i, 0], cmap="gray_r", interpolation="nearest")
        text = f"{labels[i]} read as {read[i]}" if read[i] != labels[i] else f"{labels[i]}, just so"
        ax.set_title(
            f"{text}\n({sure[i]:.0%} sure)",
            fontsize=8,
            color="tab:red" if read[i] != labels[i] else "0.4",
        )
    for ax in axes:
        ax.axis("off")
    more = f"; the {len(axes)} surest are shown" if wrong > len(axes) else ""
    figure.suptitle(f"{wrong} of {len(labels)} digits misread{more}", fontsize=10)
    figure.savefig(path, dpi=120)
    return path
