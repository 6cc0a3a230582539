"""DataFeeder: converts samples (tuples of numbers, lists and arrays) to the LoDTensors of a
feed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .base.dtypes import name_of
from .devices.place import CUDAPlace, as_place, cpu_places, cuda_places
from .errors import FeedError, FluidTypeError, FluidValueError
from .feeds.feeding import FeedRule, rule_for
from .graph.program import Program, default_main_program
from .graph.variable import Variable
from .lod_tensor import LoDTensor, as_tensor

Batches = Callable[[], Iterator[Any]]
Feed = dict[str, Any]


class DataFeeder:
    """Turns samples into feeds.

    feed_list: the fed variables (or their names, looked up in `program`, default the main program),
    in the order of a sample's fields. place: the device of the data; the executor moves it there.

    A field of a variable with lod_level 1 is a sequence (a list or array) of rows, with 2 a
    sequence of sequences, and so on.

    Raises FluidTypeError for something else in the list.
    """

    def __init__(
        self, feed_list: Sequence[Variable | str], place: Any, program: Program | None = None
    ) -> None:
        program = default_main_program() if program is None else program
        self.place = as_place(place)
        self._rules: list[FeedRule] = []
        for var in feed_list:
            var = program.block(0).var(var) if isinstance(var, str) else var
            self._rules.append(sample_rule(var))
        self.feed_names = [rule.name for rule in self._rules]

    def feed(self, iterable: Iterable[Sequence[Any]]) -> Feed:
        """LoDTensors by name from the samples of one batch; those of variables without a lod_level
        are arrays too.

        Samples are stacked (the rows of sequences packed) and converted exactly to the declared
        dtype; flat ones are reshaped to the declared shape. Raises FeedError, which names the
        variable, for samples that do not fit.
        """
        return {n: as_tensor(v) for n, v in stacked(self._rules, list(iterable)).items()}

    def feed_parallel(
        self, iterable: Sequence[Iterable[Any]], num_places: int | None = None
    ) -> Iterator[Feed]:
        """A feed for each batch in `iterable`, one for each device. Raises FluidValueError if their
        numbers differ.
        """
        count = self._places(num_places)
        if len(iterable) != count:
            raise FluidValueError(
                f"feed_parallel takes a batch for each device: there are {count} devices and"
                f" {len(iterable)} batches"
            )
        for batch in iterable:
            yield self.feed(batch)

    def decorate_reader(
        self,
        reader: Callable[[], Iterable[Any]],
        multi_devices: bool,
        num_places: int | None = None,
        drop_last: bool = True,
    ) -> Batches:
        """A reader of feeds from a reader of batches; with multi_devices, of lists with a feed for
        each device.

        Last batches that are fewer than the devices are dropped, or raise FluidValueError if not
        drop_last.
        """

        def feeds() -> Iterator[Feed]:
            for batch in reader():
                yield self.feed(batch)

        def groups() -> Iterator[list[Feed]]:
            count = self._places(num_places)
            group: list[Feed] = []
            for feed in feeds():
                group.append(feed)
                if len(group) == count:
                    yield group
                    group = []
            if group and not drop_last:
                raise FluidValueError(
                    f"{len(group)} batches remain for {count} devices; drop_last=True leaves"
                    " them out"
                )

        return groups if multi_devices else feeds

    def _places(self, num_places: int | None) -> int:
        if num_places is not None:
            return int(num_places)
        return len(cuda_places() if isinstance(self.place, CUDAPlace) else cpu_places())


def sample_rule(var: Any) -> FeedRule:
    """The requirements on one fed variable.

    Raises FluidTypeError if `var` is not a Variable.
    """
    if not isinstance(var, Variable):
        raise FluidTypeError(
            f"a feed list should contain a list of variables, not {type(var).__name__}"
        )
    return rule_for(var.desc)


def stacked(rules: Sequence[FeedRule], samples: Sequence[Sequence[Any]]) -> Feed:
    """A feed: for every rule, its field of all samples in one array. Raises FeedError for samples
    that do not fit.
    """
    for i, sample in enumerate(samples):
        if not isinstance(sample, tuple | list | np.ndarray):
            raise FeedError(
                f"sample {i} is a {type(sample).__name__}; it should be a tuple of {len(rules)}"
                f" fields: {_names(rules)}"
            )
        if len(sample) != len(rules):
            raise FeedError(
                f"the number of fields in data ({len(sample)}) does not match len(feed_list)"
                f" ({len(rules)}) in sample {i}: the fields are {_names(rules)}"
            )
    return {
        rule.name: _column(rule, [sample[k] for sample in samples]) for k, rule in enumerate(rules)
    }


def _names(rules: Sequence[FeedRule]) -> str:
    return ", ".join(repr(rule.name) for rule in rules)


def _column(rule: FeedRule, values: list[Any]) -> Any:
    """The values of one field, stacked or packed, of the declared dtype and shape."""
    if not rule.lod_level:
        return _rows(rule, values)
    levels: list[list[int]] = []
    for _ in range(rule.lod_level):
        for v in values:
            if not (isinstance(v, list | tuple) or (isinstance(v, np.ndarray) and v.ndim)):
                raise FeedError(
                    f"feed {rule.name!r} has lod_level {rule.lod_level}, so a sample holds"
                    f" sequences of rows, not {v!r}"
                )
        levels.append([len(v) for v in values])
        values = [row for v in values for row in v]
    tensor = LoDTensor(
        _rows(rule, values)
        if values
        else np.empty((0, *(max(n, 0) for n in rule.shape[1:])), rule.dtype)
    )
    if levels[0]:
        tensor.set_recursive_sequence_lengths(levels)
    return tensor


def _rows(rule: FeedRule, values: list[Any]) -> Any:
    try:
        plain = np.array(values)
    except (ValueError, OverflowError):
        plain = np.empty(0, object)
    if plain.dtype.kind not in "biuf" and plain.dtype != rule.dtype:
        raise FeedError(_unfit(rule, plain, values))
    return rule(_reshaped(rule, converted(rule, plain), len(values)))


def _unfit(rule: FeedRule, plain: np.ndarray, values: list[Any]) -> str:
    shapes = sorted({np.shape(v) for v in values if not isinstance(v, list)})
    if plain.dtype == object and all(isinstance(v, int) for v in values):
        return f"feed {rule.name!r} holds integers that do not fit {rule.dtype.name}"
    if len(shapes) > 1:
        return (
            f"feed {rule.name!r} has samples of different shapes, such as {list(shapes[0])} and"
            f" {list(shapes[-1])}; pad them"
        )
    what = (
        "samples of different lengths or kinds"
        if plain.dtype == object
        else f"{plain.dtype} values"
    )
    return f"feed {rule.name!r} has {what}; it takes numbers of dtype {rule.dtype.name}"


def converted(rule: FeedRule, plain: np.ndarray) -> np.ndarray:
    """`plain` as the declared dtype without loss.

    Floats become integers only if all are whole, integers must fit, finite floats must stay finite,
    a bool is 0 or 1; otherwise FeedError is raised. Floats are rounded to a shorter float type.
    """
    to = rule.dtype
    if plain.dtype == to:
        return plain
    if to.kind in "iu":
        info = np.iinfo(to)
        if plain.dtype.kind == "f" and not (
            np.isfinite(plain).all() and (plain == np.floor(plain)).all()
        ):
            bad = plain[~(plain == np.floor(plain)) | ~np.isfinite(plain)].ravel()[0]
            raise FeedError(
                f"feed {rule.name!r} is {to.name}, but a sample holds {bad}, which is not an"
                " integer"
            )
        if plain.size and not (int(plain.min()) >= info.min and int(plain.max()) <= info.max):
            raise FeedError(
                f"feed {rule.name!r} holds integers that do not fit {to.name} ({info.min} to"
                f" {info.max})"
            )
    elif to == np.bool_ and not np.isin(plain, (0, 1)).all():
        raise FeedError(
            f"feed {rule.name!r} is bool, but a sample holds {plain[~np.isin(plain, (0, 1))][0]};"
            " it takes 0 or 1"
        )
    with np.errstate(over="ignore"):
        result = plain.astype(to)
    if (
        plain.dtype.kind == "f"
        and to.kind not in "iub"
        and not (np.isfinite(plain) == np.isfinite(result)).all()
    ):
        raise FeedError(
            f"feed {rule.name!r} holds numbers that do not fit {to.name}: they would become"
            " infinite"
        )
    return result


def _reshaped(rule: FeedRule, array: np.ndarray, count: int) -> np.ndarray:
    """Flat samples in the declared shape, if it has at most one unknown dimension and every sample
    makes whole rows.
    """
    want = rule.shape
    if array.ndim == len(want) or sum(n < 0 for n in want) > 1:
        return array
    row = int(np.prod(want[1:]))
    per_sample = array.size // count if count else row
    whole = (
        per_sample % row == 0
        if want[:1] == (-1,) and row > 0
        else array.size % max(1, abs(int(np.prod(want)))) == 0
    )
    if not whole:
        raise FeedError(
            f"feed {rule.name!r} has samples of shape {list(array.shape[1:])}, which cannot be"
            f" reshaped to the declared {list(want)}"
        )
    try:
        return array.reshape(want)
    except ValueError:
        raise FeedError(
            f"feed {rule.name!r} has shape {list(array.shape)}, but the program declares"
            f" {list(want)}"
        ) from None


def convert_dtype(dtype: Any) -> str:
    """The name of a dtype ("float32"), from any of its forms. Raises FluidTypeError for anything
    else.
    """
    return name_of(dtype)


def check_type(
    input: Any, input_name: str, expected_type: Any, op_name: str, extra_message: str = ""
) -> None:
    """Raises FluidTypeError unless an argument of a layer is of one of these types."""
    if not isinstance(input, expected_type):
        kinds = expected_type if isinstance(expected_type, tuple) else (expected_type,)
        kinds_text = " or ".join(k.__name__ for k in kinds)
        raise FluidTypeError(
            f"{op_name}'s {input_name} is a {kinds_text}, not a {type(input).__name__} {extra_message}".rstrip()
        )


def check_dtype(
    input_dtype: Any, input_name: str, expected_dtype: Any, op_name: str, extra_message: str = ""
) -> None:
    """Raises FluidTypeError unless the dtype of a layer's argument is one of these."""
    known = [expected_dtype] if isinstance(expected_dtype, str) else list(expected_dtype)
    if name_of(input_dtype) not in known:
        raise FluidTypeError(
            f"{op_name}'s {input_name} is of dtype {', '.join(known)}, not {name_of(input_dtype)}"
            f" {extra_message}".rstrip()
        )


def check_variable_and_dtype(
    input: Any, input_name: str, expected_dtype: Any, op_name: str, extra_message: str = ""
) -> None:
    """Raises FluidTypeError unless a layer's argument is a variable of one of these dtypes."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


__all__ = ["DataFeeder", "check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]
