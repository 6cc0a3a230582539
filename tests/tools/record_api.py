"""Record the public names of a real Paddle with their signatures; runs on Paddle 1.8.5 (Python 3.8)
and on 2.6.2.

    python3.8 tests/tools/record_api.py

Writes fluidjax/compat/paddle_VERSION.json.gz: {module: {name: [kind, [[argument, default], ...] or
null, [method, ...]]}}. kind: "function", "class", "module" or "value". A default is its repr, a
missing one "". Methods are a class's public ones, but for those that it has from outside of Paddle
or from the layers of dynamic mode. Of 1.8.5 every module of the static graph is recorded, of 2.6.2
those below. Each object stands under one path only: the shortest of those in ``__all__``.
"""

import gzip
import importlib
import inspect
import json
import os
import pkgutil
import types
import warnings

import paddle

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = paddle.__version__
LATER = """paddle paddle.nn paddle.nn.functional paddle.nn.initializer paddle.nn.utils paddle.static paddle.static.nn paddle.optimizer
paddle.optimizer.lr paddle.regularizer paddle.metric paddle.io paddle.vision.transforms paddle.linalg paddle.amp""".split()
DYNAMIC = ("paddle.fluid.dygraph", "paddle.fluid.imperative", "paddle.incubate.hapi", "paddle.hapi")


def modules():
    if not VERSION.startswith("1."):
        return LATER
    found = ["paddle"]
    for info in pkgutil.walk_packages(paddle.__path__, "paddle.", onerror=lambda name: None):
        parts = info.name.split(".")
        if "tests" not in parts and not info.name.startswith(("paddle.proto", *DYNAMIC)):
            found.append(info.name)
    return sorted(found, key=lambda n: (n.count("."), n))


def shown(value):
    kind = type(value).__name__
    if kind == "VarType" or kind == "DataType":
        return "VarType." + str(value).split(".")[-1]
    if inspect.isroutine(value) or inspect.isclass(value):
        return value.__name__
    text = repr(list(value) if isinstance(value, tuple) else value)
    return "<%s>" % kind if " at 0x" in text else text


def arguments(thing):
    try:
        found = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return None
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    return [
        [stars.get(p.kind.name, "") + p.name, "" if p.default is p.empty else shown(p.default)]
        for p in found
    ]


def methods(cls):
    ours = [
        c
        for c in cls.__mro__
        if str(c.__module__).split(".")[0] == "paddle" and not str(c.__module__).startswith(DYNAMIC)
    ]
    return sorted(
        n
        for n in {n for c in ours for n in vars(c)}
        if not n.startswith("_") and callable(getattr(cls, n, None))
    )


def entry(value):
    if isinstance(value, types.ModuleType):
        return ["module", None, []]
    if inspect.isclass(value):
        return ["class", arguments(value), methods(value)]
    return ["function", arguments(value), []] if callable(value) else ["value", None, []]


def names(module):
    listed = getattr(module, "__all__", None) or ()
    if listed or module.__name__ == "paddle":
        return [n for n in listed or vars(module) if hasattr(module, n) and not n.startswith("_")]
    return []


def main():
    warnings.simplefilter("ignore")
    table, seen = {}, set()
    for path in modules():
        try:
            module = importlib.import_module(path)
        except Exception as exc:
            print(path, exc)
            continue
        rows = {}
        for name in sorted(set(names(module))):
            value = getattr(module, name)
            if path == "paddle" and isinstance(value, types.ModuleType):
                continue
            known = (id(value), name) if callable(value) else None
            if known is None or known not in seen:
                rows[name] = entry(value)
                seen.add(known)
        if rows:
            table[path] = rows
    file = os.path.join(HERE, "..", "..", "fluidjax", "compat", "paddle_%s.json.gz" % VERSION)
    with gzip.GzipFile(file, "wb", mtime=0) as f:
        f.write(json.dumps(table, separators=(",", ":"), sort_keys=True).encode())
    print(
        len(table),
        "modules,",
        sum(map(len, table.values())),
        "names,",
        os.path.getsize(file),
        "bytes",
    )


if __name__ == "__main__":
    main()
