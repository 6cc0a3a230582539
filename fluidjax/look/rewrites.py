"""The result of a pass as HTML: counts, rewrites and refusals, certificates, the two programs side
by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..ir.desc import ProgramDesc
from .diff import ProgramDiff
from .frame import count, esc, fold, fragment, table


class Remark(Protocol):
    """A Note of passes/base.py."""

    @property
    def op(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def loc(self) -> str | None: ...
    @property
    def refused(self) -> bool: ...


class Result(Protocol):
    """A PassResult of passes/base.py."""

    @property
    def title(self) -> str: ...
    @property
    def before(self) -> ProgramDesc: ...
    @property
    def desc(self) -> ProgramDesc: ...
    @property
    def notes(self) -> Sequence[Remark]: ...
    @property
    def certificate(self) -> Any: ...
    @property
    def changed(self) -> bool: ...
    @property
    def seconds(self) -> float: ...
    @property
    def parts(self) -> Sequence[Result]: ...


def result_html(result: Result) -> str:
    """A pass's result; for a pipeline the passes as folds, and one comparison of the first program
    with the last.
    """
    inner = f"<p>{_head(result)}</p>{_inside(result)}"
    if result.changed:
        diff = ProgramDiff(result.before, result.desc)
        inner += fold(
            "<b>difference</b>, side by side",
            diff.html(),
            is_open=not result.notes and not result.parts,
        )
    return fragment(inner, script=False)


def certificate_html(certificate: Any) -> str:
    """A certificate: the formula of every fold with its measured error, and the reasons of
    refusals.
    """
    return fragment(
        _certificate(certificate) + _remarks("refused", certificate.refusals), script=False
    )


def _head(result: Result) -> str:
    refused = sum(n.refused for n in result.notes)
    notes = (
        f"; {count(len(result.notes) - refused, 'note')}, {refused:,} refused"
        if result.notes
        else ""
    )
    return (
        f"<b>{esc(result.title)}</b>: {'changed' if result.changed else 'no change'},"
        f" {result.seconds * 1e3:.1f} ms{notes}"
    )


def _inside(result: Result) -> str:
    if result.parts:
        return "".join(
            fold(_head(part), _inside(part) or "<p>Nothing to tell.</p>") for part in result.parts
        )
    proof = "" if result.certificate is None else _certificate(result.certificate)
    done = [n for n in result.notes if not n.refused]
    refused = [n for n in result.notes if n.refused]
    return proof + _remarks("done", done) + _remarks("refused", refused)


def _remarks(title: str, notes: Iterable[Remark]) -> str:
    rows = [(n.op, n.what, n.loc or "") for n in notes]
    return (
        table(rows, ("op", "what" if title == "done" else "why", "line"), caption=title)
        if rows
        else ""
    )


def _certificate(certificate: Any) -> str:
    worst = certificate.max_error
    head = f"{certificate.title}: {len(certificate.folds)} folded" + (
        "" if worst is None else f", largest relative error {worst:.1e}"
    )
    rows = [
        (
            f.layer,
            f.result,
            f.formula,
            "not measured" if f.error is None else str(f.error),
            f.loc or "",
        )
        for f in certificate.folds
    ]
    return (
        table(rows, ("ops", "result", "formula", "error", "line"), caption=head)
        if rows
        else f"<p>{esc(head)}</p>"
    )
