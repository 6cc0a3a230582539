"""Names, order and defaults of arguments are Fluid's; names that Fluid never had are not there."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax.base.dtypes import VarType
from fluidjax.errors import UnsupportedError
from fluidjax.layers.missing import HINTS

pytestmark = pytest.mark.once

SIGNATURES = json.loads((Path(__file__).parents[1] / "data" / "signatures_1.8.5.json").read_text())
# what Paddle 2 added, behind all that 1.8.5 has
ADDED = {
    "param_attr.ParamAttr": [["need_clip", True]],
    "param_attr.WeightNormParamAttr": [["need_clip", True]],
}
LAYERS = [n.removeprefix("layers.") for n in SIGNATURES if n.startswith("layers.")]


def default(value):
    if value is inspect.Parameter.empty:
        return "<required>"
    if isinstance(value, VarType):
        return f"VarType.{value.name}"
    return list(value) if isinstance(value, tuple) else value


def test_signatures():
    for name in (n for n in SIGNATURES if n.split(".")[-1] not in HINTS):
        found = fluid
        for part in name.split("."):
            found = getattr(found, part)
        parameters = inspect.signature(found).parameters.values()
        ours = [[p.name, default(p.default)] for p in parameters if p.kind is not p.VAR_KEYWORD]
        assert ours == SIGNATURES[name] + ADDED.get(name, []), name
        assert inspect.getdoc(found), name


def test_every_name_of_fluid_is_there_or_named_as_missing():
    assert set(LAYERS) <= set(fluid.layers.__all__) | set(HINTS)
    assert not set(HINTS) & set(fluid.layers.__all__)


@pytest.mark.parametrize("name", sorted(HINTS))
def test_missing_names_say_what_to_use(name):
    with pytest.raises(UnsupportedError, match=f"fluid.layers.{name} "):
        getattr(fluid.layers, name)
    assert not hasattr(fluid.layers, name)


def test_names_that_never_existed():
    assert not hasattr(fluid.layers, "xyz_never_existed")
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        _ = fluid.layers.sofmax
