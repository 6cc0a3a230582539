"""Tables whose rows one rank alone holds; tests/dist has them on several."""

import numpy as np

from ..sample import Sample, f32

NOTE = "1.8.5 has no such ops"
WHOLE = {"nranks": 1, "height": 5}
ONE_PART = {"owners": [0, 0], "starts": [0, 2]}


def ids(*values):
    return np.array(values, "int64")


def look(i, **attrs):
    return Sample(
        "c_table_lookup",
        {"W": f32(5, 3), "Ids": i},
        {**WHOLE, **attrs},
        ["Out"],
        paddle=False,
        note=NOTE,
    )


SAMPLES = [
    look(ids(1, 4, 1, 0)),
    look(ids([1], [4]), last_one=True, padding_idx=4),
    look(ids([1, 2], [4, 3]), **ONE_PART),
    look(ids(1, 2, 4), owners=[0, 0], dealt=True),
    Sample("c_table_rows", {"X": f32(5, 3)}, WHOLE, ["Out"], paddle=False, note=NOTE),
    Sample(
        "c_table_rows",
        {"X": f32(5, 3)},
        {**WHOLE, "owners": [0, 0], "dealt": True},
        ["Out"],
        paddle=False,
        note=NOTE,
    ),
]
