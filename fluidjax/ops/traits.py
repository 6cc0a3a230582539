"""What an op is besides what it computes: facts that stand on its declaration and that everybody
reads there.

    @op(outs="Out", grad="X", rows=elementwise("X"))
    def relu6(X: Array, *, threshold: float = 6.0): ...

A trait is a small frozen value, and :class:`Traits` lists all that there are. A trait that an op
does not give is None or False, and its class says by which rule such an op goes. Gradient ops are
declared by their forward op: they take padded rows where it does, no rank differs from what it
read, and the step runs them; whatever else one is stands on its ``@grad_of``.
tests/ops/test_traits.py asks every op for the decisions that no rule makes. A new trait is a class
and a field here.
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
    """Row i of the outputs depends on row i of the `over` slots only, if `when` holds; so padded
    rows do no harm.

    All variables given in `over` must be ragged with one LoD, and no others. A slot in `beside` may
    also be plain; `when` then sees to it that it spans no rows. outs: the outputs that have rows;
    empty: all. lod: the slot whose LoD the outputs take in 1.8.5 (a function: see Lead;
    None: they have none), shared: those that do (empty: all of `outs` but the
    intermediate ones). elements: every element, not only every row, is computed by itself.
    by_number: slots of which only the rows that `over` names are read, so padding behind them does
    no harm. joins: where it holds, the outputs have the rows of all values in the first of `over`,
    one after another, and their sequences. folded: outputs that may have several rows for each.
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

    Where attribute `dim` leaves the first axis alone, the op is row-wise, and the outputs take the
    LoD of slot `lod`.
    """

    neutral: Any
    mean: bool = False
    lod: str | None = "X"


@dataclass(frozen=True, slots=True)
class Mixing:
    """Rows get mixed, so the op takes exact ones only. lod, shared: as in RowWise, where an output
    has as many rows.
    """

    lod: str | None = None
    shared: tuple[str, ...] = ()


Levels = Callable[[Mapping[str, int], Attrs], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Sequences:
    """The op has slots declared ``Ragged`` and knows what a LoD is.

    levels: output -> the input whose lod_level it has; or a function from the inputs' levels and
    the attributes to those of the outputs, for an op that makes a LoD. Outputs that are not named
    have none. each: slots, of inputs and outputs, that have a row for each sequence; where that is
    said ("" for none), empty sequences behind the true ones do no harm, and an op that says nothing
    (None) needs to know how many there are. alone: an input slot of which the op computes each row
    by itself, given the sequence that it is in, if `when` holds for the op. inner: input slots
    whose levels below the first may end with empty sequences that are none, at no harm; what is fed
    to them is padded so. by_offsets: the op, and its gradient, goes by offsets alone, whatever
    bound of the longest sequence is known.
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
    """A RowWise; slots by their names, several in one string. The LoD is that of the first slot if
    nothing else is said.
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
    """As row_wise, of an op that computes every element from the same element of each input."""
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
    Paddle's does.

    merged: equal rows are added up before. scalar: a slot that must have one element for it.
    """

    merged: bool = False
    scalar: str | None = None


def by_values(*, merged: bool = False, scalar: str | None = None) -> ByValues:
    """See ByValues."""
    return ByValues(merged, scalar)


@dataclass(frozen=True, slots=True)
class StaysSparse:
    """The op takes sparse rows as they are, and its output is sparse where all of X are."""


@dataclass(frozen=True, slots=True)
class SparseGradient:
    """The op reads some rows of `table`, whose gradient is sparse where attribute `by` says so.

    looks_up: that is all that it does, so its table may be kept elsewhere (an embedding).
    """

    by: str
    table: str
    looks_up: bool = True


# An op that says nothing takes sparse rows in the slots declared SelectedRows, gives none, and
# elsewhere refuses them.
Sparse = ByValues | StaysSparse | SparseGradient

# -- ranks: how the values that several ranks compute with one program are related (lower/divergence


@dataclass(frozen=True, slots=True)
class Ranks:
    """An op without this trait runs on each rank alone: its outputs differ between ranks if an
    input does or the op is random.

    together: a collective; what a rank gets depends on what the others hold. agree: outputs that
    are the same on all ranks whatever is read (ALL). scatters: the outputs differ even where what
    is read does not. follows: output -> the one input that it depends on. root: the attribute that
    names the rank whose X all ranks get as Out.
    """

    together: bool = False
    agree: tuple[str, ...] = ()
    scatters: bool = False
    follows: Mapping[str, str] = FrozenMap()
    root: str = ""


def collective(
    *, agree: tuple[str, ...] = (), scatters: bool = False, root: str = "", **follows: str
) -> Ranks:
    """An op of all ranks at once; the rest as in Ranks."""
    return Ranks(True, agree, scatters, FrozenMap(follows), root)


def follows(**outputs: str) -> Ranks:
    """An op of each rank alone, of whose outputs these depend on one input each."""
    return Ranks(follows=FrozenMap(outputs))


# -- runs: who runs the op -------------------------------------------------------------------------


class Runs(enum.Enum):
    """An op with a function is run by the step if it does not say otherwise."""

    STEP = "by the step, for what it computes"
    EFFECT = "by the step, for its effect, even if nothing reads what it computes"
    HOST = "by what surrounds a step (feeding, joining, freeing memory), which passes it over"
    REMOTE = "by a parameter-server job, in which processes talk to each other"

    @property
    def acts(self) -> bool:
        """Whether a program needs the op even if nothing reads what it computes."""
        return self in (Runs.EFFECT, Runs.HOST)


# -- integers --------------------------------------------------------------------------------------

Find = Callable[[str], VarDesc | None]
High = Callable[[OpDesc, Find], tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Integers in `slot`, called `what` in messages, must be >= 0 and below what `high` says, or be
    the one exception.

    high: from the op and a look-up of variables the bound (not positive: none is known) and the
    exception or None. An op that says nothing takes any value; FREE says so of one whose slots look
    like indices. variable: from the op the name of the variable that holds the bound, or "".
    """

    slot: str
    what: str
    high: High
    variable: Callable[[OpDesc], str] = lambda op: ""


FREE = Bounds("", "", lambda op, find: (-1, None))

# -- sizes -----------------------------------------------------------------------------------------

# (op, slot, which of its variables) -> not needed there after all
Needless = Callable[[OpDesc, str, int], bool]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The values in these input slots decide the shape of an output, so they must be known before
    the step is compiled.

    needless: which of them this op does without. An op that says nothing computes shapes from
    shapes and attributes alone.
    """

    slots: tuple[str, ...]
    needless: Needless | None = None

    def needed(self, op: OpDesc) -> list[tuple[str, int]]:
        """(slot, which of its variables) of all that this op needs."""
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
    """The outputs have as many rows as the values in these input slots say, and room for `room`, in
    words.

    exact: where these values are known while a step is traced, so is the number of rows.
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
    """An optimizer's op: it takes Param by Grad to ParamOut.

    elements: every element is updated by itself, so the op runs on parts of arrays as it is;
    otherwise it needs whole ones. state: input slots of arrays of Param's shape that it keeps.
    powers: input slots of numbers of the parameter's own -> the attribute by which they are
    multiplied in every step.
    """

    elements: bool
    state: tuple[str, ...] = ()
    powers: Mapping[str, str] = FrozenMap()


def updates_elements(*state: str, **powers: str) -> Update:
    """An Update of every element by itself."""
    return Update(True, state, FrozenMap(powers))


def updates_whole(*state: str) -> Update:
    """An Update that needs whole arrays."""
    return Update(False, state)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Outputs (-> input) that are the input as it is where `when` holds for the attributes:
    statistics that do not move.
    """

    outs: Mapping[str, str]
    when: Callable[[Attrs], bool]

    def holds(self, op: OpDesc) -> bool:
        """Whether this op gives all of them back under the names that they came by."""
        return self.when(op.attrs) and all(
            op.output(out) == op.input(source) for out, source in self.outs.items()
        )


# -- by itself -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Eager:
    """The op computes by itself, of NumPy arrays and of a key that is known, what it computes
    within a compiled step, bit for bit.

    It compiles nothing for it, but a draw for each distribution. So nothing that it rounds may meet
    what XLA could fuse into it. fn: what computes it so, where that is not the op's own function;
    it is called in the same way. when: the attributes with which this holds.
    """

    fn: Callable[..., Any] | None = None
    when: Callable[[Attrs], bool] = lambda attrs: True


EAGER = Eager()

# -- all of them -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Traits:
    """All traits of an op. carries: the input whose elements Out holds, in another shape or dtype.
    fills: Out is filled element by element by a number or a draw, so that a part of it can be made
    by itself. counters: input slots whose values may have another shape than declared; the op
    itself checks how many numbers they hold. passes_over: input slots whose uninitialised
    variables count as zero. fed_by_steps: a gradient op within a loop's block that stays
    there though no op writes what it reads, since another step of the loop gives it. eager: the op
    also runs without being compiled into a step. shape_of: input slots of which the op looks at the
    shape alone, so that nothing that it gives depends on what is in them. chosen: of an op whose
    outputs have as many rows as the data say, whose. refuses: what the op objects to in the values
    of its inputs, besides `bounds`; a running step tells (ops/checking.py). lengths: a slot of
    lengths of sequences: an output, those of the sequences in X; or an input, given as Lengths
    (lengths.py) where it is known whose they are. hosted: what Python does in place of the function
    where the program is cut at the op: (inputs by slot, attributes) -> outputs by slot. Variables
    that it reads keep their LoD from run to run. heavy: the op takes long for what it gives
    (products, convolutions, recurrences, look-ups), so it is computed twice last of all.
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
    """The traits as a declaration names them."""

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
