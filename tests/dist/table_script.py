"""A trainer or pserver with a table that no trainer holds whole. Run by test_tables.py.

python -m fluidjax launch --nproc 2 --pservers 2 table_script.py FOLDER
"""

import os
import sys

import numpy as np

import fluidjax as fluid

HEIGHT, WIDTH = 6001, 16


def network(distributed: bool) -> tuple:
    """A table that is looked up once, and an fc: main, startup, loss."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        ids = fluid.layers.data("ids", [1], dtype="int64")
        rows = fluid.layers.embedding(
            ids, [HEIGHT, WIDTH], is_sparse=True, is_distributed=distributed, param_attr="table"
        )
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(rows, 3)))
        fluid.optimizer.Adagrad(0.1).minimize(loss)
    return main, startup, loss


def batch(step: int, trainer: int) -> dict:
    return {"ids": np.random.default_rng(10 * step + trainer).integers(0, HEIGHT, (8, 1))}


def run(distributed: bool, folder: str) -> None:
    main, startup, loss = network(distributed)
    trainer = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    t = fluid.DistributeTranspiler()
    given = {
        "pservers": os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
        "trainers": int(os.environ["PADDLE_TRAINERS"]),
    }
    t.transpile(trainer, program=main, startup_program=startup, **given)
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        endpoint = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program, first = t.get_pserver_programs(endpoint)
        exe.run(first)
        exe.run(program)
        return
    program = t.get_trainer_program()
    exe.run(startup)
    scope = fluid.global_scope()
    (held,) = scope.find_var("table").storage.shards().arrays["table"].addressable_shards
    begun = {n: scope.get(n) for n in ("table", "fc_0.w_0", "fc_0.b_0")}
    losses = [exe.run(program, batch(step, trainer), [loss])[0].item() for step in range(4)]
    final = {f"{n} at the end": scope.get(n) for n in begun}
    name = f"{'dealt' if distributed else 'runs'}_{trainer}.npz"
    np.savez(os.path.join(folder, name), losses=losses, held=held.data.nbytes, **begun, **final)


if __name__ == "__main__":
    run(sys.argv[2] == "dealt", sys.argv[1])
