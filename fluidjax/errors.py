"""The exceptions that fluidjax raises on purpose.

All derive from :class:`FluidError`; most also derive from the builtin exception that Paddle raises
in the same situation, so that ``except ValueError`` in an old script keeps working.
"""

from __future__ import annotations

import re

_LONG = re.compile(r"\S{400,}")  # a word that no sentence has: a name or a list from a damaged file


class FluidError(Exception):
    """Base of every error that fluidjax raises on purpose. A word that is too long to read is cut
    in its message.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(arg) if isinstance(arg, str) else arg for arg in args))


def shortened(text: str) -> str:
    """`text` with the beginnings and ends of words that are too long to read."""
    return (
        _LONG.sub(lambda found: f"{found.group()[:100]}...{found.group()[-20:]}", text)
        if len(text) >= 400
        else text
    )


class FluidValueError(FluidError, ValueError):
    """A value that does not fit: a shape, a name, an attribute."""


class FluidTypeError(FluidError, TypeError):
    """An argument of the wrong Python type."""


class ArgumentError(FluidTypeError, FluidValueError, AssertionError):
    """An argument of another kind than the function takes: Paddle raises TypeError for some of
    them, ValueError for others, and asserts the rest.
    """


class EnforceNotMet(FluidError, RuntimeError):
    """A condition that must hold when a program runs does not (Paddle's name for it)."""


class UnknownOpError(FluidValueError):
    """An op type or attribute that the registry does not have."""


class ShapeError(FluidValueError, EnforceNotMet):
    """Shapes or dtypes that an op refuses while the program is built."""


class VerifyError(FluidValueError):
    """A program that is not well formed."""


class PassError(FluidError, RuntimeError):
    """A pass that broke the program, or a promise that passes make."""


class TraceError(FluidValueError):
    """A JAX function that cannot be read as a program."""


class ParseError(FluidValueError):
    """Text or bytes that do not hold a program."""


class MissingFileError(FluidValueError, EnforceNotMet, AssertionError, FileNotFoundError):
    """A file or folder of saved values that is not there; Paddle raises any of these four."""


class LoadError(FluidError, RuntimeError, AssertionError):
    """Saved values that do not fit the program: missing, unexpected, of another shape or dtype."""


class FeedError(FluidValueError, EnforceNotMet, AssertionError):
    """A feed that is missing, misnamed, or of the wrong dtype, shape or range."""


class FetchError(FluidValueError, EnforceNotMet):
    """A fetch target that the program does not have."""


class NanInfError(EnforceNotMet):
    """A NaN or infinity found under FLAGS_check_nan_inf."""


class ReaderError(EnforceNotMet):
    """What a user's reader raised, which is the cause, where its batches are used."""


class OneTableError(FluidValueError, RuntimeError):
    """Distributed lookups of more than one table."""


class UnknownEndpointError(FluidValueError, KeyError):
    """An endpoint that a job does not have."""

    __str__ = Exception.__str__  # KeyError's shows a repr


class UnsupportedError(FluidError, NotImplementedError):
    """Something that Fluid had and fluidjax does not do; the text says what to use instead."""


class JobError(FluidError, RuntimeError):
    """A job of several processes that cannot start, or whose processes disagree."""


class NotOneStep(UnsupportedError):
    """One traced step cannot do this; Executor.run drives the program from Python then, segment by
    segment.

    uid: of the op that is to blame, once it is known. counts: a bound of how often a loop runs
    would do.
    """

    def __init__(self, text: str, counts: bool = False) -> None:
        super().__init__(text)
        self.uid: int | None = None
        self.counts = counts


class MixesRows(NotOneStep):
    """An op would see padded rows of a ragged value and not leave them out; it needs exact sizes
    (docs/lod.md).
    """


def near(name: str, known: object, cutoff: float = 0.6) -> str:
    """``" (did you mean 'a' or 'b'?)"``, or an empty string when nothing in `known` resembles
    `name`.

    cutoff: how similar they must be, from 0 to 1.
    """
    import difflib

    found = difflib.get_close_matches(name, list(known), n=3, cutoff=cutoff)  # type: ignore[call-overload]
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""


def note(exc: BaseException, text: str) -> BaseException:
    """Attach `text` to `exc`, once, and return it; too long words of it are cut."""
    text = shortened(text)
    if text not in getattr(exc, "__notes__", ()):
        exc.add_note(text)
    return exc
