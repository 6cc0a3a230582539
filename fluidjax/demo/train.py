"""The training loop: Executor.run over shuffled batches, the test program after every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from tqdm import tqdm

import fluidjax as fluid

from .digits import Digits
from .lenet import build

TEST_BATCH = 1000
MOVE = 2


@dataclass
class History:
    """The loss of every step, and the test accuracy after every epoch."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)


def shifted(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Each image [1, side, side] moved by up to MOVE pixels in both directions; background fills
    the gap.
    """
    side = images.shape[-1]
    wide = np.pad(images, ((0, 0), (0, 0), (MOVE, MOVE), (MOVE, MOVE)), constant_values=-1)
    corners = random.integers(0, 2 * MOVE + 1, (len(images), 2))
    return np.stack(
        [image[:, y : y + side, x : x + side] for image, (y, x) in zip(wide, corners, strict=True)]
    )


class Trainer:
    """A network, an executor, and a scope of its own for the network's variables."""

    def __init__(self, seed: int) -> None:
        self.net = build(seed)
        place = fluid.CUDAPlace(0) if fluid.is_compiled_with_cuda() else fluid.CPUPlace()
        self.exe = fluid.Executor(place)
        self.scope = fluid.Scope()
        self.exe.run(self.net.startup, scope=self.scope)
        self._random = np.random.default_rng(seed)

    def fit(self, data: Digits, epochs: int, batch: int, quiet: bool = False) -> History:
        """Train for `epochs` epochs; an incomplete last batch is left out."""
        history = History()
        steps = len(data.train_images) // batch
        # None: a bar only on a terminal
        with tqdm(total=epochs * steps, unit="step", leave=False, disable=quiet or None) as bar:
            for epoch in range(1, epochs + 1):
                bar.set_description(f"epoch {epoch}/{epochs}")
                history.loss += self._epoch(data, batch, bar)
                history.accuracy.append(self.test(data))
                loss = np.mean(history.loss[-steps:])
                bar.write(
                    f"epoch {epoch:2}: loss {loss:.4f}, test accuracy {history.accuracy[-1]:.2%}"
                )
        return history

    def _epoch(self, data: Digits, batch: int, bar: tqdm) -> list[float]:
        """The losses of one epoch over the training images."""
        losses: list[fluid.LoDTensor] = []
        for rows in self._batches(len(data.train_images), batch):
            feed = {
                "image": shifted(data.train_images[rows], self._random),
                "label": data.train_labels[rows],
            }
            losses += self.exe.run(
                self.net.train, feed, [self.net.loss], scope=self.scope, return_numpy=False
            )
            # the next feed is made while a step runs
            losses[max(0, len(losses) - 2)].block_until_ready()
            bar.update()
        return [np.asarray(v).item() for v in losses]

    def _batches(self, count: int, batch: int) -> Iterator[np.ndarray]:
        order = self._random.permutation(count)
        return (order[at : at + batch] for at in range(0, count - batch + 1, batch))

    def test(self, data: Digits) -> float:
        """The accuracy on the test images."""
        right = 0.0
        for at in range(0, len(data.test_images), TEST_BATCH):
            images, labels = (
                data.test_images[at : at + TEST_BATCH],
                data.test_labels[at : at + TEST_BATCH],
            )
            feed = {"image": images, "label": labels}
            (accuracy,) = self.exe.run(self.net.test, feed, [self.net.accuracy], scope=self.scope)
            right += accuracy.item() * len(images)
        return right / len(data.test_images)

    def predict(self, images: np.ndarray) -> np.ndarray:
        """The probabilities [n, 10] of the ten digits."""
        parts = []
        for at in range(0, len(images), TEST_BATCH):
            feed = {"image": images[at : at + TEST_BATCH]}
            parts += self.exe.run(self.net.test, feed, [self.net.prediction], scope=self.scope)
        return np.concatenate(parts)
