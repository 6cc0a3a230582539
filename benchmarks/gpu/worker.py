"""A process that runs cases: ``python -m benchmarks.gpu.worker RESULTS CASE...``.

A case is a generator. Up to its first `yield` it prepares: it builds, compiles and runs once,
beside others. Then the worker says READY and waits for a line of its conductor's, for what follows
is timed with the card alone. Each value that a case yields is a finding, written at once.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

from .records import Records

READY, DONE = "READY", "DONE"
TOLD = 3  # the exit code where a case failed, which its findings tell


def run(name: str, records: Records) -> bool:
    """Whether the case came to its end."""
    from .cases import CASES

    began, waited = time.perf_counter(), 0.0
    try:
        case = CASES[name]()
        prepared = next(case)
        prepared_in = time.perf_counter() - began
        print(READY, name, flush=True)
        sys.stdin.readline()
        waited = time.perf_counter() - began - prepared_in
        for found in (prepared, *case) if prepared else case:
            records.add(name, found)
    except Exception as error:
        text = traceback.format_exc().splitlines()
        records.add(name, {"failed": f"{type(error).__name__}: {error}"[:600], "where": text[-8:]})
        return False
    took = time.perf_counter() - began - waited
    records.add(name, {"ended": True, "seconds": took, "prepared_in": prepared_in})
    return True


def main(results: str, *names: str) -> int:
    records = Records(Path(results))
    fine = [run(name, records) for name in names]
    print(DONE, flush=True)
    return 0 if all(fine) else TOLD


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
