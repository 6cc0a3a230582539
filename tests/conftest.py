"""What every test needs before jax starts: the CPU, unless JAX_PLATFORMS asks for something else,
as four devices.

How hard XLA tries (docs/testing.md): most of the suite's time would go to code that runs once, so
it tries little, in sub-processes as well; where the tests are about what the compiler makes,
@pytest.mark.optimized brings the ordinary effort back. With XLA_FLAGS in the environment, even if
empty, these count, and everything is compiled with them.

Each process of the run keeps what it compiled, so that tests which build the same program compile
it once. The cache is its own: JAX writes one without locking, and sub-processes that are killed
would leave halves of files to others.

And which examples property tests run. A change is judged by the same ones wherever its tests run,
so that none fails by chance; new ones are searched for apart (`make search`), and what a search
finds becomes an `@example` or a test of its own.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import jaxlib
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from .choice import mark_slow, part_of

jax.config.update("jax_platforms", os.environ.setdefault("JAX_PLATFORMS", "cpu"))
jax.config.update("jax_num_cpu_devices", 4)
# Thousands of tests raise through JAX; it would compare the file names of every frame with its own
# folder, each time.
jax.config.update("jax_traceback_filtering", "off")
# nobody reads the Python lines of an operation in these modules
jax.config.update("jax_traceback_in_locations_limit", 0)

# What takes a compilation's time, and its ordinary value. XLA ends a process over a flag that it
# does not know, so a newer one than these were tried with compiles as it always does.
EFFORT = {
    "xla_backend_optimization_level": (0, 3), "xla_llvm_disable_expensive_passes": (True, False),
    "xla_cpu_use_fusion_emitters": (False, True), "xla_cpu_parallel_codegen_split_count": (1, 32),
}  # fmt: skip
if jaxlib.__version__.startswith("0.10."):
    os.environ.setdefault(
        "XLA_FLAGS", " ".join(f"--{name}={little}" for name, (little, _) in EFFORT.items())
    )
ORDINARY = {name: ordinary for name, (_, ordinary) in EFFORT.items()}
WORTH_KEEPING = 0.04  # seconds: what is compiled sooner is not looked up sooner
FunctoolsCache = type(cache(len))
_jit = jax.jit


def ordinary_jit(
    fun: Callable[..., Any], *, compiler_options: dict[str, Any] | None = None, **options: Any
) -> Any:
    """jax.jit that compiles as it does where nothing is said. What is inlined takes no options: it
    is a part of another.
    """
    if options.get("inline"):
        return _jit(fun, **options)
    return _jit(fun, compiler_options={**ORDINARY, **(compiler_options or {})}, **options)


os.environ.setdefault("FLAGS_compilation_cache", "0")  # sub-processes leave the user's folder alone
_cache = None
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="fluidjax-tests-")
    jax.config.update("jax_compilation_cache_dir", _cache.name)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

ANY_SPEED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None, print_blob=True
)
settings.register_profile("fixed", ANY_SPEED, derandomize=True, max_examples=40)
settings.register_profile("search", ANY_SPEED, derandomize=False, max_examples=400)
settings.register_profile("few", ANY_SPEED, derandomize=True, max_examples=6)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Hypothesis also draws constants from the source of whatever has been imported so far: that depends
# on which tests ran before.
_none, _found = providers._local_constants, providers._get_local_constants
providers._get_local_constants = lambda: _none if settings.default.derandomize else _found()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Twenty thousand tests are made, and kept: Python's collector would look through all of them,
    over and over.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        # from here on it looks at what is made later, and at every 10,000 new objects, not 700:
        # tracing makes as many in no time
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """A worker that has told all is gone at once: looking through what ten thousand tests left in
    memory, and clearing JAX's caches one by one, would take it 15 seconds."""
    if _cache is not None:
        _cache.cleanup()
    if "PYTEST_XDIST_WORKER" in os.environ:
        os._exit(0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", help="of the chosen tests the Kth part, from 0")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Marks come before pytest chooses by them, a part is of what it chose."""
    mark_slow(items)
    yield
    if part := config.getoption("part"):
        items[:], left_out = part_of(items, part)
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, bool, bool]:
    """What a file of tests leaves behind is looked through once. A worker ends with five million
    objects, and Python's collector spent a sixth of its time on them.
    """
    with _ordinary_effort(item):
        done = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return done


@contextmanager
def _ordinary_effort(item: pytest.Item) -> Iterator[None]:
    """A test that is marked so, and its fixtures, compile with ordinary effort."""
    if item.get_closest_marker("optimized") is None or not os.environ.get("XLA_FLAGS"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "jit", ordinary_jit)
        patch.delenv("XLA_FLAGS")
        jax.config.update("jax_enable_compilation_cache", False)
        _forget_jitted()
        try:
            yield
        finally:
            _forget_jitted()
            jax.config.update("jax_enable_compilation_cache", True)


def _forget_jitted() -> None:
    """The package's caches keep functions that were jitted with one effort; the tests to come use
    another, which rounds otherwise.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("fluidjax."):
            for value in list(vars(module).values()):
                if isinstance(value, FunctoolsCache):
                    value.cache_clear()


class Brief:
    """A worker tells of a test's setup and teardown only what went wrong, instead of sending five
    messages a test.
    """

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def pytest_configure(config: pytest.Config) -> None:
    if (
        "PYTEST_XDIST_WORKER" in os.environ
        and config.getoption("durations") is None
        and config.getoption("xmlpath") is None
    ):
        config.pluginmanager.register(Brief())


@pytest.fixture(scope="session", autouse=True)
def same_draws() -> None:
    """A program without a seed draws what it drew in the last run of the suite: no test passes or
    fails by chance.
    """
    import fluidjax.executor

    vars(fluidjax.executor)["_PROCESS_SEED"] = 2018


@pytest.fixture(autouse=True)
def scopes_from_the_start() -> Iterator[None]:
    """The first name_scope("a") of a test is /a/, whatever ran before it in this process."""
    from fluidjax.graph.name_scope import fresh_name_scopes

    with fresh_name_scopes():
        yield


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launcher in this process starts are forks of one that has done the imports."""
    from fluidjax.dist.jobs import children

    from .forked import AS_SUBPROCESS

    monkeypatch.setattr(children, "subprocess", AS_SUBPROCESS)
