"""docs/compatibility.md says of every public name of Paddle whether it is there, and is what the
code makes it.

After a change of names or arguments: make api (or: python -m tests.test_compatibility). The page
names for each name that is there a recording of Paddle or a test that calls it; these are looked up
when it is written, and checked here.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from fluidjax.compat import compare, recorded
from fluidjax.compat.compare import ABSENT, DIFFERENT, THERE, Standing

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
INDEX = json.loads((Path(__file__).parent / "data" / "api_index.json").read_text())
# how tests write the names of a module
WRITTEN = {
    "paddle.fluid.layers": r"(?:L|layers|fluid\.layers)",
    "paddle.fluid": r"fluid",
    "paddle": r"paddle",
    "paddle.nn.functional": r"(?:F|functional)",
    "paddle.vision.transforms": r"(?:T|transforms)",
}
HEAD = "\n\n".join((
    "# Compatibility",
    "Every public name of Paddle 1.8.5's static graph and of what Paddle 2 has in static mode outside of `paddle.fluid` (recorded "
    "from 2.6.2), beside what is here. This page is written by `make api`, and a test fails when it is stale. "
    '`fluid.compat_report("train.py")`, or `python -m fluidjax compat train.py`, says the same of the names in a script, with '
    "lines, without running it.",
    "A name is exact where it takes Paddle's arguments in Paddle's order with Paddle's defaults (more may follow) and a class has "
    "Paddle's methods; beside it stands the recording of Paddle or the test that calls it. The layers, optimizers, readers and "
    "collections of dynamic mode (`paddle.fluid.dygraph`) are not counted, nor are methods of dynamic mode and of sparse tensors.",
    "",
))  # fmt: skip


def paths() -> Iterator[tuple[str, str]]:
    """(module, name) of everything recorded, and of what the index has besides."""
    seen = set()
    for version in (recorded.FLUID, recorded.LATER):
        for module, rows in recorded.modules(version).items():
            for name in rows:
                if (module, name) not in seen:
                    seen.add((module, name))
                    yield module, name


@cache
def standings() -> Mapping[str, Standing]:
    known = {f"{m}.{n}" for m, n in paths()} | {
        f"{m}.{n}" for m, names in INDEX.items() for n in names.split()
    }
    return {path: compare.standing(path) for path in sorted(known)}


def page(shown_by: Mapping[str, str]) -> str:
    """The page. shown_by: dotted name -> the file of tests that shows it."""
    parts = [HEAD, *sums()]
    modules = defaultdict(list)
    for path in standings():
        modules[path.rpartition(".")[0]].append(path)
    for module in sorted(modules):
        parts += section(module, modules[module], shown_by)
    return "\n".join(parts)


def sums() -> Iterator[str]:
    yield "| names | in all | exact | different | absent |\n| --- | ---: | ---: | ---: | ---: |"
    groups = {
        "Paddle 1.8.5": [
            f"{m}.{n}" for m, rows in recorded.modules(recorded.FLUID).items() for n in rows
        ],
        "Paddle 2": [
            f"{m}.{n}" for m, rows in recorded.modules(recorded.LATER).items() for n in rows
        ],
        "the API index": [f"{m}.{n}" for m, names in INDEX.items() for n in names.split()],
    }
    for title, names in groups.items():
        count = Counter(standings()[n].status for n in names)
        yield f"| {title} | {len(names)} | {count[THERE]} | {count[DIFFERENT]} | {count[ABSENT]} |"
    yield ""


def section(module: str, names: list[str], shown_by: Mapping[str, str]) -> Iterator[str]:
    by = {
        status: [n for n in names if standings()[n].status == status]
        for status in (THERE, DIFFERENT, ABSENT)
    }
    yield (
        f"## {module}\n\n{len(by[THERE])} exact, {len(by[DIFFERENT])} different, {len(by[ABSENT])}"
        " absent.\n"
    )
    shows = defaultdict(list)
    for n in by[THERE]:
        shows[shown_by.get(n, "")].append(n)
    for file in sorted(shows, key=lambda f: (not f, f)):
        yield (
            f"- Exact, {f'`{file}`' if file else 'called by no test under this name'}:"
            f" {short(shows[file])}"
        )
    for n in by[DIFFERENT]:
        yield f"- Different: `{last(n)}` {standings()[n].reason}" + (
            f" (`{shown_by[n]}`)" if n in shown_by else ""
        )
    reasons = defaultdict(list)
    for n in by[ABSENT]:
        reasons[standings()[n].reason].append(n)
    for told in sorted(reasons, key=lambda t: (not t, t)):
        yield f"- Absent: {short(reasons[told])}" + (f": {told}" if told else "")
    yield ""


def last(path: str) -> str:
    return path.rpartition(".")[2]


def short(names: list[str]) -> str:
    return " ".join(f"`{last(n)}`" for n in sorted(names))


# -- what shows a name -----------------------------------------------------------------------------


RECORDED_LAYERS = "tests/data/layers_1.8.5.json"
SHIM = ("tests/paddle/test_paddle_shim.py", "tests/paddle/")


@cache
def named(file: str, module: str) -> frozenset[str]:
    """The names of a module of Paddle's that a file of tests uses."""
    path = ROOT / ("tests/layers/cases.py" if file == RECORDED_LAYERS else file)
    written = (
        WRITTEN.get(module)
        or rf"(?:{re.escape(module.removeprefix('paddle.'))}|{re.escape(last(module))})"
    )
    if file.startswith(SHIM) and module == "paddle":
        written = "(?:p|paddle)"
    return frozenset(re.findall(rf"\b{written}\.(\w+)\b", source(path)))


@cache
def source(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def shows(file: str, path: str) -> bool:
    return last(path) in named(file, path.rpartition(".")[0])


def found() -> dict[str, str]:
    """For each name that is there the first file of tests that shows it; recordings of Paddle come
    first.
    """
    files = sorted(
        str(p.relative_to(ROOT))
        for p in (ROOT / "tests").rglob("*.py")
        if p.name != Path(__file__).name
    )
    files = [
        RECORDED_LAYERS,
        *sorted(files, key=lambda f: (not f.startswith(SHIM), "tools" in f, f)),
    ]
    there = [path for path, (status, _) in standings().items() if status != ABSENT]
    return {
        path: file
        for path in there
        for file in [next((f for f in files if shows(f, path)), None)]
        if file
    }


def told() -> dict[str, str]:
    """What the page says shows each name."""
    result, module = {}, ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            module = line[3:]
        elif match := re.match(r"- Exact, `([^`]+)`: (.*)", line):
            result |= {f"{module}.{n}": match[1] for n in re.findall(r"`(\w+)`", match[2])}
        elif match := re.match(r"- Different: `(\w+)` .*\(`(tests/[^`]+)`\)$", line):
            result[f"{module}.{match[1]}"] = match[2]
    return result


def write() -> None:
    PAGE.write_text(page(found()))


def test_the_page_is_what_the_code_makes_it():
    shown_by = told()
    assert PAGE.read_text().splitlines() == page(shown_by).splitlines(), (
        "docs/compatibility.md is stale: make api"
    )
    assert not [path for path, file in shown_by.items() if not shows(file, path)], (
        "gone from these tests: make api"
    )


if __name__ == "__main__":
    write()
    print(*sums(), sep="\n")
