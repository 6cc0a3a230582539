"""Files of slots and what is done with them, recorded from 1.8.5 (tests/tools/record_slots.py); for
Python 3.8 too.
"""

import numpy as np

FILES = {
    "a.txt": "2 1 2 1 0.5 1 1\n1 3 1 0.25 1 0\n3 4 0 5 1 -1.5 1 1\n",
    "b.txt": "1 6 1 0.0 1 0\n1 0 1 2.5 1 0\n2 18446744073709551615 7 1 1e-1 1 1\n1 8 1\t3.5  1 0",
    "ctr.txt": (
        "2 1 2 1 0.5 1 1\n1 3 1 0.25 1 0\n3 4 0 5 1 -1.5 1 1\n1 6 1 0.0 1 0\n1 3 1 2.5 1 0\n2 9 7 1"
        " 1e-1 1 1\n"
    ),
}
DESC = (
    'name: "MultiSlotDataFeed"\nbatch_size: 2\nmulti_slot_desc {\n slots { name: "words" type:'
    ' "uint64" is_dense: false is_used: false }\n slots {\n name: "a\\"b" type: "float" shape: -1'
    " shape: 3 }\n}\n"
)
# samples that a generator makes, one list for each line it is given; an error's type where 1.8.5
# raises one
NUMBERS = [
    [[("words", [1926, 8, 17]), ("label", [1])], (("words", [1]), ("label", [0]))],
    [
        [("x", [1]), ("y", [0.1, 1e-7, 3])],
        [("x", [0.5]), ("y", [12345678901234567890])],
        None,
        [("x", [1e20]), ("y", [True])],
    ],
    [[("x", [1])], [("y", [1])]],
    [[("x", [1])], [("x", [1]), ("y", [1])]],
    [[("x", [])]],
    [[("x", (1,))]],
    [[(1, [1])]],
    ["text"],
    [{"x": [1]}],
]
STRINGS = [[[("w", ["a", "17"]), ("l", ["0"])], (("w", []), ("l", ["b c"]))], [5]]


def variables(fluid):
    return [
        fluid.data("ids", [None, 1], "int64", lod_level=1),
        fluid.data("x", [None, 1]),
        fluid.data("y", [None, 1], "int64"),
    ]


def dataset(fluid, kind, files, variables, batch=2):
    made = fluid.DatasetFactory().create_dataset(kind)
    made.set_batch_size(batch)
    made.set_filelist(files)
    made.set_use_var(variables)
    return made


def ctr(fluid):
    """main, startup, variables that are fed, loss"""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        ids, x, y = variables(fluid)
        table = np.linspace(-0.3, 0.4, 60).reshape(20, 3).astype("float32")
        weight = np.linspace(-1, 1, 8).reshape(4, 2).astype("float32")
        words = fluid.layers.embedding(
            ids,
            [20, 3],
            is_sparse=True,
            param_attr=fluid.ParamAttr("table", fluid.initializer.NumpyArrayInitializer(table)),
        )
        pooled = fluid.layers.concat([fluid.layers.sequence_pool(words, "sum"), x], 1)
        attr = fluid.ParamAttr("weight", fluid.initializer.NumpyArrayInitializer(weight))
        guess = fluid.layers.fc(pooled, 2, act="softmax", param_attr=attr)
        loss = fluid.layers.mean(fluid.layers.cross_entropy(guess, y))
        fluid.optimizer.Adam(0.05).minimize(loss)
    return main, startup, [ids, x, y], loss


def generated(base, samples):
    """what a generator of this class makes of some lines, or the type of its error"""

    class Made(base):
        def generate_sample(self, line):
            return lambda: iter(samples)

    made = Made()
    made.set_batch(2)
    made.run_from_memory()
