"""python -m tests.random_nets FOLDER [--first SEED] [--nets N] [--paddle PYTHON3.8] [--sampler
NAME]

Has N nets drawn by the real Paddle 1.8.5 (PADDLE_PYTHON, or --paddle, names the Python that has
it), compares each with what it is here as it comes, writes what differs to FOLDER/differences.txt,
and says how many nets were equal. Nets that stand in FOLDER already are compared again; without a
Paddle only those. Ends with 1 if a net differs, or only 1.8.5 refuses one, for no reason that
stands in docs/random-nets.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("FLAGS_compilation_cache", "0")
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)

import numpy as np  # noqa: E402

from . import reasons  # noqa: E402
from .compare import compare, refuse  # noqa: E402

STALLED = 60  # seconds without a step: memory that Paddle has corrupted
NO_REASON = "refused by 1.8.5 alone, for no reason"
ROOT = Path(__file__).resolve().parents[2]


def draw(folder: Path, seeds: range, python: str, sampler: str | None) -> None:
    """Has the nets drawn, one process after another: some lines end Paddle, or hang it; what it was
    at is kept as SEED.crash.
    """
    now, at = folder / "now", seeds.start
    while at < seeds.stop:
        now.write_text("")
        command = [
            python,
            "-m",
            "tests.random_nets.worker",
            str(folder),
            str(at),
            str(seeds.stop - at),
        ]
        process = subprocess.Popen(
            command + [sampler] * bool(sampler),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None:
            time.sleep(0.5)
            if time.time() - now.stat().st_mtime > STALLED:
                process.kill()
        while at < seeds.stop and (folder / f"{at}.json").exists():
            at += 1
        if at < seeds.stop:
            (folder / f"{at}.crash").write_bytes(now.read_bytes())
            (folder / f"{at}.json").write_text('{"net": null, "refused": []}')


def drawn(folder: Path, seeds: range, drawing: threading.Thread | None) -> Iterator[Path]:
    """The files of the nets, in order, each as soon as it is there."""
    for seed in seeds:
        file = folder / f"{seed}.json"
        while not file.exists() and drawing is not None and drawing.is_alive():
            time.sleep(0.2)
        if file.exists():
            yield file


def judge(files: Iterator[Path], out: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    with open(out, "w") as f:
        for file in files:
            record = json.loads(file.read_text())
            if record["net"]:
                differences, why = compare(record["net"], np.load(file.with_suffix(".npz")))
                counts["nets"] += 1
                counts.update(f"for a reason: {reason}" for reason in why)
                if differences:
                    counts["different"] += 1
                    print(f"== {file.stem}", *differences[:30], sep="\n   ", file=f, flush=True)
            for r in record["refused"]:
                counts["refused"] += 1
                if refuse(r):
                    continue
                why = reasons.of_refusal(r)
                counts[f"refused by 1.8.5 alone: {why}" if why else NO_REASON] += 1
                if why is None:
                    text = [
                        f"-- {file.stem} {r['sampler']} {r['error']}",
                        r["lines"][-1],
                        r["train"],
                    ]
                    print(*text, sep="\n   ", file=f, flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_nets")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--nets", type=int, default=200)
    parser.add_argument("--paddle", default=os.environ.get("PADDLE_PYTHON"))
    parser.add_argument("--sampler")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    seeds, drawing = range(args.first, args.first + args.nets), None
    if args.paddle:
        missing = [s for s in seeds if not (args.folder / f"{s}.json").exists()]
        if missing:
            wanted = range(missing[0], seeds.stop)
            drawing = threading.Thread(
                target=draw, args=(args.folder, wanted, args.paddle, args.sampler), daemon=True
            )
            drawing.start()
    begin = time.process_time()
    counts = judge(drawn(args.folder, seeds, drawing), args.folder / "differences.txt")
    for name, n in sorted(counts.items()):
        print(f"{n:6} {name}")
    print(
        f"{time.process_time() - begin:.0f} CPU s; what differs stands in"
        f" {args.folder / 'differences.txt'}"
    )
    return 1 if counts["different"] or counts[NO_REASON] else 0


if __name__ == "__main__":
    sys.exit(main())
