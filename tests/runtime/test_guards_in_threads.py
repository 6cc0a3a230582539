"""What a guard puts in force holds in the thread that is within it; other threads have the
process's own, or guards of theirs.
"""

import contextvars
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.graph.device_guard import current_device
from fluidjax.graph.name_scope import current_name_scope, fresh_name_scopes

GUARDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "program_guard": (
        lambda: fluid.program_guard(fluid.Program(), fluid.Program()),
        lambda: (fluid.default_main_program(), fluid.default_startup_program()),
    ),
    "scope_guard": (lambda: fluid.scope_guard(fluid.Scope()), fluid.global_scope),
    "unique_name.guard": (
        lambda: fluid.unique_name.guard("mine_"),
        lambda: fluid.unique_name.generator,
    ),
    "name_scope": (lambda: fluid.name_scope("part"), lambda: current_name_scope().full()),
    "device_guard": (lambda: fluid.device_guard("cpu"), current_device),
    "init_on_cpu": (fluid.initializer.init_on_cpu, fluid.initializer.force_init_on_cpu),
}


def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns in a thread that begins without a context, as Python's own do."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=20)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_is_in_force_in_its_thread_alone(guard: str) -> None:
    enter, current = GUARDS[guard]
    before = in_thread(current)
    with enter():
        mine = current()
        assert mine != before
        assert in_thread(current) == before
        assert in_thread(lambda: contextvars.Context().run(current)) == before
        copied = contextvars.copy_context()
        # a thread that is given the context is within the block
        assert in_thread(lambda: copied.run(current)) == mine
    assert in_thread(current) == before


@pytest.mark.parametrize("guard", GUARDS)
def test_two_threads_are_within_guards_of_their_own(guard: str) -> None:
    """One enters before the other and leaves before it too, which a stack of the process's would
    mix up.
    """
    enter, current = GUARDS[guard]
    outside, barrier = in_thread(current), threading.Barrier(2, timeout=20)

    def work(first: bool) -> bool:
        with ExitStack() as stack:
            if first:
                stack.enter_context(enter())
                mine = current()
            barrier.wait()
            if not first:
                stack.enter_context(enter())
                mine = current()
            barrier.wait()
            kept = current() == mine
            if first:
                stack.close()
            barrier.wait()
            return kept and current() == (outside if first else mine)

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, (True, False)))
    assert in_thread(current) == outside


def test_a_switch_outside_of_guards_is_the_process_s_and_within_one_the_thread_s() -> None:
    old, new = fluid.default_main_program(), fluid.Program()

    def switched() -> bool:
        assert fluid.framework.switch_main_program(new) is in_thread_before
        return fluid.default_main_program() is new

    in_thread_before = in_thread(fluid.default_main_program)
    try:
        assert in_thread(switched)
        assert in_thread(fluid.default_main_program) is new
        with fluid.program_guard(fluid.Program()):
            inner = fluid.Program()
            fluid.framework.switch_main_program(inner)
            assert fluid.default_main_program() is inner
            assert in_thread(fluid.default_main_program) is new
    finally:
        in_thread(lambda: fluid.framework.switch_main_program(in_thread_before))
    assert fluid.default_main_program() is old


def test_a_generator_may_leave_a_guard_in_another_context_than_it_entered_it_in() -> None:
    def read() -> Any:
        with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program()):
            yield 1

    reading = read()
    assert contextvars.copy_context().run(next, reading) == 1
    contextvars.copy_context().run(reading.close)


def test_threads_number_names_in_turn() -> None:
    generator = fluid.unique_name.UniqueNameGenerator()
    with ThreadPoolExecutor(4) as pool:
        names = [
            *itertools.chain(*pool.map(lambda _: [generator("fc") for _ in range(500)], range(4)))
        ]
    assert sorted(names) == sorted(f"fc_{i}" for i in range(2000))


@pytest.mark.slow
def test_programs_are_built_and_run_in_threads() -> None:
    """Each equals what one thread alone builds and trains, names, text and values."""
    barrier = threading.Barrier(4, timeout=30)

    def work(size: int, alone: bool = False) -> tuple[str, float]:
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 7
        guards = (
            fluid.program_guard(main, startup),
            fluid.unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
            fresh_name_scopes(),
        )
        with ExitStack() as within:
            for guard in guards:
                within.enter_context(guard)
            x = fluid.layers.data("x", [4])
            for _ in range(3):
                if not alone:
                    barrier.wait()
                with fluid.name_scope("part"):
                    x = fluid.layers.fc(x, size)
            loss = fluid.layers.mean(x)
            fluid.optimizer.Adam(0.1).minimize(loss)
            exe = fluid.Executor()
            exe.run(startup)
            values = [
                exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])[0]
                for _ in range(2)
            ]
        return str(main), float(values[-1][0])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(1, 5)))
    assert found == [in_thread(lambda size=size: work(size, alone=True)) for size in range(1, 5)]  # type: ignore[misc]


def test_threads_of_readers_are_within_the_guards_of_who_reads() -> None:
    scope = fluid.Scope()

    def reader() -> Any:
        yield from (fluid.global_scope() for _ in range(3))

    def mapper(seen: Any) -> Any:
        return seen is scope and fluid.global_scope() is scope

    with fluid.scope_guard(scope):
        assert [*fluid.io.xmap_readers(mapper, reader, 2, 2)()] == [True] * 3
        assert [*fluid.io.buffered(reader, 2)()] == [scope] * 3
