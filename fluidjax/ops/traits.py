"""Properties of an op besides its computation, stated in its declaration and read from there.

    @op(outs="Out", grad="X", rows=elementwise("X"))
    def relu6(X: Array, *, threshold: float = 6.0): ...

A trait is a small frozen value, and :class:`Traits` lists all of them. A trait that an op does not
declare is None or False; the trait's class says which rule then applies. Gradient ops follow their
forward op: they take padded rows if it does, their outputs differ between ranks only if their
inputs do, and the step runs them; all else is declared by ``@grad_of``. tests/ops/test_traits.py
requires the decisions that no rule makes. A new trait is a class and a field here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from ..ir.desc import FrozenMap, OpDesc, VarDesc
from .checking import Refuses

Attrs = Mapping[str, Any]
# slot -> shape, a list of shapes, or None; "ragged": the slots that hold ragged values
Shapes = Mapping[str, Any]
When = Callable[[Attrs, Shapes], bool]
Hosted = Callable[[Attrs, Attrs], dict[str, Any]]
# the slot whose LoD the outputs take; a function: of the attributes, and the inputs by slot
Lead = str | Callable[[Attrs, Mapping[str, Any]], str | None] | None
ALL = ("*",)

# -- rows: what becomes of the rows of a ragged value that the op takes for a plain array (docs/lod.


@dataclass(frozen=True, slots=True)
class RowWise:
    """Row i of the outputs depends only on row i of the `over` slots, if `when` holds, so padded
    rows do no harm.

    Exactly the variables in `over` must be ragged, with one LoD. A slot in `beside` may also be
    plain; `when` then ensures that it has no rows. outs: the outputs that have rows; empty: all.
    lod: the slot whose LoD the outputs take in 1.8.5 (a function: see Lead; None: they have none),
    shared: those that do (empty: all of `outs` but the intermediate ones). elements: every element,
    not only every row, is computed separately. by_number: slots of which only the rows that `over`
    names are read, so their padding does no harm. joins: if it holds, the outputs have the rows and
    sequences of all values in the first of `over`, concatenated. folded: outputs that may have
    several rows for each.
    """

    over: tuple[str, ...]
    when: When | None = None
    beside: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()
    lod: Lead = None
    shared: tuple[str, ...] = ()
    elements: bool = False
    joins: When | None = None
    by_number: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduction:
    """Padded rows of X count as `neutral` ("low", "high": the dtype's least or greatest); means
    then divide by true rows.

    If attribute `dim` does not reduce the first axis, the op is row-wise, and the outputs take the
    LoD of slot `lod`.
    """

    neutral: Any
    mean: bool = False
    lod: str | None = "X"


@dataclass(frozen=True, slots=True)
class Mixing:
    """The op mixes rows, so it takes exact ones only. lod, shared: as in RowWise, for an output
    with as many rows.
    """

    lod: str | None = None
    shared: tuple[str, ...] = ()


Levels = Callable[[Mapping[str, int], Attrs], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Sequences:
    """The op has slots declared ``Ragged`` and knows what a LoD is.

    levels: output -> the input whose lod_level it has; or a function from the inputs' levels and
    the attributes to those of the outputs, for an op that makes a LoD. Outputs not named have none.
    each: input and output slots with a row for each sequence; if declared ("" for none), trailing
    empty filler sequences do no harm, while an op that does not declare it (None) needs their exact
    number. alone: an input slot whose rows the op computes one by one, given their sequence, if
    `when` holds for the op. inner: input slots whose levels below the first may end with empty
    fillers without harm; feeds for them are padded so. by_offsets: the op and its gradient depend
    on offsets alone, not on the known bound of the longest sequence.
    """

    levels: Mapping[str, str] | Levels
    each: tuple[str, ...] | None = None
    alone: str = ""
    when: Callable[[OpDesc], bool] | None = None
    inner: tuple[str, ...] = ()
    by_offsets: bool = False


Rows = RowWise | Reduction | Mixing | Sequences
_FIRST = "<first>"


def row_wise(
    *over: str, when: When | None = None, beside: str = "", outs: str = "", lod: Lead = _FIRST, shared: str = "",
    joins: When | None = None, by_number: str = "", folded: str = "",
) -> RowWise:  # fmt: skip
    """A RowWise; slot names separated by spaces in one string. The LoD defaults to that of the
    first slot.
    """
    lead = over[0] if lod == _FIRST else lod
    numbered = tuple(by_number.split())
    return RowWise(
        over,
        when,
        tuple(beside.split()),
        tuple(outs.split()),
        lead,
        tuple(shared.split()),
        joins=joins,
        by_number=numbered,
        folded=tuple(folded.split()),
    )


def elementwise(*over: str, **more: Any) -> RowWise:
    """Like row_wise, for an op that computes every element from the same element of each input."""
    return replace(row_wise(*over, **more), elements=True)


def reduces(neutral: Any, *, mean: bool = False, lod: str | None = "X") -> Reduction:
    """See Reduction."""
    return Reduction(neutral, mean, lod)


def mixes(lod: str | None = None, shared: str = "") -> Mixing:
    """See Mixing."""
    return Mixing(lod, tuple(shared.split()))


def knows_rows(
    levels: Levels | None = None, *, each: str | None = None, alone: str = "", when: Callable[[OpDesc], bool] | None = None,
    inner: str = "", by_offsets: bool = False, **slots: str
) -> Sequences:  # fmt: skip
    """See Sequences: ``knows_rows(Out="X")``, or a function."""
    counted = None if each is None else tuple(each.split())
    return Sequences(
        levels or FrozenMap(slots), counted, alone, when, tuple(inner.split()), by_offsets
    )


# -- sparse: what becomes of SelectedRows in a slot that is not declared to take them (docs/sparse.m


@dataclass(frozen=True, slots=True)
class ByValues:
    """Sparse rows in X give sparse rows of the same table in Out: the op works on their values, as
    in Paddle.

    merged: equal rows are added up first. scalar: a slot that must then have one element.
    """

    merged: bool = False
    scalar: str | None = None


def by_values(*, merged: bool = False, scalar: str | None = None) -> ByValues:
    """See ByValues."""
    return ByValues(merged, scalar)


@dataclass(frozen=True, slots=True)
class StaysSparse:
    """The op takes sparse rows, and its output is sparse if all of X are."""


@dataclass(frozen=True, slots=True)
class SparseGradient:
    """The op reads some rows of `table`, whose gradient is sparse if attribute `by` is true.

    looks_up: the op does nothing else, so its table may be stored elsewhere (an embedding).
    """

    by: str
    table: str
    looks_up: bool = True


# An op without this trait takes sparse rows in the slots declared SelectedRows, returns none, and
# refuses them in other slots.
Sparse = ByValues | StaysSparse | SparseGradient

# -- ranks: how the values that several ranks compute with one program are related (lower/divergence


@dataclass(frozen=True, slots=True)
class Ranks:
    """An op without this trait runs on each rank alone: its outputs differ between ranks if an
    input does or the op is random.

    together: a collective, whose result depends on the other ranks. agree: outputs that are equal
    on all ranks for any inputs (ALL). scatters: the outputs differ even if the inputs are equal.
    follows: output -> the one input that it depends on. root: the attribute that names the rank
    whose X all ranks get as Out.
    """

    together: bool = False
    agree: tuple[str, ...] = ()
    scatters: bool = False
    follows: Mapping[str, str] = FrozenMap()
    root: str = ""


def collective(
    *, agree: tuple[str, ...] = (), scatters: bool = False, root: str = "", **follows: str
) -> Ranks:
    """An op of all ranks together; other fields as in Ranks."""
    return Ranks(True, agree, scatters, FrozenMap(follows), root)


def follows(**outputs: str) -> Ranks:
    """An op of each rank alone; each of these outputs depends on one input."""
    return Ranks(follows=FrozenMap(outputs))


# -- runs: who runs the op -------------------------------------------------------------------------


class Runs(enum.Enum):
    """The step runs an op with a function unless the trait says otherwise."""

    STEP = "by the step, for what it computes"
    EFFECT = "by the step, for its effect, even if nothing reads what it computes"
    HOST = "by what surrounds a step (feeding, joining, freeing memory), which passes it over"
    REMOTE = "by a parameter-server job, in which processes talk to each other"

    @property
    def acts(self) -> bool:
        """Whether a program needs the op even if nothing reads its outputs."""
        return self in (Runs.EFFECT, Runs.HOST)


# -- integers --------------------------------------------------------------------------------------

Find = Callable[[str], VarDesc | None]
High = Callable[[OpDesc, Find], tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Integers in `slot`, called `what` in messages, must be >= 0 and below the bound, or equal the
    one exception.

    high: takes the op and a look-up of variables, and returns the bound (not positive: unknown) and
    the exception or None. An op without this trait takes any value; FREE states this for slots that
    look like indices. variable: takes the op and returns the name of the variable that holds the
    bound, or "".
    """

    slot: str
    what: str
    high: High
    variable: Callable[[OpDesc], str] = lambda op: ""


FREE = Bounds("", "", lambda op, find: (-1, None))

# -- sizes -----------------------------------------------------------------------------------------

# (op, slot, index of the variable) -> not needed there
Needless = Callable[[OpDesc, str, int], bool]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The values in these input slots decide the shape of an output, so they must be known before
    the step is compiled.

    needless: those that this op does not need. An op without this trait computes shapes from shapes
    and attributes alone.
    """

    slots: tuple[str, ...]
    needless: Needless | None = None

    def needed(self, op: OpDesc) -> list[tuple[str, int]]:
        """(slot, index of the variable) of all that this op needs."""
        places = [(slot, i) for slot in self.slots for i in range(len(op.input(slot)))]
        return (
            places
            if self.needless is None
            else [(s, i) for s, i in places if not self.needless(op, s, i)]
        )


def sizes_from(slots: str, needless: Needless | None = None) -> Sizes:
    """A Sizes; the slots in one string."""
    return Sizes(tuple(slots.split()), needless)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The values in these input slots decide the outputs' number of rows, with room for `room`, in
    words.

    exact: if these values are known while a step is traced, so is the number of rows.
    """

    slots: tuple[str, ...]
    room: str
    exact: bool = True


def rows_by(slots: str, room: str, exact: bool = True) -> Chosen:
    """A Chosen; the slots in one string."""
    return Chosen(tuple(slots.split()), room, exact)


# -- state -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Update:
    """An optimizer's op: it updates Param by Grad to ParamOut.

    elements: every element is updated separately, so the op can run on parts of arrays; otherwise
    it needs whole ones. state: input slots of its state arrays of Param's shape. powers: input
    slots of one number per parameter -> the attribute that multiplies them in every step.
    """

    elements: bool
    state: tuple[str, ...] = ()
    powers: Mapping[str, str] = FrozenMap()


def updates_elements(*state: str, **powers: str) -> Update:
    """An Update of every element separately."""
    return Update(True, state, FrozenMap(powers))


def updates_whole(*state: str) -> Update:
    """An Update that needs whole arrays."""
    return Update(False, state)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Outputs (-> input) that equal the input if `when` holds for the attributes: statistics that
    are not updated.
    """

    outs: Mapping[str, str]
    when: Callable[[Attrs], bool]

    def holds(self, op: OpDesc) -> bool:
        """Whether this op returns all of them under their input names."""
        return self.when(op.attrs) and all(
            op.output(out) == op.input(source) for out, source in self.outs.items()
        )


# -- by itself -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Eager:
    """Outside of a compiled step, on NumPy arrays and with a known key, the op gives bitwise the
    same result as within.

    It compiles nothing except a sampler for each distribution, so XLA must not be able to fuse a
    rounded result with another op. fn: the function for this, if it is not the op's own; called in
    the same way. when: the attributes for which this holds.
    """

    fn: Callable[..., Any] | None = None
    when: Callable[[Attrs], bool] = lambda attrs: True


EAGER = Eager()

# -- all of them -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Traits:
    """All traits of an op. carries: the input whose elements Out holds, in another shape or dtype.
    fills: Out is filled element by element with a number or a sample, so that a part of it can be
    made separately. counters: input slots whose values may have another shape than declared; the op
    itself checks how many numbers they hold. passes_over: input slots whose uninitialised
    variables count as zero. fed_by_steps: a gradient op within a loop's block that is kept although
    no op writes its input, because another step of the loop does. eager: the op also runs outside
    of a compiled step. shape_of: input slots of which the op reads only the shape, so that its
    outputs do not depend on their elements. chosen: the data that decide the number of rows of the
    outputs. refuses: the values of inputs that the op rejects, besides `bounds`; a running step
    reports them (ops/checking.py). lengths: a slot of sequence lengths: an output, those of the
    sequences in X; or an input, passed as Lengths (lengths.py) if their sequences are known.
    hosted: the Python function that replaces the op's if the program is cut there: (inputs by slot,
    attributes) -> outputs by slot. Variables that it reads keep their LoD from run to run. heavy:
    the op is expensive for its output's size (products, convolutions, recurrences, look-ups), so it
    is recomputed last.
    """

    rows: Rows | None = None
    sparse: Sparse | None = None
    ranks: Ranks = Ranks()
    runs: Runs = Runs.STEP
    bounds: Bounds | None = None
    update: Update | None = None
    unchanged: Unchanged | None = None
    carries: str | None = None
    fills: bool = False
    counters: tuple[str, ...] = ()
    passes_over: tuple[str, ...] = ()
    fed_by_steps: bool = False
    eager: Eager | None = None
    sizes: Sizes | None = None
    shape_of: tuple[str, ...] = ()
    chosen: Chosen | None = None
    refuses: Refuses | None = None
    lengths: str | None = None
    hosted: Hosted | None = None
    heavy: bool = False


class Given(TypedDict, total=False):
    """The traits from a declaration's keyword arguments."""

    rows: Rows
    sparse: Sparse | None
    ranks: Ranks
    runs: Runs
    bounds: Bounds
    update: Update
    unchanged: Unchanged
    carries: str
    fills: bool
    counters: tuple[str, ...]
    passes_over: tuple[str, ...]
    fed_by_steps: bool
    eager: Eager
    sizes: Sizes
    shape_of: tuple[str, ...]
    chosen: Chosen
    refuses: Refuses
    lengths: str
    hosted: Hosted
    heavy: bool
