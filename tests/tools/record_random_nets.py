"""Keep some of the random nets that the real Paddle 1.8.5 has drawn and run (tests/random_nets):
few, small, of many kinds.

    python -m tests.tools.record_random_nets FOLDER [HOW MANY]

FOLDER is one of `python -m tests.random_nets`, which has said that its nets are equal. Writes
tests/data/random_nets_1.8.5.json.gz: nets with their programs and values, {key: [dtype, shape,
values, lengths, by how much the values move if all floats move by 1e-6]}.
"""

import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np

from tests.random_nets.compare import compare

NUMBERS = 700  # of all that is fetched of a net, at most
SECONDS = 8  # of CPU time, for all nets
FILE = Path(__file__).parents[1] / "data" / "random_nets_1.8.5.json.gz"


def values(arrays):
    found = {}
    for key in (k[2:] for k in arrays.files if k.startswith("v:")):
        v, nudged = arrays["v:" + key], arrays["n:" + key]
        moved = (
            float(np.nan_to_num(np.abs(nudged.astype("float64") - v)).max(initial=0))
            if v.dtype.kind == "f"
            else 0.0
        )
        found[key] = [
            str(v.dtype),
            list(v.shape),
            v.ravel().tolist(),
            json.loads(str(arrays["l:" + key])),
            float("%.2g" % moved),
        ]
    return found


def main(folder, count=40):
    known, chosen, spent = set(), [], 0.0
    candidates = []
    for file in sorted(Path(folder).glob("[0-9]*.npz")):
        net, arrays = json.loads(file.with_suffix(".json").read_text())["net"], np.load(file)
        same = all(
            np.array_equal(
                arrays["v:" + k], arrays["a:" + k], equal_nan=arrays["v:" + k].dtype.kind == "f"
            )
            for k in (k[2:] for k in arrays.files if k[:2] == "v:")
        )
        if same and sum(arrays[k].size for k in arrays.files if k[:2] == "v:") <= NUMBERS:
            candidates.append((net, arrays))
    while candidates and len(chosen) < int(count):
        what = lambda net: {
            *net["samplers"],
            *(
                w
                for w in ("minimize", "gradients", "append_backward")
                if any(w in t for t in net["train"])
            ),
        }
        candidates.sort(key=lambda c: -len(what(c[0]) - known))
        net, arrays = candidates.pop(0)
        begin = time.process_time()
        differences, _ = compare(net, arrays)
        seconds = time.process_time() - begin
        if not differences and seconds < min(0.45, SECONDS - spent):
            known |= what(net)
            spent += seconds
            chosen.append(dict(net, values=values(arrays)))
            print("%5d %.2f s %s" % (net["seed"], seconds, " ".join(net["samplers"])))
    with gzip.GzipFile(FILE, "wb", mtime=0) as f:
        f.write(json.dumps(chosen, separators=(",", ":"), sort_keys=True).encode())
    print(len(chosen), "nets of", len(known), "kinds,", FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
