"""JSON: strict about what it reads (that it is an exact copy: test_text.py)."""

from __future__ import annotations

import json
import random

import pytest

from fluidjax.errors import FluidTypeError, ParseError, VerifyError
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, slots
from fluidjax.ir.jsonio import from_json, to_json
from fluidjax.ir.verify import verify

from .test_text import small


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"seed": 7', '"seed": "7"', "seed: expected int, found str '7'"),
        ('"seed": 7', '"seed": 7, "sed": 1', "no field 'sed'.*did you mean 'seed'"),
        ('"seed": 7', '"seed": 7, "seed": 7', "a key twice"),
        ('"seed": 7, ', "", "'seed' is missing"),
        ('"version": 1', '"version": 2', "version 1, found fluidjax-program 2"),
        ('"name": "x"', '"name": "w"', "block 0, variable 3: 'w' is there twice"),
        ('"shape": [13, 1]', '"shape": [13, 1.0]', "variable 0, shape: expected int, found float"),
        ('"shape": [13, 1]', '"shap": [13, 1]', "did you mean 'shape'"),
        ('"trainable": false', '"trainable": 0', "trainable: expected bool"),
        ('{"block": 1}', '{"block": true}', "attrs 'sub_block': expected int"),
        ('{"block": 1}', '{"blok": 1}', "expected one of long, block, float"),
        ('{"long": "5"}', '{"long": "five"}', "attrs 'rows'"),
        ('"dtype": "float32"', '"dtype": "fload32"', "variable 0: there is no dtype 'fload32'.*did you mean 'float32'"),
        ('"dtype": "float32"', '"kind": "LOD_TENSORS"', "variable 0: there is no kind 'LOD_TENSORS'.*did you mean 'LOD_TENSOR'"),
        ('"X": ["x"]', '"X": "x"', "inputs 'X': expected list"),
        ('"uid": 7', '"uid": NaN', "NaN is not JSON"),
        ('"uid": 7', '"uid": ' + "9" * 5000, "not JSON"),
        ('"uid": 7', '"uid": ' + "[" * 100_000, "not JSON"),
        ("0.10000000149011612", "[" * 30 + "]" * 30, "more than 16 lists"),
    ],
)  # fmt: skip
def test_errors_name_the_place(old, new, expected):
    text = to_json(small())
    assert old in text
    with pytest.raises(ParseError, match=expected):
        from_json(text.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "[]", "1", "{}", "nonsense", b"\xff\xfe\x00"])
def test_text_that_holds_no_program(text):
    with pytest.raises(ParseError):
        from_json(text)


def test_values_that_no_program_holds():
    desc = ProgramDesc(
        (BlockDesc(ops=(OpDesc(0, "a", slots({}), slots({}), FrozenMap(x=object())),)),)
    )
    with pytest.raises(FluidTypeError, match="op 'a'"):
        to_json(desc)


def test_fuzz_raises_only_parse_errors():
    rng = random.Random(0)
    plain = to_json(small())
    json.loads(plain)
    pieces = [
        "[",
        "]",
        "{",
        "}",
        '"',
        ",",
        ":",
        "1",
        "-",
        "true",
        "null",
        "1e999",
        '"x"',
        "\\u",
        "\x00",
    ]
    for _ in range(3000):
        text = list(plain)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 6)] = rng.choice(pieces)
        try:
            verify(from_json("".join(text)))
        except (ParseError, VerifyError):
            continue
