"""A small classifier with everything that a restart could get wrong: dropout, Adam, a decaying
learning rate, a shuffle.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers


def samples() -> Any:
    rng = np.random.RandomState(7)
    for _ in range(48):
        x = rng.rand(8).astype("float32")
        yield x, np.array([int(x.sum() > 4)], "int64")


def build(
    seed: int = 5, width: int = 16, normed: bool = False, optax: bool = False
) -> tuple[Any, Any, Any]:
    """(main program, startup program, loss)."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 8], "float32")
        y = fluid.data("y", [None, 1], "int64")
        hidden = layers.dropout(layers.fc(x, width, act="relu"), 0.3)
        hidden = layers.batch_norm(hidden) if normed else hidden
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, 2), y))
        rate = layers.exponential_decay(0.05, decay_steps=3, decay_rate=0.7)
        (by_optax() if optax else fluid.optimizer.Adam(rate)).minimize(loss)
    return main, startup, loss


def by_optax(rate: float = 0.05) -> Any:
    import optax

    return fluid.optimizer.Optax(
        optax.adamw(optax.exponential_decay(rate, 3, 0.7), weight_decay=0.1)
    )


def batches(size: int = 8) -> Any:
    return fluid.io.resumable(fluid.io.batch(fluid.io.shuffle(samples, 20, seed=3), size))


def feed_of(batch: Any, part: int = 0, parts: int = 1) -> dict[str, np.ndarray]:
    """The batch, or part number `part` of it."""
    each = len(batch) // parts
    mine = batch[part * each : (part + 1) * each]
    return {"x": np.stack([x for x, _ in mine]), "y": np.stack([y for _, y in mine])}


def values(program: Any, scope: Any) -> dict[str, np.ndarray]:
    return {
        v.name: np.array(scope.find_var(v.name).value)
        for v in fluid.io.get_program_persistable_vars(program)
    }


class Job:
    """A run of the model: the losses of its steps, and its parameters.

    devices: on how many it runs data parallel; reduce: with its optimizer state sharded. trainers:
    as trainer `rank` of a job of so many, each with so many devices, and its part of every batch.
    """

    def __init__(
        self,
        devices: int = 1,
        reduce: bool = False,
        trainers: int = 1,
        rank: int = 0,
        **options: Any,
    ) -> None:
        self.main, self.startup, self.loss = build(**options)
        self.runs = self.main
        self.rank, self.trainers = rank, trainers
        if devices * trainers > 1:
            strategy = fluid.BuildStrategy()
            strategy.num_trainers, strategy.trainer_id = trainers, rank
            if reduce:
                strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
            places = fluid.cpu_places(devices)
            self.runs = fluid.CompiledProgram(self.main).with_data_parallel(
                self.loss.name, strategy, places=places
            )
        self.scope, self.exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
        self.reader = batches()
        self.exe.run(self.startup, scope=self.scope)
        self.losses: list[str] = []

    def train(self, until: int, folder: str = "", save_at: Any = (), **options: Any) -> None:
        """Run until so many steps have been taken altogether, saving after some of them."""
        done = self.reader.position.epoch * 6 + self.reader.position.batches
        while done < until:
            for batch in self.reader():
                feed = feed_of(batch, self.rank, self.trainers)
                (loss,) = self.exe.run(
                    self.runs, feed=feed, fetch_list=[self.loss], scope=self.scope
                )
                self.losses.append(loss.tobytes().hex())
                done += 1
                if done in save_at:
                    self.save(folder, done, **options)
                if done == until:
                    return

    def save(self, folder: str, step: int | None = None, **options: Any) -> int:
        return fluid.io.save_checkpoint(
            self.exe, folder, self.runs, step, self.reader, scope=self.scope, **options
        )

    def load(self, folder: str, **options: Any) -> Any:
        return fluid.io.load_checkpoint(
            self.exe, folder, self.runs, reader=self.reader, scope=self.scope, **options
        )

    def state(self) -> dict[str, str]:
        return {n: v.tobytes().hex() for n, v in values(self.main, self.scope).items()}


def main() -> None:
    """``python -m tests.checkpoint.model FOLDER UNTIL SEED [optax]``: go on from the latest
    checkpoint, if any, saving after every step.
    """
    folder, until, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    job = Job(seed=seed, optax="optax" in sys.argv)
    if fluid.io.get_latest_checkpoint_serial(folder) >= 0:
        job.load(folder)
    job.train(until, folder, range(100))
    print(json.dumps({"losses": job.losses, "state": job.state()}))


if __name__ == "__main__":
    main()
