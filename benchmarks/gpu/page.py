"""The results as tables on docs/gpu.md: ``python -m benchmarks.gpu.page RESULTS.jsonl...``, of
which later files count more.

A later file tells of some cases anew; what it does not tell of stays. docs/gpu.json keeps the
figures; a table of a name takes the place of the one before. Each says when, on what and with which
versions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..page import DOCS, Measured, Table, keep
from ..scripts import MARKS
from .records import Found, Records

PAGE, FIGURES = DOCS / "gpu.md", DOCS / "gpu.json"
Rows = list[tuple[str, ...]]


def _number(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _of(found: Sequence[Found], case: str) -> list[Found]:
    return [r for r in found if r["case"] == case]


def _sides(records: Iterable[Found]) -> dict[str, Found]:
    """What a case says of each of its sides, in all of its findings."""
    rows: dict[str, Found] = {}
    for record in records:
        for name, row in record.get("sides", {}).items():
            rows.setdefault(name, {}).update(row)
    return rows


def roofline(found: Sequence[Found]) -> Rows:
    return [
        (k, _number(r[k]))
        for r in _of(found, "roofline")
        for k in r
        if k.endswith(("tflops", "tb_s"))
    ]


def _peak(found: Sequence[Found], case: str) -> float | None:
    """Teraflops that the products of a case can have."""
    kind = "bf16 tflops" if "bf16" in case else "f32 tflops"
    return next((r[kind] for r in _of(found, "roofline") if kind in r), None)


def training(found: Sequence[Found]) -> Rows:
    rows: Rows = []
    for case in (
        "resnet50 f32",
        "resnet50 bf16",
        "transformer f32",
        "transformer bf16",
        "recommender",
        "lstm",
        "mlp",
        "lenet",
    ):
        records = _of(found, case)
        gflop = next((r["gflop"] for r in records if r.get("gflop")), None)
        peak = _peak(found, case)
        hosts = next((r["fed from NumPy"] for r in records if "fed from NumPy" in r), {})
        for name, s in _sides(records).items():
            if "ms" not in s:
                continue
            share = f"{100 * gflop / s['ms'] / peak:.0f} %" if gflop and peak else ""
            host = _number(hosts[name]["ms"]) if name in hosts else ""
            cells = s["ms"], s["ratio"], s.get("samples_a_second")
            rows.append(
                (
                    case,
                    name,
                    *map(_number, cells),
                    share,
                    host,
                    _number(s.get("first_s")),
                    _number(s.get("total_mb")),
                )
            )
    return rows


def dispatch(found: Sequence[Found]) -> Rows:
    return [(r["feed"], *(_number(r["us"][n]) for n in ("Executor.run", "bare call", "fetched as NumPy")), _number(r["added_us"]))
            for r in _of(found, "tiny net") if "us" in r]  # fmt: skip


def pieces(found: Sequence[Found]) -> Rows:
    return [
        (r["piece"], *(_number(v) for v in r["ms"].values()), _number(r["ratio"]))
        for r in _of(found, "pieces")
        if "piece" in r
    ]


def inference(found: Sequence[Found]) -> Rows:
    rows: Rows = []
    for r in _of(found, "predict resnet50"):
        rows += [
            ("ResNet-50", str(r["batch"]), n, _number(s["ms"]), _number(s["ratio"]))
            for n, s in r.get("sides", {}).items()
            if "ms" in s
        ]
    for r in _of(found, "predict ocr"):
        if "model" in r:
            rows += [
                (
                    f"PP-OCR {r['model']}",
                    "x".join(map(str, r["shape"])),
                    n,
                    _number(s["ms"]),
                    _number(s["ratio"]),
                )
                for n, s in r["sides"].items()
            ]
    return rows


def curves(found: Sequence[Found]) -> Rows:
    rows: Rows = []
    for case in ("curve resnet50", "curve transformer"):
        for name, s in _sides(_of(found, case)).items():
            cells = (
                s.get("temporaries_mb"),
                s.get("total_mb"),
                s.get("peak_mb"),
                s.get("ms"),
                s.get("ratio"),
            )
            rows.append((case.removeprefix("curve "), name, *map(_number, cells)))
    return rows


def whole_scripts(found: Sequence[Found]) -> Rows:
    return [
        (r["net"], r["kind"], *(_number(r["wall_s"].get(mark)) for mark in MARKS))
        for r in _of(found, "whole scripts")
        if "net" in r
    ]


def tests(found: Sequence[Found]) -> Rows:
    """By file: how many passed, and what did not."""
    counts: dict[str, dict[str, int]] = {}
    for r in _of(found, "tests"):
        if "outcome" in r:
            file = counts.setdefault(r["test"].partition(":")[0], {})
            file[r["outcome"]] = file.get(r["outcome"], 0) + 1
    return [
        (file, *(str(c.get(o, 0)) for o in ("passed", "failed", "skipped")))
        for file, c in sorted(counts.items())
    ]


TABLES: dict[str, tuple[str, tuple[str, ...], Callable[[Sequence[Found]], Rows]]] = {
    "a tests": ("Tests on the GPU, against the CPU beside it", ("file", "passed", "failed", "skipped"), tests),
    "b roofline": ("What the card does: square products of 8,192, and a copy (bytes read and written)", ("", "measured"), roofline),
    "c training": (
        "Training steps, fed from the device; ratio: to flax's, the median of turns; share: of the product's rate above",
        ("net", "side", "ms", "ratio", "samples a second", "share", "ms, fed from NumPy and waited for", "first step, s", "MB"), training,
    ),
    "d dispatch": (
        "A call of fit-a-line, microseconds",
        ("fed from", "Executor.run", "bare call", "fetched as NumPy", "added by Executor.run"), dispatch,
    ),
    "e single ops": ("Single ops with their gradients, ms", ("op", "ours", "plain JAX", "ratio"), pieces),
    "f inference": ("Predictions", ("model", "batch or shape", "side", "ms", "ratio"), inference),
    "g memory": (
        "Time against memory of a training step, MB; peak: the device's count up to then",
        ("net", "side", "temporaries", "total", "peak", "ms", "ratio"), curves,
    ),
    "h scripts": (
        "Whole scripts, seconds by the clock from the start of the process to step n; the second run finds what the first compiled",
        ("net", "side", *MARKS), whole_scripts,
    ),
}  # fmt: skip


def merged(runs: Sequence[Sequence[Found]]) -> list[Found]:
    """The findings of several runs on a machine: how each test went last, and of each case those of
    the last run in which all went well.
    """
    tests: dict[str, Found] = {}
    cases: dict[str, list[Found]] = {}
    for found in runs:
        tests.update((r["test"], r) for r in _of(found, "tests") if "outcome" in r)
        for case in {r["case"]: None for r in found if r["case"] != "tests"}:
            records = _of(found, case)
            if case not in cases or not any("failed" in r or "cut" in r for r in records):
                cases[case] = records
    return [*tests.values(), *(r for each in cases.values() for r in each)]


def measured(runs: Sequence[Sequence[Found]]) -> Iterator[tuple[str, Measured]]:
    """The tables that the findings of these runs make, all on the same kind of machine."""
    found = merged(runs)
    machines = [
        m
        for each in runs
        if (m := next((r for r in each if r["case"] == "machine" and "device" in r), {}))
    ]
    if any(_described(m) != _described(machines[0]) for m in machines):
        raise ValueError(
            "runs on different machines, or with different versions, do not go into one table"
        )
    machine = machines[0] if machines else {}
    run = next(r for r in found if r["case"] == "run")
    starts = [next(r["at"] for r in each if r["case"] == "run") for each in runs]
    when = " and ".join(datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") for at in starts)
    where = f"{machine.get('device', 'an unknown device')}, {machine.get('cores', '?')} cores"
    where += " (a rehearsal)" if run["rehearsal"] else ""
    versions = (
        f"Python {machine.get('python', '?')}",
        *(f"{n} {v}" for n, v in machine.get("versions", {}).items()),
    )
    for name, (title, columns, make) in TABLES.items():
        if rows := make(found):
            yield name, Measured(when, where, versions, Table(name, title, columns, tuple(rows)))


def _described(machine: Found) -> Any:
    return machine.get("device"), machine.get("python"), machine.get("versions")


def main(*files: str, page: Path = PAGE, figures: Path = FIGURES) -> None:
    keep(dict(measured([list(Records(Path(file)).read()) for file in files])), figures, page)


if __name__ == "__main__":
    main(*sys.argv[1:])
