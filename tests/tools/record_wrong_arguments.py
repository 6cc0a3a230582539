"""Record which kinds of arguments the layers of the real Paddle 1.8.5 refuse with a TypeError or a
ValueError.

    python3.8 tests/tools/record_wrong_arguments.py

Writes tests/data/wrong_arguments_1.8.5.json.gz: {"L.conv2d|2": {"TypeError": ["floats", ...],
"ValueError": [...]}}. Each argument has a process of its own, since some kinds end it.
"""

import contextlib
import gzip
import io
import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "layers"))

import paddle.fluid as fluid  # noqa: E402

import cases  # noqa: E402
import wrong  # noqa: E402


def refused(put):
    found = {}
    for kind in wrong.KINDS:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(
            main, startup
        ), contextlib.redirect_stderr(io.StringIO()):
            try:
                eval(put(kind), cases.namespace(fluid))
            except (TypeError, ValueError) as e:
                found.setdefault(
                    "TypeError" if isinstance(e, TypeError) else "ValueError", []
                ).append(kind)
            except Exception:
                pass
    return found


def alone(put):
    """what refused gives, from a child; nothing where the child dies"""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            json.dump(refused(put), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as inp:
        text = inp.read()
    os.waitpid(pid, 0)
    return json.loads(text or "{}")


warnings.simplefilter("ignore")
table = {key: alone(put) for key, put in wrong.arguments()}
lines = ["%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(table.items()) if v]
with open(os.path.join(HERE, "..", "data", "wrong_arguments_1.8.5.json.gz"), "wb") as f:
    f.write(gzip.compress(("{\n" + ",\n".join(lines) + "\n}\n").encode(), mtime=0))
