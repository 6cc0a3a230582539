"""The exceptions that fluidjax raises on purpose.

All derive from :class:`FluidError`; most also derive from the builtin exception that Paddle raises
in the same situation, so that ``except ValueError`` in an old script keeps working.
"""

from __future__ import annotations

import re

# characters of a word that no sentence has: a name or a list from a damaged file
_LONG = re.compile(r"\S{400,}")


class FluidError(Exception):
    """Base of every error that fluidjax raises on purpose. Words that are too long to read are cut
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
    these, ValueError for others, and AssertionError for the rest.
    """


class EnforceNotMet(FluidError, RuntimeError):
    """A condition that must hold when a program runs does not (Paddle's name for it). of_values: it
    is about a value that a step computed, so the step could be traced with these feeds.
    """

    of_values = False


class UnknownOpError(FluidValueError):
    """An op type or attribute that the registry does not have."""


class ShapeError(FluidValueError, EnforceNotMet, AssertionError):
    """Shapes or dtypes that an op or a layer refuses while the program is built; Paddle raises any
    of these three.
    """


class OutOfRangeError(ShapeError, IndexError):
    """A list without elements where a layer needs one, or an axis that a variable lacks."""


class VerifyError(FluidValueError):
    """A program that is not well formed."""


class PassError(FluidError, RuntimeError):
    """A pass that broke the program, or a promise that passes make."""


class TraceError(FluidValueError):
    """A JAX function that cannot be read as a program."""


class ParseError(FluidValueError, EnforceNotMet):
    """Text or bytes that do not hold a program."""


class MissingFileError(FluidValueError, EnforceNotMet, AssertionError, FileNotFoundError):
    """A missing file or folder of saved values; Paddle raises any of these four."""


class LoadError(EnforceNotMet, AssertionError):
    """Saved values that do not fit the program: missing, unexpected, of another shape or dtype."""


class FeedError(FluidValueError, EnforceNotMet, AssertionError):
    """A feed that is missing, misnamed, or of the wrong dtype, shape or range."""


class FetchError(FluidValueError, EnforceNotMet):
    """A fetch target that the program does not have."""


class NanInfError(EnforceNotMet):
    """A NaN or infinity found under FLAGS_check_nan_inf."""


class ReaderError(EnforceNotMet):
    """An error of a user's reader, raised at the use of its batches; the reader's error is the
    cause.
    """


class OneTableError(FluidValueError, RuntimeError):
    """Distributed lookups of more than one table."""


class UnknownEndpointError(FluidValueError, KeyError):
    """An endpoint that a job does not have."""

    __str__ = Exception.__str__  # KeyError would show a repr


class UnsupportedError(FluidError, NotImplementedError):
    """Something that Fluid had and fluidjax does not support; the text says what to use instead."""


class JobError(FluidError, RuntimeError):
    """A job of several processes that cannot start, or whose processes disagree."""


class NotOneStep(UnsupportedError):
    """An op that one traced step cannot run; Executor.run then drives the program from Python,
    segment by segment.

    uid: of that op, once it is known. counts: a bound of the number of iterations would help.
    """

    def __init__(self, text: str, counts: bool = False) -> None:
        super().__init__(text)
        self.uid: int | None = None
        self.counts = counts


class MixesRows(NotOneStep):
    """An op would process padded rows of a ragged value; it needs exact sizes (docs/lod.md)."""


def near(name: str, known: object, cutoff: float = 0.6) -> str:
    """``" (did you mean 'a' or 'b'?)"``, or an empty string when nothing in `known` resembles
    `name`.

    cutoff: the least similarity, from 0 to 1.
    """
    import difflib

    found = difflib.get_close_matches(name, list(known), n=3, cutoff=cutoff)  # type: ignore[call-overload]
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""


def note(exc: BaseException, text: str) -> BaseException:
    """Attach `text` to `exc`, once, and return it; words that are too long are cut."""
    text = shortened(text)
    if text not in getattr(exc, "__notes__", ()):
        exc.add_note(text)
    return exc
