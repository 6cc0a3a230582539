"""The environment that a script of Paddle's time expects: its folder, modules beside Paddle, and
NumPy's old names.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_BESIDE = Path(__file__).parent / "beside"
# NumPy's names that versions 1.20 to 2.0 removed, and their replacements
_PLAIN: dict[str, Any] = {
    "int": int,
    "float": float,
    "object": object,
    "str": str,
    "complex": complex,
    "long": int,
    "unicode": str,
}
_RENAMED = {
    "float_": "float64", "complex_": "complex128", "unicode_": "str_", "string_": "bytes_", "product": "prod", "cumproduct": "cumprod",
    "sometrue": "any", "alltrue": "all", "row_stack": "vstack", "in1d": "isin", "Inf": "inf", "Infinity": "inf", "infty": "inf",
    "NaN": "nan", "round_": "round", "trapz": "trapezoid", "bool8": "bool",
}  # fmt: skip
_MODULES_OF_TWO = {
    "cPickle": "pickle", "Queue": "queue", "ConfigParser": "configparser", "StringIO": "io", "cStringIO": "io", "urllib2": "urllib.request",
    "urlparse": "urllib.parse", "commands": "subprocess", "__builtin__": "builtins", "SocketServer": "socketserver",
    "httplib": "http.client", "exceptions": "builtins",
}  # fmt: skip
_NAMES_OF_TWO = {
    "xrange": "range", "unicode": "str", "raw_input": "input", "basestring": "str", "long": "int", "unichr": "chr", "file": "open",
    "reduce": "functools.reduce", "execfile": "exec(open(file).read())", "cmp": "(a > b) - (a < b)", "reload": "importlib.reload",
}  # fmt: skip
_METHODS_OF_TWO = {
    "iteritems": "items",
    "itervalues": "values",
    "iterkeys": "keys",
    "has_key": "in",
    "next": "next(it)",
}


@contextlib.contextmanager
def around(script: Path) -> Iterator[set[str]]:
    """Within the block, imports search the script's folder first, and the modules beside Paddle
    last.

    Gives the set of NumPy's old names that the script uses. At the end everything is restored;
    modules of the script's folder are dropped too.
    """
    import numpy

    folder = str(script.resolve().parent)
    path, before, used = sys.path[:], set(sys.modules), set[str]()
    sys.path[:] = [folder, *path, str(_BESIDE)]
    own = vars(numpy)["__getattr__"]
    vars(numpy)["__getattr__"] = _with_old_names(numpy, own, used)
    try:
        yield used
    finally:
        vars(numpy)["__getattr__"] = own
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if _is_below(sys.modules[name], folder) or _is_below(sys.modules[name], str(_BESIDE)):
                del sys.modules[name]


def _with_old_names(
    numpy: ModuleType, own: Callable[[str], Any], used: set[str]
) -> Callable[[str], Any]:
    """NumPy's ``__getattr__`` for missing names, extended by its old names."""

    def found(name: str) -> Any:
        if name not in _PLAIN and name not in _RENAMED:
            return own(name)
        used.add(name)
        return _PLAIN[name] if name in _PLAIN else getattr(numpy, _RENAMED[name])

    return found


def _is_below(module: ModuleType, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return (
        file is not None
        and "site-packages" not in file
        and Path(file).resolve().is_relative_to(folder)
    )


def stand_ins() -> list[str]:
    """The substitutes for modules beside Paddle that were imported."""
    return sorted(
        n for n, m in list(sys.modules.items()) if "." not in n and _is_below(m, str(_BESIDE))
    )


def leftover(error: BaseException) -> str | None:
    """The Python 3 replacement for something of Python 2 that an error is about; None for any other
    error.
    """
    if isinstance(error, SyntaxError):
        return _syntax_of_two(error)
    name = str(getattr(error, "name", None))
    if isinstance(error, ModuleNotFoundError) and name in _MODULES_OF_TWO:
        return f"{name} is a module of Python 2; Python 3 has it as {_MODULES_OF_TWO[name]}"
    if isinstance(error, NameError) and name in _NAMES_OF_TWO:
        return f"{name} is Python 2's; Python 3 has {_NAMES_OF_TWO[name]}"
    if (
        isinstance(error, AttributeError)
        and name in _METHODS_OF_TWO
        and not isinstance(error.obj, ModuleType)
    ):
        return f".{name} is Python 2's; Python 3 has {_METHODS_OF_TWO[name]}"
    return next(
        (text for pattern, text in _SAID_OF_VALUES.items() if re.search(pattern, str(error))), None
    )


_SAID_OF_TWO = (
    "Missing parentheses in call to", "multiple exception types must be parenthesized", "leading zeros in decimal",
    "Function parameters cannot be parenthesized",
)  # fmt: skip
_WRITTEN_IN_TWO = re.compile(r"^(print|exec|raise) |<>|`|\b[uU][rR][\"']|\b\d+[lL]\b")
# an error's text that shows that a script relies on Python 2 or an older NumPy -> the advice
_SAID_OF_VALUES = {
    r"^only 0-dimensional arrays can be converted to Python scalars":
        "NumPy 2.4 refuses float(), int() and % of an array of shape [1], which older ones took; what a run fetches still does it, and so "
        "does all under `pip install 'numpy<2.4'`, which the extra `scripts` of fluidjax asks for; else write .item()",
    r"^'(map|filter|zip|dict_keys|dict_values|dict_items)' object is not subscriptable|"
    r"^object of type '(map|filter|zip)' has no len|^'dict_(keys|values|items)' object has no attribute '(sort|append|index)'":
        "map, filter, zip and a dict's keys(), values() and items() give lists in Python 2; Python 3 has list(...) of them",
    r"^'range' object (does not support item assignment|has no attribute)|for \+: 'range' and|for \+: 'list' and 'range'":
        "range gives a list in Python 2; Python 3 has list(range(...))",
    r"for >>: 'builtin_function_or_method'": "print >>file, text is Python 2's; Python 3 has print(text, file=file)",
    r"^'cmp' is an invalid keyword": "cmp= is Python 2's; Python 3 has key=functools.cmp_to_key(...)",
    r"cannot import name '(izip|imap|ifilter)' from 'itertools'": "izip, imap and ifilter are Python 2's; Python 3 has zip, map and filter",
    r"^module 'string' has no attribute '(join|letters|lowercase|uppercase|maketrans|split|replace|atoi|atof)'":
        "functions of the module string are Python 2's; Python 3 has them as methods of texts, and letters as string.ascii_letters",
    r"^'float' object cannot be interpreted as an integer": "in Python 3 7 / 2 is 3.5; // divides whole numbers as / does in Python 2",
}  # fmt: skip


def _syntax_of_two(error: SyntaxError) -> str | None:
    line = (error.text or "").strip()
    of_two = any(said in str(error.msg) for said in _SAID_OF_TWO) or _WRITTEN_IN_TWO.search(line)
    if not of_two and not isinstance(error, TabError):
        return None
    return (
        f"{error.filename}:{error.lineno}: this line is Python 2; `2to3 -w {error.filename}`"
        " rewrites a file for Python 3"
    )


__all__ = ["around", "leftover", "stand_ins"]
