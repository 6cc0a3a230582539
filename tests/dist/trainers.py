"""A trainer of a job, and the same training in one process: ``python -m fluidjax launch --nproc 2
trainers.py OUT CASE...``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fluidjax as fluid

STEPS, BATCH = 3, 16
Net = tuple[fluid.Program, fluid.Program, Any, Any]


def net(kind: str, seed: int = 0) -> Net:
    """main, startup, loss, the variable to look at."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1], "int64")
        h = fluid.layers.fc(
            x,
            8,
            act="tanh",
            param_attr=fluid.ParamAttr(name="w", initializer=fluid.initializer.Normal()),
        )
        h = fluid.layers.batch_norm(h) if "bn" in kind else h
        h = fluid.layers.dropout(h, 0.5) if kind == "drop" else h
        h = through_blocks(h) if kind in ("blocks", "grad_allreduce") else h
        h = word_by_word(h) if kind == "grad_allreduce" else h
        loss = fluid.layers.mean(
            fluid.layers.cross_entropy(fluid.layers.fc(h, 3, act="softmax"), y)
        )
        optimizer = (
            fluid.optimizer.SGD(0.1) if kind == "local_sgd" else fluid.optimizer.Momentum(0.1, 0.9)
        )
        optimizer.minimize(loss)
    return main, startup, loss, h


def through_blocks(h: Any) -> Any:
    """A loop, a StaticRNN and a branch that a parameter chooses."""
    layers = fluid.layers
    inner = lambda v: layers.fc(v, 8, act="tanh", param_attr="inner", bias_attr=False)  # noqa: E731
    i, n = (layers.fill_constant([1], "int64", v) for v in (0, 2))
    _, h = layers.while_loop(
        lambda i, y: layers.less_than(i, n), lambda i, y: [i + 1, inner(y)], [i, h]
    )
    given, rnn, start = (
        layers.stack([h, layers.scale(h, 0.5)]),
        layers.StaticRNN(),
        layers.scale(h, 0.1),
    )
    with rnn.step():
        before = rnn.memory(init=start)
        after = inner(rnn.step_input(given) + before)
        rnn.update_memory(before, after)
        rnn.step_output(after)
    out = layers.reduce_sum(rnn(), 0)
    w = layers.create_parameter([8], "float32", name="gate")
    open_ = layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(w))
    return layers.cond(open_, lambda: out * w, lambda: out - w)


def word_by_word(h: Any) -> Any:
    """A DynamicRNN over the first n[i] thirds of each row; batches of a job are dense, so the
    sequences are made here.
    """
    layers = fluid.layers
    rows = layers.reshape(fluid.default_main_program().global_block().var("x"), [-1, 3, 2])
    words, rnn = layers.sequence_unpad(rows, fluid.data("n", [None], "int64")), layers.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(words), rnn.memory(init=h, need_reorder=True)
        after = layers.fc([word, before], 8, act="tanh")
        rnn.update_memory(before, after)
        rnn.output(after)
    return layers.sequence_pool(rnn(), "average")


def ragged_net() -> Net:
    """Sentences: a table of words, a number that is learnt for each word, a class for each
    sentence, of parts of it too (two levels).
    """
    layers = fluid.layers
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        tags = fluid.data("tags", [None, 1], lod_level=1)
        y, parts = fluid.data("y", [None, 1], "int64"), fluid.data("parts", [None, 2], lod_level=2)
        x = layers.embedding(words, [9, 4], is_sparse=True, param_attr="table")
        h = layers.square_error_cost(layers.fc(x, 1), tags)
        learnt = layers.fc(parts, 3, act="tanh")
        read = [
            layers.sequence_pool(x, "average"),
            layers.sequence_pool(layers.sequence_pool(learnt, "max"), "sum"),
        ]
        classes = layers.fc(layers.concat(read, 1), 3, act="softmax")
        loss = layers.mean(h) + layers.mean(layers.cross_entropy(classes, y))
        fluid.optimizer.Adam(0.05, lazy_mode=True).minimize(loss)
    return main, startup, loss, [h, learnt]


def nested_net() -> Net:
    """Paragraphs: a class for each, of its sentences' means and of a DynamicRNN that has one over
    the words of each sentence.
    """
    layers = fluid.layers
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        words, y = (
            fluid.data("words", [None, 1], "int64", lod_level=2),
            fluid.data("y", [None, 1], "int64"),
        )
        x = layers.embedding(words, [9, 3], is_sparse=True, param_attr="table")
        means = layers.sequence_pool(x, "average")
        outer = layers.DynamicRNN()
        with outer.block():
            sentence, before = outer.step_input(x), outer.memory(shape=[3], value=0.1)
            inner = layers.DynamicRNN()
            with inner.block():
                word, state = inner.step_input(sentence), inner.memory(shape=[3], value=0.0)
                after = layers.fc([word, state], 3, act="tanh", param_attr="inner", bias_attr=False)
                inner.update_memory(state, after)
                inner.output(after)
            now = layers.fc(
                [layers.sequence_last_step(inner()), before],
                3,
                act="tanh",
                param_attr="outer",
                bias_attr=False,
            )
            outer.update_memory(before, now)
            outer.output(now)
        read = layers.concat(
            [layers.sequence_pool(means, "sum"), layers.sequence_last_step(outer())], 1
        )
        loss = layers.mean(layers.cross_entropy(layers.fc(read, 3, act="softmax"), y))
        fluid.optimizer.Adam(0.05, lazy_mode=True).minimize(loss)
    return main, startup, loss, [means, x]


# lengths on each of four devices, for two steps
SENTENCES = ([[3, 1], [2, 4], [1, 2, 2], [5]], [[2, 2], [1, 1], [9, 1], [3, 1]])


def sentences(step: int, device: int) -> dict[str, Any]:
    """What one of four devices is fed: other numbers of sentences too, and now and then two LoDs
    that are equal by chance.
    """
    lengths = SENTENCES[step][device]
    count = np.arange(sum(lengths))[:, None]
    words, tags = (
        fluid.create_lod_tensor(v, [lengths], fluid.CPUPlace())
        for v in ((count * 2 + device) % 9, (count % 3).astype("f4"))
    )
    # of each sentence the lengths of its parts
    inner = [[n % 3 + 1] * (1 + (step + device) % 2) for n in lengths]
    flat = [n for one in inner for n in one]
    rows = np.sin(np.arange(sum(flat) * 2).reshape(-1, 2) + device).astype("f4")
    parts = fluid.create_lod_tensor(rows, [[len(one) for one in inner], flat], fluid.CPUPlace())
    return {"words": words, "tags": tags, "parts": parts, "y": np.array([[n % 3] for n in lengths])}


PARAGRAPHS = (  # lengths of sentences in paragraphs, as SENTENCES
    [[[3, 1]], [[2], [4, 1]], [[1, 2, 2]], [[5], [1]]],
    [[[2, 2], [1]], [[1, 1], [3]], [[9, 1], [2]], [[3, 1], [4]]],
    [[[1]], [[2]], [[3]], [[2]]],
)


def paragraphs(step: int, device: int) -> dict[str, Any]:
    """What one of four devices is fed: at first other numbers of paragraphs, then of the same kind,
    at last of sentences too.
    """
    nested = PARAGRAPHS[step][device]
    lengths = [n for one in nested for n in one]
    words = (np.arange(sum(lengths))[:, None] * 2 + device) % 9
    y = np.array([[len(one) % 3] for one in nested])
    return {
        "words": fluid.create_lod_tensor(
            words, [[len(one) for one in nested], lengths], fluid.CPUPlace()
        ),
        "y": y,
    }


def ragged(
    devices: range, net: Any = ragged_net, fed: Any = sentences, steps: int = len(SENTENCES)
) -> dict[str, np.ndarray]:
    """Training on sentences, as the trainer of these devices of four."""
    made, scope, exe = net(), fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(made[1], scope=scope)
    for name, value in first_values(made[0]).items():
        scope.var(name).set(value)
    rank, count = jax.process_index(), jax.process_count()
    build = strategy("ragged", **({"num_trainers": count, "trainer_id": rank} if count > 1 else {}))
    places = [fluid.CPUPlace()] * 4 if count == 1 else fluid.cpu_places()
    compiled = fluid.CompiledProgram(made[0]).with_data_parallel(made[2].name, build, places=places)
    fetched = []
    for step in range(steps):
        loss, *seen = exe.run(
            compiled,
            [fed(step, d) for d in devices],
            [made[2], *made[3]],
            scope=scope,
            return_numpy=False,
        )
        fetched.append(np.asarray(loss))
        for tensor in seen:
            fetched += [np.asarray(tensor), *map(np.array, tensor.recursive_sequence_lengths())]
    return {**{f"seen {i}": v for i, v in enumerate(fetched)}, **values(made[0], scope)}


def batches(part: int = 0, parts: int = 1, lengths: bool = False) -> list[dict[str, np.ndarray]]:
    """Part `part` of `parts` of every step's batch."""
    r = np.random.RandomState(3)
    rows = slice(part * BATCH // parts, (part + 1) * BATCH // parts)
    more = {"n": (np.arange(BATCH) % 3 + 1)[rows]} if lengths else {}
    return [
        {"x": r.randn(BATCH, 6).astype("f4")[rows], "y": r.randint(0, 3, (BATCH, 1))[rows], **more}
        for _ in range(STEPS)
    ]


def first_values(main: fluid.Program) -> dict[str, np.ndarray]:
    r = np.random.RandomState(11)
    return {
        p.name: r.uniform(-0.5, 0.5, p.shape).astype("f4")
        for p in main.global_block().all_parameters()
    }


def values(main: fluid.Program, scope: fluid.Scope) -> dict[str, np.ndarray]:
    return {
        v.name: scope.get(v.name) for v in main.list_vars() if v.persistable and v.type != "RAW"
    }


def strategy(kind: str, **options: Any) -> fluid.BuildStrategy:
    made = fluid.BuildStrategy()
    for name, value in {"sync_batch_norm": kind == "sync_bn", **options}.items():
        setattr(made, name, value)
    if kind == "reduce":
        made.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    return made


def train(program: Any, made: Net, scope: fluid.Scope, feeds: Any) -> dict[str, np.ndarray]:
    """Losses, what the last step saw of the net's variable, and all values after it."""
    main, _, loss, seen = made
    exe = fluid.Executor(fluid.CPUPlace())
    fetched = [exe.run(program, feed, [loss, seen], scope=scope) for feed in feeds]
    return {
        "loss": np.array([f[0] for f in fetched]),
        "seen": fetched[-1][1],
        **values(main, scope),
    }


def alone(kind: str, places: int) -> dict[str, np.ndarray]:
    """The training in one process, on the whole batch."""
    made, scope = net(kind), fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(made[1], scope=scope)
    for name, value in first_values(made[0]).items():
        scope.var(name).set(value)
    compiled = fluid.CompiledProgram(made[0]).with_data_parallel(
        made[2].name, strategy(kind), places=[fluid.CPUPlace()] * places
    )
    return train(compiled if places > 1 else made[0], made, scope, batches())


# -- what every trainer does -----------------------------------------------------------------------


def transpiled(made: Net, mode: str, collective_mode: str | None = None) -> None:
    """Rewrite the programs for this trainer of the job."""
    config, trainers = fluid.DistributeTranspilerConfig(), os.environ["PADDLE_TRAINER_ENDPOINTS"]
    config.mode, config.collective_mode, config.wait_port = mode, collective_mode, False
    rank = jax.process_index()
    fluid.DistributeTranspiler(config).transpile(
        rank,
        program=made[0],
        startup_program=made[1],
        trainers=trainers,
        current_endpoint=trainers.split(",")[rank],
    )


def here(kind: str) -> dict[str, np.ndarray]:
    """with_data_parallel in the job, of a program that was transpiled where it has blocks; trainer
    0's first values are everybody's.
    """
    rank, count = jax.process_index(), jax.process_count()
    made, scope = net(kind), fluid.Scope()
    if kind == "blocks":
        transpiled(made, "nccl2")
    fluid.Executor(fluid.CPUPlace()).run(made[1], scope=scope)
    for name, value in first_values(made[0]).items():
        scope.var(name).set(value if rank == 0 else value * 0 + rank)
    compiled = fluid.CompiledProgram(made[0]).with_data_parallel(
        made[2].name, strategy(kind, num_trainers=count, trainer_id=rank), places=fluid.cpu_places()
    )
    return train(compiled, made, scope, batches(rank, count))


def drawn() -> dict[str, np.ndarray]:
    """Dropout, and parameters that every trainer draws for itself, by ParallelExecutor and a
    program of nccl2 mode.
    """
    rank, count = jax.process_index(), jax.process_count()
    made, scope = net("drop"), fluid.Scope()
    transpiled(made, "nccl2")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(made[1], scope=scope)
    begun = scope.get("w")
    pe = fluid.ParallelExecutor(
        False, made[2].name, made[0], num_trainers=count, trainer_id=rank, scope=scope
    )
    ones = {"x": np.ones((BATCH // count, 6), "f4"), "y": np.zeros((BATCH // count, 1), "int64")}
    seen = [pe.run([made[3].name], ones)[0] for _ in range(STEPS)][-1]
    folder = Path(sys.argv[1]) / f"saved {rank}"
    with fluid.scope_guard(scope):
        fluid.io.save_persistables(exe, str(folder), main_program=made[0])
    trained = values(made[0], scope)
    test = made[0].clone(for_test=True)
    # on one device of this trainer alone
    (local,) = exe.run(test, batches()[0], [made[2].name], scope=scope)
    return {"begun": begun, "seen": seen, "begun local": local, **trained}


def collective(mode: str) -> dict[str, np.ndarray]:
    """Programs of the collective mode, run as they are; the startup program too."""
    rank, count = jax.process_index(), jax.process_count()
    made, scope = net(mode), fluid.Scope()
    transpiled(made, "collective", mode)
    fluid.Executor(fluid.CPUPlace()).run(made[1], scope=scope)
    begun = {f"begun {p.name}": scope.get(p.name) for p in made[0].global_block().all_parameters()}
    return {**begun, **train(made[0], made, scope, batches(rank, count, mode == "grad_allreduce"))}


def mistakes() -> dict[str, np.ndarray]:
    """Errors that leave the job alive."""
    rank, count = jax.process_index(), jax.process_count()
    found = {}
    for name, n, i in (("number", count + 1, rank), ("id", count, (rank + 1) % count)):
        try:
            fluid.ParallelExecutor(
                False, main_program=net("plain")[0], num_trainers=n, trainer_id=i
            )
        except ValueError as error:
            found[name] = np.array(str(error))
    for name, kind, rows in (
        ("program", "bn" if rank else "plain", 4),
        ("feed", "plain", 4 * (rank + 1)),
    ):
        made, scope = net(kind), fluid.Scope()
        fluid.Executor(fluid.CPUPlace()).run(made[1], scope=scope)
        build = strategy(kind, num_trainers=count, trainer_id=rank)
        compiled = fluid.CompiledProgram(made[0]).with_data_parallel(
            made[2].name, build, places=fluid.cpu_places()
        )
        try:
            train(
                compiled,
                made,
                scope,
                [{"x": np.ones((rows, 6), "f4"), "y": np.zeros((rows, 1), "int64")}],
            )
        except fluid.errors.JobError as error:
            found[name] = np.array(str(error))
    return found


def late() -> dict[str, np.ndarray]:
    """One trainer's last batch is smaller."""
    rank, count = jax.process_index(), jax.process_count()
    made, scope = net("plain"), fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(made[1], scope=scope)
    build = strategy("plain", num_trainers=count, trainer_id=rank)
    compiled = fluid.CompiledProgram(made[0]).with_data_parallel(
        made[2].name, build, places=fluid.cpu_places()
    )
    sizes = (4, 4, 2 if rank else 4)
    return train(
        compiled,
        made,
        scope,
        [{"x": np.ones((n, 6), "f4"), "y": np.zeros((n, 1), "int64")} for n in sizes],
    )


def stored(everyone: bool = True) -> dict[str, np.ndarray]:
    """Values that a script stores between steps: trainer 0's count, and every trainer must store
    some.
    """
    rank, count = jax.process_index(), jax.process_count()
    made, scope, exe = net("plain"), fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(made[1], scope=scope)
    build = strategy("plain", num_trainers=count, trainer_id=rank)
    compiled = fluid.CompiledProgram(made[0]).with_data_parallel(
        made[2].name, build, places=fluid.cpu_places()
    )
    feed = batches(rank, count)[0]
    exe.run(compiled, feed, [made[2]], scope=scope)
    if everyone or rank == 1:
        scope.var("w").set(np.full((6, 8), rank + 1, "f4"))
        scope.var("learning_rate_0").set(np.zeros(1, "f4"))
    exe.run(compiled, feed, [made[2]], scope=scope)
    return values(made[0], scope)


def nested(devices: range) -> dict[str, np.ndarray]:
    """Training on paragraphs of sentences."""
    return ragged(devices, nested_net, paragraphs, len(PARAGRAPHS))


def mine() -> range:
    """This process's devices of four."""
    return range(
        jax.process_index() * 4 // jax.process_count(),
        (jax.process_index() + 1) * 4 // jax.process_count(),
    )


CASES = {
    "ragged": lambda: ragged(mine()), "nested": lambda: nested(mine()),
    "drawn": drawn, "mistakes": mistakes, "late": late, "stored": stored, "lone": lambda: stored(False),
    "grad_allreduce": lambda: collective("grad_allreduce"), "local_sgd": lambda: collective("local_sgd"),
}  # fmt: skip


if __name__ == "__main__":
    for case in sys.argv[2:]:
        np.savez(
            Path(sys.argv[1]) / f"{case}-{jax.process_index()}.npz",
            **(CASES[case]() if case in CASES else here(case)),
        )
