"""``fluid.compat_report``: reports, before a script runs, which names of Paddle it uses and which
of them are supported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ..errors import FluidTypeError, FluidValueError
from ..look.frame import esc, fragment, table
from ..look.shown import Shown
from ..paddle import names
from . import compare
from .compare import ABSENT, DIFFERENT, THERE
from .script import Mention, mentions


class Use(NamedTuple):
    """One name at one place. status: "there", "different" or "absent"; told: how it differs, or why
    it is absent.
    """

    name: str
    status: str
    file: str
    line: int
    told: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} is {self.status}" + (
            f": {self.told}" if self.told else ""
        )


@dataclass(frozen=True)
class CompatReport(Shown):
    """Every use of Paddle's names in a script, in order; str() and notebooks show those that are
    different or absent.

    unread: for a folder, a sentence for each file that could not be read.
    """

    uses: tuple[Use, ...]
    unread: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Use]:
        return iter(self.uses)

    def __len__(self) -> int:
        return len(self.uses)

    def of(self, status: str) -> tuple[Use, ...]:
        """The uses of one status."""
        return tuple(u for u in self.uses if u.status == status)

    @property
    def there(self) -> tuple[Use, ...]:
        return self.of(THERE)

    @property
    def different(self) -> tuple[Use, ...]:
        return self.of(DIFFERENT)

    @property
    def absent(self) -> tuple[Use, ...]:
        return self.of(ABSENT)

    def _head(self) -> str:
        sums = ", ".join(
            f"{len({u.name for u in self.of(s)})} {s}" for s in (THERE, DIFFERENT, ABSENT)
        )
        return (
            f"{len({u.name for u in self.uses})} names of Paddle in {len(self.uses)} places: {sums}"
        )

    def __str__(self) -> str:
        shown = [str(u) for status in (ABSENT, DIFFERENT) for u in self.of(status)]
        return "\n".join([self._head(), *shown, *self.not_read()])

    def not_read(self) -> list[str]:
        """Lines on the files that could not be read."""
        count = "1 file was" if len(self.unread) == 1 else f"{len(self.unread)} files were"
        return [f"{count} not read:", *self.unread] if self.unread else []

    __repr__ = __str__

    def _repr_html_(self) -> str:
        uses = [u for status in (ABSENT, DIFFERENT) for u in self.of(status)]
        rows = [(f"{u.file}:{u.line}", u.name, u.status, u.told) for u in uses]
        shown = table(rows, ("line", "name", "is", "how, or what instead")) if rows else ""
        unread = "".join(f"<p>{esc(line)}</p>" for line in self.not_read())
        return fragment(f"<p>{esc(self._head())}</p>{shown}{unread}", script=False)


def compat_report(script: str | Path | ModuleType) -> CompatReport:
    """Report which names of Paddle a script uses, and the status of each: there, different, or
    absent with a replacement.

        print(fluid.compat_report("train.py"))

    script: a file, a folder with .py files, or an imported module. The source is parsed, and never
    run. Aliases are followed (``import paddle.fluid as fluid``, ``from paddle.fluid.layers import
    fc``, ``layers = fluid.layers``), and the methods of what a class of Paddle's made (``exe =
    fluid.Executor(place)``). A name is different where its arguments or methods are not Paddle's
    1.8.5 (below ``paddle.fluid``) or 2.6.2, or where a call names an argument that it lacks.

    Of a folder, files that are not Python 3 or cannot be read are passed over, and listed at the
    end. Raises FluidTypeError for anything else, FluidValueError for a file that is not there or is
    not Python 3.
    """
    folder = isinstance(script, str | Path) and Path(script).is_dir()
    uses: list[Use] = []
    unread: list[str] = []
    for file in _files(script):
        try:
            uses += _uses(file)
        except FluidValueError as exc:
            if not folder:
                raise
            unread.append(str(exc))
    return CompatReport(tuple(uses), tuple(unread))


def _files(script: str | Path | ModuleType) -> list[Path]:
    if isinstance(script, ModuleType):
        if not getattr(script, "__file__", None):
            raise FluidValueError(f"module {script.__name__} has no file to read")
        return [Path(str(script.__file__))]
    if not isinstance(script, str | Path):
        raise FluidTypeError(f"compat_report takes a file, a folder or a module, not {script!r}")
    path = Path(script)
    if not path.exists():
        raise FluidValueError(f"there is no file {str(path)!r}")
    return sorted(p for p in path.rglob("*.py") if not p.is_dir()) if path.is_dir() else [path]


def _uses(file: Path) -> Iterator[Use]:
    try:
        source = file.read_bytes()
    except OSError as exc:
        raise FluidValueError(f"{str(file)!r} cannot be read: {exc.strerror}") from None
    for mention in mentions(source, str(file)):
        status, reason = _standing(mention)
        yield Use(mention.name, status, str(file), mention.line, reason)


@cache
def _of_name(path: str) -> compare.Standing:
    return compare.standing(path, methods=False)


def _standing(mention: Mention) -> compare.Standing:
    """How the name stands, and the call: an argument that ours lacks makes it different."""
    found = _of_name(mention.name)
    if found.status == ABSENT or not (mention.keywords or mention.positional):
        return found
    mine = compare.arguments(names.find(mention.name))
    if mine is None or any(n.startswith("**") for n, _ in mine):
        return found
    unknown = [k for k in mention.keywords if k not in dict(mine)]
    if unknown:
        return compare.Standing(DIFFERENT, f"takes no argument {', '.join(unknown)}")
    return found
