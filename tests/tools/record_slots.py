"""Record what the real Paddle 1.8.5 (CPU) makes of files of slots.

    python3.8 tests/tools/record_slots.py

Writes tests/data/slots_1.8.5.json.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, ROOT)

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
import paddle.fluid.incubate.data_generator as generators  # noqa: E402

from tests.dataset import slot_cases as cases  # noqa: E402


def batches(kind):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        made = cases.dataset(fluid, kind, ["a.txt", "b.txt"], cases.variables(fluid))
        if kind == "InMemoryDataset":
            made.load_into_memory()
        loader = fluid.io.DataLoader.from_dataset(made, [fluid.CPUPlace()], False)
        found = [
            {n: [np.array(v).tolist(), v.lod()] for n, v in group[0].items()} for group in loader()
        ]
        return {"desc": made.desc(), "batches": found}


def generated(base, samples):
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            cases.generated(base, samples)
    except Exception as error:
        return [type(error).__name__]
    return text.getvalue()


def described():
    with open("desc.txt", "w") as file:
        file.write(cases.DESC)
    desc = fluid.DataFeedDesc("desc.txt")
    texts = [desc.desc()]
    desc.set_batch_size(128)
    desc.set_dense_slots(["words"])
    desc.set_use_slots(['a"b'])
    return [*texts, desc.desc()]


def trained():
    """Run in a process of its own, whose stdout is C++'s too."""
    main, startup, fed, loss = cases.ctr(fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    made = cases.dataset(fluid, "QueueDataset", ["ctr.txt"], fed)
    exe.train_from_dataset(
        main, made, fetch_list=[loss, fed[0]], fetch_info=["loss", "words"], print_period=1
    )
    exe.infer_from_dataset(
        main, made, fetch_list=[loss, fed[0]], fetch_info=["again", "ids"], print_period=1
    )
    values = {
        n: np.array(fluid.global_scope().find_var(n).get_tensor()).tolist()
        for n in ("table", "weight")
    }
    sys.stdout.flush()
    json.dump(values, open("values.json", "w"))


if __name__ == "__main__":
    if sys.argv[1:] == ["trained"]:
        trained()
        sys.exit()
    os.chdir(tempfile.mkdtemp())
    for name, text in cases.FILES.items():
        with open(name, "w") as file:
            file.write(text)
    found = {kind: batches(kind) for kind in ("QueueDataset", "InMemoryDataset")}
    found["numbers"] = [generated(generators.MultiSlotDataGenerator, s) for s in cases.NUMBERS]
    found["strings"] = [
        generated(generators.MultiSlotStringDataGenerator, s) for s in cases.STRINGS
    ]
    found["desc"] = described()
    printed = subprocess.run(
        [
            sys.executable,
            os.path.abspath(os.path.join(ROOT, "tests/tools/record_slots.py")),
            "trained",
        ],
        stdout=subprocess.PIPE,
    )
    found["printed"] = printed.stdout.decode()
    found["values"] = json.load(open("values.json"))
    with open(os.path.join(ROOT, "tests", "data", "slots_1.8.5.json"), "w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
