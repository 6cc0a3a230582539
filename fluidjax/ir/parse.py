"""The reader of the printed form; text.py describes it and re-exports :func:`parse`."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, NoReturn

from ..errors import ParseError, near
from .callstack import user_line
from .desc import BlockDesc, BlockRef, FrozenMap, Long, OpDesc, ProgramDesc, VarDesc
from .lexis import BASES, DTYPE_OF, FLAGS, FORWARD, KIND_OF, RESERVED, ROLES, to_float32, tokens

Hints = dict[str, dict[str, Any]]
_DEEPEST = 16  # tuples in tuples


def parse(text: str) -> ProgramDesc:
    """The program that `text` holds (see text.py for the form).

    Raises ParseError, with the line's number and what was expected there.
    """
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        parts = _Line(line.rstrip("\r"), number)
        if parts.words:
            reader.line(parts)
    return reader.finish()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "..."


class _Line:
    """The tokens of one line, taken from the left."""

    def __init__(self, text: str, number: int) -> None:
        self.text, self.number, self.at = text, number, 0
        self.words = [
            (kind, part) for kind, part in tokens(text) if kind not in ("space", "comment")
        ]

    def fail(self, expected: str) -> NoReturn:
        found = (
            f"found {_cut(self.words[self.at][1], 40)!r}"
            if self.at < len(self.words)
            else "the line ends"
        )
        raise ParseError(
            f"line {self.number}: expected {expected}, but {found}: {_cut(self.text.strip(), 200)}"
        )

    def peek(self, ahead: int = 0) -> str:
        """The text of a token, or "" behind the last one."""
        return self.words[self.at + ahead][1] if self.at + ahead < len(self.words) else ""

    def kind(self, ahead: int = 0) -> str:
        return self.words[self.at + ahead][0] if self.at + ahead < len(self.words) else "end"

    def accept(self, mark: str) -> bool:
        if self.peek() == mark and self.kind() in ("mark", "name"):
            self.at += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail(repr(mark))

    def end(self) -> None:
        if self.at < len(self.words):
            self.fail("the end of the line")

    def is_name(self, ahead: int = 0) -> bool:
        kind = self.kind(ahead)
        return kind == "quoted" or (kind == "name" and self.peek(ahead) not in RESERVED)

    def name(self, what: str = "a name") -> str:
        if not self.is_name():
            self.fail(what)
        kind, part = self.words[self.at]
        name = part if kind == "name" else self.unquoted('"' + part[1:-1] + '"')
        self.at += 1
        return name

    def unquoted(self, part: str) -> str:
        try:
            return str(json.loads(part))
        except ValueError:
            self.fail("a string with JSON's escapes")

    def integer(self, what: str = "an integer") -> int:
        part = self.peek()
        if self.kind() != "number" or not part.removeprefix("-").isdigit():
            self.fail(what)
        try:
            value = int(part)
        except ValueError:  # more digits than Python reads
            self.fail("an integer of fewer digits")
        self.at += 1
        return value

    def value(self, depth: int = 0) -> Any:
        """An attribute's value."""
        kind, part = self.kind(), self.peek()
        if self.accept("("):
            if depth == _DEEPEST:
                self.fail(f"at most {_DEEPEST} tuples in each other")
            return self.listed(")", lambda: self.value(depth + 1))
        if kind == "string":
            self.at += 1
            return self.unquoted(part)
        if kind == "number":
            return self.number_value(part)
        if part in ("True", "False", "None") and kind == "name":
            self.at += 1
            return {"True": True, "False": False, "None": None}[part]
        if self.accept("block"):
            return BlockRef(self.integer("a block's index"))
        self.fail("a value (a number, a string in double quotes, True, False, a tuple, or block N)")

    def number_value(self, part: str) -> Any:
        if part.removeprefix("-").isdigit():
            return self.integer()
        self.at += 1
        try:
            if part.endswith("L"):
                return Long(part[:-1])
            value = (
                to_float32(float(part[:-1]))
                if part.endswith("f") and part[-2].isdigit()
                else float(part)
            )
        except ValueError:
            self.at -= 1
            self.fail("a number")
        return math.nan if math.isnan(value) else value

    def dimension(self) -> int | str:
        """A size, or the text of an open one."""
        kind, part = self.kind(), self.peek()
        if kind not in ("name", "string"):
            return self.integer("a dimension")
        self.at += 1
        return part if kind == "name" else self.unquoted(part)

    def listed(self, close: str, item: Any) -> tuple[Any, ...]:
        """Items up to `close`, separated by commas; a last comma is allowed."""
        found = []
        while not self.accept(close):
            found.append(item())
            if not self.accept(","):
                self.expect(close)
                break
        return tuple(found)


class _Reader:
    """The program so far, and where the next line belongs."""

    def __init__(self) -> None:
        self.seed: int | None = None
        self.hints: Hints = {}
        self.blocks: list[BlockDesc] = []
        self.vars: list[dict[str, VarDesc]] = []
        self.ops: list[list[OpDesc]] = []
        self.section, self.uid = "", -1

    def line(self, line: _Line) -> None:
        if self.seed is None:
            return self.program(line)
        if line.kind() == "name" and line.peek(1) == ":" and len(line.words) == 2:
            word = (
                line.name("'hints:', 'block N:' or 'callstacks:'")
                if line.peek() in ("hints", "callstacks")
                else ""
            )
            if word:
                self.section = word
                return None
        if line.peek() == "block" and self.section != "callstacks":
            return self.block(line)
        if self.section == "hints":
            return self.hint(line)
        if self.section == "callstacks":
            return self.callstack(line)
        if self.section != "block":
            line.fail("'hints:' or 'block 0:'")
        if line.kind() == "name" and line.peek() in BASES and line.is_name(1):
            return self.declaration(line)
        return self.op(line)

    def program(self, line: _Line) -> None:
        for word in ("program", "seed", "="):
            if not line.accept(word):
                line.fail("'program seed=N'")
        self.seed = line.integer()
        line.end()

    def hint(self, line: _Line) -> None:
        kind = "*" if line.accept("*") else line.name("an op type or *")
        line.expect(":")
        row = self.hints.setdefault(kind, {})
        while line.at < len(line.words):
            name, value = self.quiet(line)
            row[name] = value
            if not line.accept(","):
                line.end()

    def block(self, line: _Line) -> None:
        line.expect("block")
        if line.integer() != len(self.blocks):
            line.at -= 1
            line.fail(f"block {len(self.blocks)}")
        links = {"parent": -1, "forward": -1}
        if line.accept("("):
            for word, value in line.listed(
                ")", lambda: (line.name("parent or forward"), line.integer())
            ):
                if word not in links:
                    line.fail("parent or forward")
                links[word] = value
        line.expect(":")
        line.end()
        self.blocks.append(BlockDesc(parent=links["parent"], forward=links["forward"]))
        self.vars.append({})
        self.ops.append([])
        self.section = "block"

    def declaration(self, line: _Line) -> None:
        base = line.name()
        self.declare(line, line.name(), base)
        line.end()

    def declare(self, line: _Line, name: str, base: str) -> None:
        if name in self.vars[-1]:
            line.fail(f"a new name ({name!r} is declared already)")
        line.expect(":")
        flags = dict(BASES[base])
        var = self.type(line, name)
        while line.peek() in ("+", "-"):
            sign = line.peek() == "+"
            line.at += 1
            if line.peek() not in FLAGS:
                line.fail(f"one of {', '.join(FLAGS)}")
            flags[line.name()] = sign
        self.vars[-1][name] = replace(var, **flags)  # type: ignore[arg-type]

    def type(self, line: _Line, name: str) -> VarDesc:
        kind, dtype, shape, lod, any_word = "LOD_TENSOR", None, None, 0, False
        dims: tuple[str, ...] = ()
        if line.peek() in KIND_OF:
            kind, any_word = KIND_OF[line.name()], True
        if line.peek() in DTYPE_OF:
            dtype, any_word = DTYPE_OF[line.name()], True
        elif line.accept("?"):
            any_word = True
        if not any_word:
            line.fail(f"a type such as f32[2, 3]{near(line.peek(), [*DTYPE_OF, *KIND_OF])}")
        if line.accept("["):
            sizes = line.listed("]", line.dimension)
            shape = tuple(-1 if isinstance(n, str) else n for n in sizes)
            if shape != sizes:
                dims = tuple(n if isinstance(n, str) else "" for n in sizes)
        if line.accept("lod"):
            lod = line.integer("a LoD level")
        return VarDesc(name, shape, dtype, kind, lod, dims=dims)

    def op(self, line: _Line) -> None:
        outputs = self.outputs(line)
        kind = line.name("an op type")
        line.expect("(")
        inputs: dict[str, tuple[str, ...]] = {}
        attrs: dict[str, Any] = {}
        line.listed(")", lambda: self.argument(line, inputs, attrs))
        quiet = {**self.hints.get("*", {}), **(self.hints.get(kind, {}) if kind != "*" else {})}
        self.uid += 1
        if line.accept("{"):
            line.listed("}", lambda: self.brace(line, quiet))
        line.end()
        self.ops[-1].append(
            OpDesc(
                self.uid, kind, FrozenMap(inputs), FrozenMap(outputs), FrozenMap({**attrs, **quiet})
            )
        )

    def argument(
        self, line: _Line, inputs: dict[str, tuple[str, ...]], attrs: dict[str, Any]
    ) -> None:
        name = line.name("a slot or an attribute")
        line.expect("=")
        if line.peek() == "[" or line.is_name():
            if name in inputs:
                line.fail(f"slot {name!r} once only")
            inputs[name] = self.slot(line, declare=False)
        elif name in attrs:
            line.fail(f"attribute {name!r} once only")
        else:
            attrs[name] = line.value()

    def outputs(self, line: _Line) -> dict[str, tuple[str, ...]]:
        if line.accept("("):
            found: dict[str, tuple[str, ...]] = {}
            for name, names in line.listed(")", lambda: self.output(line)):
                if name in found:
                    line.fail(f"slot {name!r} once only")
                found[name] = names
            line.expect("=")
            return found
        if line.is_name() and line.peek(1) == "(":
            return {}
        name = self.output_name(line)
        line.expect("=")
        return {"Out": (name,)}

    def output(self, line: _Line) -> tuple[str, tuple[str, ...]]:
        name = line.name("an output slot")
        line.expect("=")
        return name, self.slot(line, declare=True)

    def slot(self, line: _Line, declare: bool) -> tuple[str, ...]:
        item = (lambda: self.output_name(line)) if declare else (lambda: line.name("a variable"))
        return line.listed("]", item) if line.accept("[") else (item(),)

    def output_name(self, line: _Line) -> str:
        name = line.name("a variable or an op")
        if line.peek() == ":":
            self.declare(line, name, "var")
        return name

    def brace(self, line: _Line, quiet: dict[str, Any]) -> None:
        if line.accept("-"):
            name = line.name("an attribute")
            if name not in quiet:
                line.at -= 1
                line.fail("an attribute that the hints give to this op")
            del quiet[name]
        elif line.peek() == "uid" and line.kind() == "name":
            line.at += 1
            line.expect("=")
            self.uid = line.integer("a uid")
        else:
            name, value = self.quiet(line)
            quiet[name] = value

    def quiet(self, line: _Line) -> tuple[str, Any]:
        """An attribute in braces or in the hints; role and var have spellings of their own."""
        plain = line.kind() == "name"
        name = line.name("an attribute")
        line.expect("=")
        if plain and name == "role":
            return "op_role", self.role(line)
        if plain and name == "var":
            line.expect("(")
            return "op_role_var", line.listed(")", lambda: line.name("a variable"))
        return name, line.value()

    def role(self, line: _Line) -> int:
        value = 0
        while True:
            if line.peek() not in ROLES and line.peek() != FORWARD:
                line.fail(f"a role (Forward, {', '.join(ROLES)})")
            value |= ROLES.get(line.name(), 0)
            if not line.accept("|"):
                return value

    def callstack(self, line: _Line) -> None:
        line.expect("block")
        idx = line.integer()
        line.expect("op")
        at = line.integer()
        if not (0 <= idx < len(self.ops) and 0 <= at < len(self.ops[idx])):
            line.at = 0
            line.fail("an op that is there")
        line.expect(":")
        op = self.ops[idx][at]
        stack = line.value()
        self.ops[idx][at] = replace(
            op, attrs=op.attrs.set(op_callstack=stack), loc=user_line(stack)
        )
        line.end()

    def finish(self) -> ProgramDesc:
        if self.seed is None:
            raise ParseError("line 1: expected 'program seed=N', but the text is empty")
        if not self.blocks:
            raise ParseError("expected 'block 0:', but the text ends")
        rows = zip(self.blocks, self.vars, self.ops, strict=True)
        return ProgramDesc(
            tuple(replace(b, vars=FrozenMap(v), ops=tuple(o)) for b, v, o in rows), self.seed
        )
