"""`python -m tests.fuzz [KIND...] [--count N] [--seed N]`: N spoiled copies of each kind of file;
exits with 1 if one does harm.

Harm is an error that is none of ours, more than 2 s of CPU time, or more than 300 MB. The whole
runs in one process under a limit of memory, so that a death is harm too.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("FLAGS_compilation_cache", "0")
SECONDS, BYTES = 2.0, 300 << 20


def _stop(*_: Any) -> None:
    from tests.fuzz.kinds import TooSlow

    raise TooSlow


def held() -> int:
    """Bytes of this process's data."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:"))


def tried(kind: Any, data: bytes, home: Path) -> str:
    """What became of one copy: 'read', 'refused', or the harm that it did."""
    folder = home / "one"
    folder.mkdir()
    os.environ["PADDLE_DATASET_HOME"] = str(folder)
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (held() + BYTES, limit[1]))
    # again, for one raised in a callback is lost
    signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS / 4)
    from fluidjax.errors import FluidError
    from tests.fuzz.kinds import TooSlow

    try:
        kind.read(data, folder)
        return "read"
    except FluidError as error:
        longest = max(map(len, (str(error), *getattr(error, "__notes__", ()))))
        return (
            "refused"
            if longest < 4000
            else f"an error of {longest} characters: {type(error).__name__}"
        )
    except TooSlow:
        return "more than 2 s: " + _where()
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:100]} " + _where()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, limit)
        shutil.rmtree(folder, ignore_errors=True)


def _where() -> str:
    frames = [f for f in traceback.extract_tb(sys.exc_info()[2]) if "/fluidjax/" in f.filename]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-1:-4:-1])


def main() -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.fuzz")
    ask.add_argument("kinds", nargs="*")
    ask.add_argument("--count", type=int, default=10_000)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--keep", help="a folder for the copies that did harm")
    asked = ask.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home = Path(name)
        from fluidjax.dataset import common
        from tests.fuzz.kinds import kinds

        assert common.VARIABLE == "PADDLE_DATASET_HOME"
        every, harm = kinds(home), 0
        for which in asked.kinds or every:
            kind, found, began = every[which](), Counter[str](), time.process_time()
            for good in kind.files:
                # what is imported and compiled once counts for none of them
                tried(kind, good, home)
                assert (result := tried(kind, good, home)) == "read", f"{which}: {result}"
            for number in range(asked.count):
                draw = random.Random(f"{which} {asked.seed} {number}")
                data = kind.mutate(draw.choice(kind.files), draw)
                result = tried(kind, data, home)
                found[result] += 1
                if result not in ("read", "refused"):
                    harm += 1
                    if found[result] < 3:
                        print(f"  {which} {number}: {result}", flush=True)
                    if asked.keep:
                        (
                            Path(asked.keep) / f"{which.strip('_')}-{asked.seed}-{number}"
                        ).write_bytes(data)
            bad = sum(n for what, n in found.items() if what not in ("read", "refused"))
            print(
                f"{which}: {asked.count} copies, {found['read']} read, {found['refused']} refused,"
                f" {bad} did harm, {time.process_time() - began:.0f} s",
                flush=True,
            )
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
