"""Programs that Paddle saved: the user's line of every op, and call stacks that stay without being
printed at length.
"""

from __future__ import annotations

from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.ir.callstack import user_line
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc, slots
from fluidjax.ir.jsonio import from_json, to_json
from fluidjax.ir.proto import from_bytes, to_bytes
from fluidjax.ir.text import parse, to_text
from fluidjax.look.program import to_html

SITE = "/usr/lib/python3.8/site-packages"


def frame(file: str, line: int, code: str = "f()") -> str:
    return f'  File "{file}", line {line}, in f\n    {code}\n'


# As 1.8.5 writes them, the innermost frame first; an optimizer's passes through a decorator of
# another package.
LAYER = (
    frame(f"{SITE}/paddle/fluid/framework.py", 2604), frame(f"{SITE}/paddle/fluid/layers/nn.py", 1715),
    frame("net.py", 12, "h = layers.fc(x, 4)"), frame("train.py", 5, "y = net(x)"),
)  # fmt: skip
OPTIMIZER = (
    frame(f"{SITE}/paddle/fluid/framework.py", 2604), frame(f"{SITE}/paddle/fluid/optimizer.py", 752),
    frame(f"{SITE}/decorator.py", 247), frame(f"{SITE}/paddle/fluid/wrapped_decorator.py", 25), frame("train.py", 9),
)  # fmt: skip
# outermost first, a line an entry
LATER = tuple(part for f in reversed(LAYER) for part in f.rstrip("\n").split("\n"))


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        (LAYER, "net.py:12"),
        (LATER, "net.py:12"),
        (OPTIMIZER, "train.py:9"),
        (LAYER[:2], None),
        ((*LAYER[:2], frame(f"{SITE}/hub/net.py", 3)), f"{SITE}/hub/net.py:3"),
        (
            (
                r'  File "C:\py\paddle\fluid\layers\nn.py", line 1, in f',
                r'  File "C:\me\train.py", line 2, in <module>',
            ),
            r"C:\me\train.py:2",
        ),
        (("a.py:3", "f()"), None),
        ((), None),
        (True, None),
    ],
)
def test_the_users_line(stack: Any, line: str | None) -> None:
    assert user_line(stack) == line


def saved() -> ProgramDesc:
    x = VarDesc("x", (-1, 4), "float32", is_data=True, need_check_feed=True)
    stacks = (LAYER, OPTIMIZER)
    ops = [
        OpDesc(i, "relu", slots({"X": "x"}), slots({"Out": "x"}), FrozenMap(op_callstack=s))
        for i, s in enumerate(stacks)
    ]
    return ProgramDesc((BlockDesc(FrozenMap(x=x), tuple(ops)),))


@pytest.mark.parametrize(
    ("write", "read"),
    [(to_bytes, from_bytes), (to_json, from_json), (to_text, parse)],
    ids=["protobuf", "json", "text"],
)
def test_stacks_come_back_with_the_users_lines(write: Any, read: Any) -> None:
    back = read(write(saved()))
    assert back == saved()
    assert write(back) == write(saved())
    assert [op.loc for op in back.blocks[0].ops] == ["net.py:12", "train.py:9"]


def test_printing_leaves_stacks_out() -> None:
    program = fluid.Program.parse_from_string(to_bytes(saved()))
    for text in (str(program), program.to_string(), to_html(program.desc)):
        assert "framework.py" not in text
    assert "# 2 ops carry an op_callstack" in str(program)
    assert parse(program.to_string(with_details=True)) == program.desc
    assert parse(str(program)).blocks[0].ops[0].inputs == program.desc.blocks[0].ops[0].inputs
    assert program.global_block().ops[0].attr("op_callstack") == list(LAYER)
