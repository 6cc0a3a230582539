"""The demo: a LeNet with batch normalisation learns handwritten digits (``make demo``, ``python -m
fluidjax demo``).

Real input: the 1,797 digits of scikit-learn, or MNIST's IDX files from a folder. All code uses only
Fluid's public interface, like a user's script.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

from ..errors import FluidValueError

GOAL = 0.97  # test accuracy below this is a failure


def run_demo(
    mnist: Path | None = None,
    epochs: int | None = None,
    batch: int = 64,
    seed: int = 1,
    out: Path = Path("demo-output"),
    quiet: bool = False,
) -> int:
    """Train, print the test accuracy after every epoch, draw two pictures; 0 if the accuracy
    reaches GOAL, else 1.

    mnist: a folder with MNIST's files instead of scikit-learn's digits. epochs: default 15, with
    MNIST 3. batch: images a step. out: the folder for loss.png and mistakes.png. quiet: no progress
    bar. Equal seeds give equal results.

    Raises FluidValueError if a package that the demo needs is missing, a file cannot be read, or
    `out` cannot be made.
    """
    _need("matplotlib", "tqdm", *(() if mnist else ("sklearn",)))
    from .digits import load
    from .pictures import draw_loss, draw_mistakes
    from .train import Trainer

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise FluidValueError(f"cannot write to {str(out)!r}: {exc.strerror or exc}") from None
    data = load(mnist, seed)
    if batch > len(data.train_images):
        raise FluidValueError(
            f"a batch of {batch} is more than the {len(data.train_images)} training images"
        )
    print(
        f"{data.source}: {len(data.train_images)} images to train on, {len(data.test_images)} to"
        " test"
    )
    began = time.perf_counter()
    trainer = Trainer(seed)
    history = trainer.fit(data, epochs or (3 if mnist else 15), batch, quiet)
    prediction = trainer.predict(data.test_images)
    pictures = (
        draw_loss(history, out / "loss.png"),
        draw_mistakes(data, prediction, out / "mistakes.png"),
    )
    accuracy = history.accuracy[-1]
    print(
        f"test accuracy {accuracy:.2%} after {time.perf_counter() - began:.0f} s; pictures:"
        f" {', '.join(map(str, pictures))}"
    )
    if accuracy < GOAL:
        print(
            f"that is less than the {GOAL:.0%} that this network should reach; train for more"
            " epochs (--epochs)"
        )
        return 1
    return 0


def _need(*packages: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        names = ", ".join({"sklearn": "scikit-learn"}.get(n, n) for n in missing)
        raise FluidValueError(f"the demo needs {names}: pip install 'fluidjax[demo]'")


__all__ = ["GOAL", "run_demo"]
