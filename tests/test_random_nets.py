"""Some random nets that Paddle 1.8.5 has run: their programs, values, gradients, LoDs and state are
the same here, or differ for a reason that stands in docs/random-nets.md. `make nets` draws others,
where there is a Paddle (docs/testing.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .random_nets import reasons
from .random_nets.compare import compare

HERE = Path(__file__).parent
NETS = json.loads(gzip.decompress((HERE / "data" / "random_nets_1.8.5.json.gz").read_bytes()))


def recorded(net: dict[str, Any]) -> dict[str, np.ndarray]:
    """What was computed, computed again, and with all floats moved a little, as compare takes it."""
    arrays = {}
    for key, (dtype, shape, values, lod, moved) in net["values"].items():
        v = np.array(values, dtype).reshape(shape)
        arrays |= {
            "v:" + key: v,
            "a:" + key: v,
            "n:" + key: v + v.dtype.type(moved) if v.dtype.kind == "f" else v,
        }
        arrays["l:" + key] = np.array(json.dumps(lod))
    return arrays


@pytest.mark.first(4)
@pytest.mark.parametrize("net", NETS, ids=lambda net: str(net["seed"]))
def test_is_what_it_is_in_paddle(net: dict[str, Any]) -> None:
    differences, _ = compare(net, recorded(net))
    assert not differences, "\n".join([*net["lines"], *net["train"], "", *differences])


def test_a_difference_is_found() -> None:
    """Of values, of attributes and of declarations."""
    net = next(
        n
        for n in NETS
        if n["train"] and any(v[0] == "float32" and v[2] for v in n["values"].values())
    )
    key = next(k for k, v in net["values"].items() if v[0] == "float32" and v[2])
    dtype, shape, values, lod, moved = net["values"][key]
    changed = {
        **net,
        "values": {
            **net["values"],
            key: [dtype, shape, [values[0] + 1.0, *values[1:]], lod, moved],
        },
    }
    found, _ = compare(changed, recorded(changed))
    assert [f for f in found if f.startswith(key + ":")]
    programs = json.loads(json.dumps(net["programs"]))
    block = programs["main"][0]
    name = next(n for n, v in block["vars"].items() if v[1] == "float32")
    block["vars"][name][4] = not block["vars"][name][4]
    block["ops"][-1][3]["an_attribute"] = 1
    found, _ = compare({**net, "programs": programs}, recorded(net))
    assert any(f"stop_gradient of {name}" in f for f in found) and any(
        ".an_attribute" in f for f in found
    )


def test_every_reason_stands_on_the_page() -> None:
    page = (HERE.parent / "docs" / "random-nets.md").read_text()
    headings = [v for n, v in vars(reasons).items() if n.isupper() and isinstance(v, str)]
    assert len(headings) > 5
    assert all(f"\n## {h}\n" in page for h in headings)
