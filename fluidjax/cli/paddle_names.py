"""``import paddle`` means fluidjax: an import hook, in force within :func:`in_paddles_place`.

``paddle.fluid`` is this package itself, ``paddle.fluid.x`` its module ``fluidjax.x``; ``paddle`` and every other
``paddle.x`` come from ``fluidjax.paddle``. The modules are the real ones under a second name, not copies.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from ..errors import near

OURS = __package__.split(".")[0]


def real_name(name: str) -> str:
    """The module that stands behind ``paddle``, ``paddle.x`` or ``paddle.fluid.x``."""
    if name == "paddle.fluid" or name.startswith("paddle.fluid."):
        return OURS + name.removeprefix("paddle.fluid")
    return f"{OURS}.{name}"


class _Alias(Loader):
    def __init__(self, target: ModuleType) -> None:
        self._target = target
        self._spec = target.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._target

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the alias's there


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".")[0] != "paddle":
            return None
        wanted = real_name(fullname)
        try:
            module = import_module(wanted)
        except ModuleNotFoundError as exc:
            if exc.name is None or not (wanted + ".").startswith(exc.name + "."):
                raise  # a dependency of the module is missing, not the module
            raise ModuleNotFoundError(_missing(fullname), name=fullname) from None
        return ModuleSpec(fullname, _Alias(module), is_package=hasattr(module, "__path__"))


def _missing(fullname: str) -> str:
    parent, _, last = fullname.rpartition(".")
    if not parent:
        return f"fluidjax has no module that stands for {fullname!r}"
    package = sys.modules.get(real_name(parent))
    known = {p.stem for folder in getattr(package, "__path__", ()) for p in Path(folder).glob("[a-z]*")}
    return f"fluidjax has no module {fullname!r}{near(last, known)}"


@contextlib.contextmanager
def in_paddles_place() -> Iterator[None]:
    """Within the block, ``import paddle`` and everything below it finds fluidjax, even where Paddle is installed."""
    before = _forget()
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget()
        sys.modules.update(before)


def _forget() -> dict[str, ModuleType]:
    """Take everything called paddle out of sys.modules, and return it."""
    names = [n for n in sys.modules if n.split(".")[0] == "paddle"]
    return {n: sys.modules.pop(n) for n in names}
