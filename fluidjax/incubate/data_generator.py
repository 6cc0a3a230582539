"""Programs that convert text to lines of slots, for a dataset's pipe command.

This module needs only Python's standard library, so that such a program, which is started for every
file, starts quickly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Samples = Callable[[], Iterable[Any]]


class DataGenerator:
    """Reads lines, makes samples from each, and writes them as lines of slots. Override
    generate_sample.
    """

    def __init__(self) -> None:
        self._proto_info: list[tuple[str, str]] | None = None
        self.batch_size_ = 32

    def _set_line_limit(self, line_limit: int) -> None:
        if not isinstance(line_limit, int) or line_limit < 1:
            raise ValueError(f"a limit of lines is a whole number from 1, not {line_limit!r}")
        self._line_limit = line_limit

    def set_batch(self, batch_size: int) -> None:
        """The number of samples that generate_batch gets at once; default 32."""
        self.batch_size_ = batch_size

    def run_from_memory(self) -> None:
        """Write the samples that ``generate_sample(None)`` makes to stdout."""
        self._write(self.generate_sample(None)())

    def run_from_stdin(self) -> None:
        """Write the samples that generate_sample makes of each line of stdin to stdout."""
        self._write(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def _write(self, samples: Iterable[Any]) -> None:
        for batch in self._batches(samples):
            for sample in self.generate_batch(batch)():
                sys.stdout.write(self._gen_str(sample))

    def _batches(self, samples: Iterable[Any]) -> Iterator[list[Any]]:
        batch = []
        for sample in samples:
            if sample is None:
                continue
            batch.append(sample)
            if len(batch) == self.batch_size_:
                yield batch
                batch = []
        if batch:
            yield batch

    def _gen_str(self, line: Any) -> str:
        """The line of a sample."""
        raise NotImplementedError(
            "use MultiSlotDataGenerator or MultiSlotStringDataGenerator, which know how a line is"
            " written"
        )

    def generate_sample(self, line: str | None) -> Samples:
        """A function that gives the samples of a line: lists or tuples of (name, values). None is
        left out.
        """
        raise NotImplementedError(
            "generate_sample(line) is to return a function that yields samples such as [(name,"
            " [value, ...]), ...]"
        )

    def generate_batch(self, samples: list[Any]) -> Samples:
        """A function that gives the samples to write in place of these; by default the samples
        themselves.
        """

        def same() -> Iterator[Any]:
            yield from samples

        return same


class MultiSlotStringDataGenerator(DataGenerator):
    """For samples whose values are strings, written as they are."""

    def _gen_str(self, line: Any) -> str:
        return " ".join(" ".join([str(len(values)), *values]) for _, values in _fields(line)) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """For samples whose values are numbers. Raises ValueError if a sample's fields differ from
    those of the first sample.
    """

    def _gen_str(self, line: Any) -> str:
        fields = list(_fields(line))
        for name, values in fields:
            _check(name, values)
        known = self._proto_info
        if known is None:
            known = self._proto_info = [(name, "uint64") for name, _ in fields]
        if len(fields) != len(known):
            raise ValueError(
                f"the first sample had {len(known)} fields, this one has {len(fields)}: {line!r}"
            )
        for i, (name, values) in enumerate(fields):
            if name != known[i][0]:
                raise ValueError(
                    f"field {i} of the first sample is {known[i][0]!r}, of this one {name!r}:"
                    f" {line!r}"
                )
            if any(isinstance(value, float) for value in values):
                known[i] = (name, "float")
        return " ".join(" ".join(map(str, [len(values), *values])) for _, values in fields) + "\n"


def _fields(line: Any) -> Iterable[Any]:
    if not isinstance(line, list | tuple):
        raise ValueError(
            f"a sample is a list or tuple of (name, values), not {type(line).__name__}: {line!r}"
        )
    return line


def _check(name: Any, values: Any) -> None:
    if not isinstance(name, str):
        raise ValueError(f"the name of a field is a string, not {name!r}")
    if not isinstance(values, list):
        raise ValueError(f"the values of field {name!r} are a list, not {type(values).__name__}")
    if not values:
        raise ValueError(
            f"field {name!r} has no values, which a line cannot express; give it one value that "
            "stands for none"
        )
    for value in values:
        if not isinstance(value, int | float):
            raise ValueError(
                f"the values of field {name!r} are whole numbers or floats, not {value!r}"
            )


__all__ = ["MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]
