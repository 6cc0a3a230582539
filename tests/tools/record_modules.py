"""Record every module of the real Paddle 1.8.5 with the public names of each.

    python3.8 tests/tools/record_modules.py

Writes tests/data/modules_1.8.5.json.gz: {module: [names, more]}. The names are those of
``__all__``; more are what the module defines without listing it (a function or a class of another
module is not counted, nor are modules and what begins with "_"); a package counts whatever of
Paddle it holds.
"""

import gzip
import importlib
import json
import os
import pkgutil
import types
import warnings

import paddle

HERE = os.path.dirname(os.path.abspath(__file__))


def names(module):
    listed = set(n for n in getattr(module, "__all__", None) or () if hasattr(module, n))
    found = set()
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        home = getattr(value, "__module__", module.__name__)
        if home == module.__name__ or (
            hasattr(module, "__path__") and str(home).startswith("paddle")
        ):
            found.add(name)
    return [sorted(listed), sorted(found - listed)]


def main():
    warnings.simplefilter("ignore")
    found, failed = {"paddle": names(paddle)}, []
    for info in pkgutil.walk_packages(paddle.__path__, "paddle.", onerror=failed.append):
        if "tests" in info.name.split(".") or info.name.startswith("paddle.proto"):
            continue
        try:
            found[info.name] = names(importlib.import_module(info.name))
        except Exception as exc:
            failed.append("%s: %s" % (info.name, exc))
    path = os.path.join(HERE, "..", "data", "modules_1.8.5.json.gz")
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps(found, separators=(",", ":"), sort_keys=True).encode())
    print("\n".join(failed))
    print(
        len(found),
        "modules,",
        sum(len(n) + len(m) for n, m in found.values()),
        "names,",
        os.path.getsize(path),
        "bytes",
    )


if __name__ == "__main__":
    main()
