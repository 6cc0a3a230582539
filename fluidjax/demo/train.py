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
    """What happened: the loss of every step, the test accuracy after every epoch."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)


def shifted(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Each image [1, side, side] moved by up to MOVE pixels in both directions; what leaves on one side is background."""
    side = images.shape[-1]
    wide = np.pad(images, ((0, 0), (0, 0), (MOVE, MOVE), (MOVE, MOVE)), constant_values=-1)
    corners = random.integers(0, 2 * MOVE + 1, (len(images), 2))
    return np.stack([image[:, y : y + side, x : x + side] for image, (y, x) in zip(wide, corners, strict=True)])


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
        """Train for `epochs` rounds; a batch that the images do not fill is left out."""
        history = History()
        steps = len(data.train_images) // batch
        for epoch in range(1, epochs + 1):
            # a bar only where there is a terminal (None)
            with tqdm(
                total=steps, desc=f"epoch {epoch:2}/{epochs}", unit=" steps", leave=False, disable=quiet or None
            ) as bar:
                # fetched values stay on the device until the epoch ends, so that no step waits for another
                losses = [self._step(data, rows, bar) for rows in self._batches(len(data.train_images), batch)]
            history.loss += [v.item() for v in losses]
            history.accuracy.append(self.test(data))
            print(
                f"epoch {epoch:2}: loss {np.mean(history.loss[-steps:]):.4f}, test accuracy {history.accuracy[-1]:.2%}",
                flush=True,
            )
        return history

    def _batches(self, count: int, batch: int) -> Iterator[np.ndarray]:
        order = self._random.permutation(count)
        return (order[at : at + batch] for at in range(0, count - batch + 1, batch))

    def _step(self, data: Digits, rows: np.ndarray, bar: tqdm) -> np.ndarray:
        feed = {"image": shifted(data.train_images[rows], self._random), "label": data.train_labels[rows]}
        (loss,) = self.exe.run(self.net.train, feed, [self.net.loss], scope=self.scope, return_numpy=False)
        bar.update()
        return loss

    def test(self, data: Digits) -> float:
        """The accuracy on the test images."""
        right = 0.0
        for at in range(0, len(data.test_images), TEST_BATCH):
            images, labels = data.test_images[at : at + TEST_BATCH], data.test_labels[at : at + TEST_BATCH]
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
