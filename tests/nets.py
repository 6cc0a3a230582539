"""Networks given as data ("steps" of layer calls, as in the recordings), built through the public
API.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import fluidjax as fluid
from fluidjax.graph.name_scope import fresh_name_scopes


def dotted(name: str) -> Any:
    found: Any = fluid
    for part in name.split("."):
        found = getattr(found, part)
    return found


def resolve(value: Any, env: dict[str, Any]) -> Any:
    """JSON to arguments: "$key" is an earlier result, {"@": f, "args": a} a call, {"@ref": f} a
    function.
    """
    if isinstance(value, str) and value.startswith("$"):
        return env[value[1:]]
    if isinstance(value, dict):
        if "@ref" in value:
            return dotted(value["@ref"])
        if "@" in value:
            return dotted(value["@"])(**resolve(value.get("args", {}), env))
        return {k: resolve(v, env) for k, v in value.items()}
    return [resolve(v, env) for v in value] if isinstance(value, list) else value


@contextlib.contextmanager
def fresh(seed: int = 0) -> Iterator[tuple[fluid.Program, fluid.Program]]:
    """New main and startup programs with names counted afresh."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fresh_name_scopes(), fluid.unique_name.guard(), fluid.program_guard(main, startup):
        yield main, startup


def build_forward(record: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The loss and the environment of a recorded network, in the default programs."""
    env: dict[str, Any] = {}
    if "builder_source" in record:
        namespace: dict[str, Any] = {}
        exec(record["builder_source"], namespace)
        loss, env = next(f for name, f in namespace.items() if name.startswith("build"))(fluid)
        return loss, env
    for step in record["net"]["steps"]:
        result = dotted(step["fn"])(**resolve(step.get("args", {}), env))
        if isinstance(step.get("out"), list):
            env.update(zip(step["out"], result, strict=False))
        elif step.get("out"):
            env[step["out"]] = result
    return env[record["net"]["loss"]], env
