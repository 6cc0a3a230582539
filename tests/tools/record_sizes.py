"""Record what the real Paddle 1.8.5 makes of programs in which fed values decide sizes
(tests/sizes/cases.py).

    python3.8 tests/tools/record_sizes.py [WORD...]     only the cases whose name has one of the
    words, and keep the others

Writes tests/data/sizes_1.8.5.npz: "CASE/FEED/FETCH" is an array, "CASE/FEED/refused" an exception's
first line. Each feed is run in a process of its own, since some of these end 1.8.5, or it never
ends: "CASE/FEED/died".
"""

import os
import pickle
import signal
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sizes"))

import paddle.fluid as fluid  # noqa: E402

import cases  # noqa: E402


def run(case, feed):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetches = case.build(fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    found = [np.asarray(v) for v in exe.run(main, feed=feed, fetch_list=fetches)]
    # an empty tensor comes out as no array
    return [np.zeros(0, "float32") if v.dtype == object else v for v in found]


def said(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    marked = [line for line in lines if "Error:" in line]
    return "%s: %s" % (type(error).__name__, (marked or lines or [""])[-1])


def apart(case, feed):
    """run() in a process of its own: arrays, or why there are none."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        signal.alarm(20)  # some of these 1.8.5 never ends
        try:
            found = run(case, feed)
        except BaseException as error:
            found = said(error)
        with os.fdopen(write, "wb") as out:
            pickle.dump(found, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as into:
        data = into.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else None


def main(words):
    path = os.path.join(HERE, "..", "data", "sizes_1.8.5.npz")
    done = lambda key: not any(w in key.split("/")[0] for w in words)
    found = {k: v for k, v in dict(np.load(path)).items() if done(k)} if words else {}
    for name, case in cases.CASES.items():
        if words and not any(w in name for w in words):
            continue
        for i, feed in enumerate(case.feeds):
            result = apart(case, feed)
            if isinstance(result, list):
                found.update(("%s/%d/%d" % (name, i, k), v) for k, v in enumerate(result))
            else:
                found["%s/%d/%s" % (name, i, "refused" if result else "died")] = np.array(
                    result or ""
                )
            shown = [list(v.shape) for v in result] if isinstance(result, list) else result
            print(
                name, i, {n: v.tolist() for n, v in feed.items() if v.size < 9}, shown, flush=True
            )
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(sys.argv[1:])
