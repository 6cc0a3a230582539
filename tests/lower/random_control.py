"""Random nets of blocks within blocks on rows and ragged sequences: a strategy, the program, and
the same in plain JAX.

A net is a tree. ``Program`` writes it with Fluid's layers, ``Plain`` computes it by Python's own
loops and branches, so that ``jax.grad`` of that is the gradient of the function unrolled by hand.
Values are rows [n, WIDTH]: one for each sequence, or, within a block on sequences or on parts of
rows, as many as there are. ``whole`` tells whether all rows are at hand, so that a test may add
them up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers

WIDTH = 3
MOST = 3  # iterations of a loop
CLOSE = 1e-3  # a number that is compared with another one this near may fall on either side

Expr = Any  # a tuple: what it is, then its parts

UNARY = ("tanh", "sigmoid", "softsign", "relu", "scale")
BINARY = ("add", "sub", "mul", "max")
POOLS = ("sum", "average", "sqrt", "max", "last", "first")
COUNTS = (0, 1, 2, 3, "fed", "bounded", "until")


def rows(depth: int, whole: bool = True) -> st.SearchStrategy[Expr]:
    """Trees that give rows. whole: all rows are at hand, and sequences too."""
    pick = st.tuples(st.just("at"), st.integers(0, 5))
    if not depth:
        return pick
    e, inside = rows(depth - 1, whole), rows(depth - 1, False)
    test = st.one_of(
        st.tuples(st.just("parameter"), st.booleans()),
        *([st.tuples(st.just("rows"), pick)] if whole else []),
    )
    count = st.sampled_from(COUNTS if whole else COUNTS[:5])
    each = [
        st.tuples(st.just("unary"), st.sampled_from(UNARY), e),
        st.tuples(st.just("binary"), st.sampled_from(BINARY), e, e),
        st.tuples(st.just("weigh"), e),
        st.tuples(st.just("fc"), e),
        st.tuples(st.just("cond"), test, e, e),
        st.tuples(st.just("case"), test, test, e, e, e),
        st.tuples(st.just("numbered"), e, e, e),
        st.tuples(st.just("switch"), test, pick, e, e),
        st.tuples(st.just("loop"), count, pick, e),
        st.tuples(st.just("entries"), count.filter(lambda c: c != "until"), st.booleans(), pick, e),
        st.tuples(st.just("if_else"), pick, pick, inside, inside),
    ]
    if whole:
        each.append(
            st.tuples(
                st.just("static"), st.booleans(), st.lists(pick, min_size=1, max_size=3), pick, e
            )
        )
        each.append(st.tuples(st.just("pool"), st.sampled_from(POOLS), sequences(depth - 1)))
        each.append(st.tuples(st.just("pool"), st.sampled_from(POOLS), sequences(depth - 1)))
        each.append(
            st.tuples(
                st.just("pages"), st.sampled_from(POOLS), st.sampled_from(POOLS), texts(depth - 1)
            )
        )
        each.append(
            st.tuples(st.just("reading"), texts(depth - 1), st.sampled_from(POOLS), rows(0), inside)
        )
    return st.one_of(*each)


TESTS = st.one_of(
    st.tuples(st.just("parameter"), st.booleans()),
    st.tuples(st.just("rows"), st.tuples(st.just("at"), st.integers(0, 5))),
)


def sequences(depth: int) -> st.SearchStrategy[Expr]:
    """Trees that give sequences, all of the fed lengths."""
    if not depth:
        return st.just(("fed",))
    below, inside = sequences(depth - 1), rows(depth - 1, False)
    return st.one_of(
        st.tuples(st.just("rnn"), below, rows(0), st.booleans(), inside),
        st.tuples(st.just("rnn"), below, rows(0), st.booleans(), inside),
        st.tuples(st.just("unary"), st.sampled_from(UNARY), below),
        st.tuples(st.just("plus"), below, rows(0)),
        st.tuples(st.just("fc"), below),
        st.tuples(st.just("reverse"), below),
        st.tuples(st.just("cond"), TESTS, below, below),
        st.tuples(st.just("walk"), st.sampled_from(COUNTS[:5]), below),
    )


def texts(depth: int) -> st.SearchStrategy[Expr]:
    """Trees that give sequences of sequences: as many sentences in each text as the fed sequences
    have rows.
    """
    if not depth:
        return st.just(("text",))
    below = texts(depth - 1)
    return st.one_of(
        st.tuples(st.just("unary"), st.sampled_from(UNARY), below),
        st.tuples(st.just("fc"), below),
        st.tuples(st.just("cond"), TESTS, below, below),
    )


LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(any)


@dataclass(frozen=True)
class Net:
    """A net with what it is fed: the lengths of the sequences, and the number that loops and cases
    go by.
    """

    tree: Expr
    lengths: tuple[int, ...]
    count: int

    def __repr__(self) -> str:
        return f"Net({self.tree!r}, {self.lengths!r}, {self.count!r})"


def nets(depth: int = 3) -> st.SearchStrategy[Net]:
    return st.builds(Net, rows(depth), LENGTHS.map(tuple), st.integers(0, MOST))


def sentences(net: Net) -> list[int]:
    """The lengths of the sentences of all texts, empty ones among them."""
    return [(3 * k + 1) % 4 for k in range(sum(net.lengths))]


def values(net: Net) -> dict[str, np.ndarray]:
    """x: a row for each sequence; q: the rows of the sequences; w, m: parameters; p: the rows of
    the sentences of the texts.
    """
    numbers = np.random.default_rng(len(net.lengths) + 10 * sum(net.lengths))
    shapes = {"x": (len(net.lengths), WIDTH), "q": (sum(net.lengths), WIDTH), "w": (WIDTH,), "m": (WIDTH, WIDTH),
              "p": (sum(sentences(net)), WIDTH)}  # fmt: skip
    return {n: numbers.uniform(-1, 1, s).astype("float32") for n, s in shapes.items()}


# -- the net as a program --------------------------------------------------------------------------


def number(value: int) -> Any:
    return layers.fill_constant([1], "int64", value)


@dataclass(frozen=True)
class Program:
    """Writes a tree with layers. values: the rows at hand; q, n, p: the sequences, the number and
    the texts that are fed.
    """

    values: tuple[Any, ...]
    w: Any
    m: Any
    q: Any = None
    n: Any = None
    p: Any = None

    def __call__(self, e: Expr) -> Any:
        return getattr(self, e[0])(*e[1:])

    def within(self, *more: Any) -> Program:
        """The same where further rows are at hand."""
        return replace(self, values=(*more, *self.values))

    def on(self, *only: Any) -> Program:
        """The same where only these rows are at hand."""
        return replace(self, values=only, q=None)

    def at(self, k: int) -> Any:
        return self.values[k % len(self.values)]

    def unary(self, kind: str, a: Expr) -> Any:
        return (
            layers.scale(self(a), 0.7, bias=0.1)
            if kind == "scale"
            else getattr(layers, kind)(self(a))
        )

    def binary(self, kind: str, a: Expr, b: Expr) -> Any:
        return getattr(layers, "elementwise_" + kind)(self(a), self(b))

    def weigh(self, a: Expr) -> Any:
        return layers.elementwise_mul(self(a), self.w)

    def fc(self, a: Expr) -> Any:
        return layers.tanh(layers.mul(self(a), self.m))

    def test(self, kind: str, what: Any) -> Any:
        zero = layers.fill_constant([1], "float32", 0.0)
        if kind == "parameter":
            total = layers.reduce_sum(self.w, keep_dim=False)
            return layers.less_than(zero, total) if what else layers.less_than(total, zero)
        return layers.less_than(zero, layers.reduce_sum(self(what)))

    def cond(self, test: Expr, a: Expr, b: Expr) -> Any:
        return layers.cond(
            self.test(*test), lambda: layers.scale(self(a), 1.0), lambda: layers.scale(self(b), 1.0)
        )

    def case(self, one: Expr, two: Expr, a: Expr, b: Expr, c: Expr) -> Any:
        branch = lambda e: lambda: layers.scale(self(e), 1.0)  # noqa: E731
        return layers.case([(self.test(*one), branch(a)), (self.test(*two), branch(b))], branch(c))

    def numbered(self, a: Expr, b: Expr, c: Expr) -> Any:
        branch = lambda e: lambda: layers.scale(self(e), 1.0)  # noqa: E731
        return layers.switch_case(
            layers.cast(self.n, "int32"), {0: branch(a), 2: branch(b)}, branch(c)
        )

    def switch(self, test: Expr, before: Expr, a: Expr, b: Expr) -> Any:
        out = layers.scale(self(before), 1.0)
        with layers.Switch() as chosen:
            with chosen.case(self.test(*test)):
                layers.assign(self(a), out)
            with chosen.default():
                layers.assign(self.within(out)(b), out)
        return out

    def loop(self, count: Any, start: Expr, step: Expr) -> Any:
        n = self.n if count == "fed" else number(count if isinstance(count, int) else MOST)

        def going(i: Any, y: Any) -> Any:
            few = layers.less_than(i, n)
            if count not in ("bounded", "until"):
                return few
            return layers.logical_and(
                few,
                layers.less_than(layers.reduce_sum(y), layers.fill_constant([1], "float32", 0.75)),
            )

        def body(i: Any, y: Any) -> list[Any]:
            return [i + 1, layers.tanh(self.within(y)(step))]

        return layers.while_loop(going, body, [number(0), layers.scale(self(start), 1.0)])[1]

    def entries(self, count: Any, last: bool, start: Expr, step: Expr) -> Any:
        """A loop that writes its rows to an array; the last are taken behind it, or all added up,
        or the first and the last.
        """
        i, n = (
            number(0),
            self.n if count == "fed" else number(count if isinstance(count, int) else MOST),
        )
        states = layers.array_write(layers.scale(self(start), 1.0), i)
        going = layers.less_than(i, n)
        with layers.While(going).block():
            before = layers.array_read(states, i)
            after = layers.tanh(self.within(before)(step))
            layers.increment(i)
            layers.array_write(after, i, states)
            if count == "bounded":
                small = layers.less_than(
                    layers.reduce_sum(after), layers.fill_constant([1], "float32", 0.75)
                )
                layers.logical_and(layers.less_than(i, n), small, out=going)
            else:
                layers.less_than(i, n, cond=going)
        if not last and isinstance(count, int) and self.q is not None:
            return layers.reduce_sum(
                layers.tensor_array_to_tensor(states, axis=0, use_stack=True)[0], 0
            )
        end = layers.array_read(states, i)
        return end if last else layers.elementwise_add(layers.array_read(states, number(0)), end)

    def static(self, last: bool, parts: list[Expr], start: Expr, step: Expr) -> Any:
        given, loop = layers.stack([self(p) for p in parts]), layers.StaticRNN()
        begin = layers.scale(self(start), 1.0)
        with loop.step():
            row, before = loop.step_input(given), loop.memory(init=begin)
            after = layers.tanh(self.within(row, before)(step))
            loop.update_memory(before, after)
            loop.step_output(after)
        out = loop()
        if last:
            return layers.squeeze(layers.slice(out, [0], [len(parts) - 1], [len(parts)]), [0])
        return layers.reduce_sum(out, 0)

    def if_else(self, test: Expr, other: Expr, a: Expr, b: Expr) -> Any:
        given, more = self(test), self(other)
        sums = layers.reduce_sum(given, 1, keep_dim=True)
        both = layers.IfElse(layers.less_than(sums, layers.scale(sums, 0.0)))
        for block, e in ((both.true_block, a), (both.false_block, b)):
            with block():
                both.output(layers.scale(self.on(both.input(given), both.input(more))(e), 1.0))
        return both()[0]

    def pool(self, kind: str, seq: Expr) -> Any:
        return layers.sequence_pool(self.sequence(seq), kind)

    def sequence(self, e: Expr) -> Any:
        kind, *rest = e
        if kind in ("fed", "text"):
            return self.q if kind == "fed" else self.p
        if kind == "rnn":
            return self.rnn(*rest)
        if kind == "unary":
            given = self.sequence(rest[1])
            return (
                layers.scale(given, 0.7, bias=0.1)
                if rest[0] == "scale"
                else getattr(layers, rest[0])(given)
            )
        if kind == "cond":
            test, *cases = rest
            return layers.cond(
                self.test(*test), *[lambda e=e: layers.scale(self.sequence(e), 1.0) for e in cases]
            )
        if kind == "walk":
            return self.walk(*rest)
        given = self.sequence(rest[0])
        if kind == "plus":
            return layers.elementwise_add(given, layers.sequence_expand_as(self(rest[1]), given))
        return (
            layers.sequence_reverse(given)
            if kind == "reverse"
            else layers.tanh(layers.mul(given, self.m))
        )

    def pages(self, outer: str, inner: str, text: Expr) -> Any:
        return layers.sequence_pool(layers.sequence_pool(self.sequence(text), inner), outer)

    def reading(self, text: Expr, kind: str, start: Expr, step: Expr) -> Any:
        """Texts sentence by sentence, each pooled within the block; what all of them left is added
        up.
        """
        return layers.sequence_pool(
            self.recurrent(
                text, start, step, lambda _, sentence: [layers.sequence_pool(sentence, kind)]
            ),
            "sum",
        )

    def walk(self, count: Any, seq: Expr) -> Any:
        """A loop that hands sequences on."""
        n, given = self.n if count == "fed" else number(count), self.sequence(seq)
        body = lambda i, y: [i + 1, layers.tanh(layers.mul(y, self.m) + given)]  # noqa: E731
        return layers.while_loop(
            lambda i, y: layers.less_than(i, n), body, [number(0), layers.scale(given, 1.0)]
        )[1]

    def rnn(self, seq: Expr, start: Expr, static: bool, step: Expr) -> Any:
        more = lambda rnn: [rnn.static_input(self.values[-1])] if static else []  # noqa: E731
        return self.recurrent(seq, start, step, lambda rnn, word: [word], more)

    def recurrent(
        self, seq: Expr, start: Expr, step: Expr, entry: Any, more: Any = lambda _: []
    ) -> Any:
        """A DynamicRNN whose step sees what `entry` makes of each entry, its memory, and what
        `more` gives.
        """
        given, begin = self.sequence(seq), self(start)
        rnn = layers.DynamicRNN()
        with rnn.block():
            here = rnn.step_input(given)
            before = rnn.memory(init=begin, need_reorder=True)
            after = layers.tanh(self.on(*entry(rnn, here), before, *more(rnn))(step))
            rnn.update_memory(before, after)
            rnn.output(after)
        return rnn()


def written(net: Net) -> tuple[fluid.Program, fluid.Program, Any, list[str]]:
    """The program of a net with its loss and, where there are any, its gradients by x, q, w, m and
    p; the startup program.
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, q = fluid.data("x", [None, WIDTH]), fluid.data("q", [None, WIDTH], lod_level=1)
        n = fluid.data("n", [1], "int64")
        p = fluid.data("p", [None, WIDTH], lod_level=2)
        x.stop_gradient = q.stop_gradient = p.stop_gradient = False
        w, m = (
            layers.create_parameter(s, "float32", name=p)
            for p, s in (("w", [WIDTH]), ("m", [WIDTH, WIDTH]))
        )
        out = Program((x,), w, m, q, n, p)(net.tree)
        loss = layers.reduce_sum(layers.square(out)) + layers.reduce_mean(
            layers.elementwise_mul(x, w)
        )
        grads = fluid.gradients(loss, [x, q, w, m, p])
    return main, startup, loss, ["" if g is None else g.name for g in grads]


# -- the net by hand -------------------------------------------------------------------------------


@dataclass
class Margin:
    """How near the numbers that were compared came to one another, where that is measured."""

    measured: bool = True
    least: float = np.inf

    def less(self, a: Any, b: float) -> bool:
        """a < b, both of them numbers."""
        self.see(a - b)
        return bool(a < b)

    def see(self, values: Any) -> None:
        if self.measured:
            self.least = min(self.least, float(np.abs(values).min(initial=np.inf)))


@dataclass(frozen=True)
class Plain:
    """Computes a tree. values: the rows at hand."""

    values: tuple[Any, ...]
    w: Any
    m: Any
    q: Any
    lengths: tuple[int, ...]
    n: int
    margin: Margin
    p: Any = None
    sentences: tuple[int, ...] = ()
    whole: bool = True

    def __call__(self, e: Expr) -> Any:
        return getattr(self, e[0])(*e[1:])

    def within(self, *more: Any) -> Plain:
        return replace(self, values=(*more, *self.values))

    def on(self, *only: Any) -> Plain:
        return replace(self, values=only, whole=False)

    def at(self, k: int) -> Any:
        return self.values[k % len(self.values)]

    def unary(self, kind: str, a: Expr) -> Any:
        return self.curve(kind, self(a))

    def curve(self, kind: str, v: Any) -> Any:
        return {"tanh": jnp.tanh, "sigmoid": lambda v: 1 / (1 + jnp.exp(-v)), "softsign": lambda v: v / (1 + jnp.abs(v)),
                "relu": lambda v: jnp.where(v > 0, v, 0), "scale": lambda v: 0.7 * v + 0.1}[kind](v)  # fmt: skip

    def binary(self, kind: str, a: Expr, b: Expr) -> Any:
        one, two = self(a), self(b)
        if kind == "max":
            return jnp.where(one >= two, one, two)
        return {"add": one + two, "sub": one - two, "mul": one * two}[kind]

    def weigh(self, a: Expr) -> Any:
        return self(a) * self.w

    def fc(self, a: Expr) -> Any:
        return jnp.tanh(self(a) @ self.m)

    def test(self, kind: str, what: Any) -> bool:
        if kind == "parameter":
            return self.margin.less(self.w.sum(), 0.0) != bool(what)
        return not self.margin.less(self(what).sum(), 0.0)

    def cond(self, test: Expr, a: Expr, b: Expr) -> Any:
        return self(a) if self.test(*test) else self(b)

    def case(self, one: Expr, two: Expr, a: Expr, b: Expr, c: Expr) -> Any:
        return self(a) if self.test(*one) else self(b) if self.test(*two) else self(c)

    def numbered(self, a: Expr, b: Expr, c: Expr) -> Any:
        return self({0: a, 2: b}.get(self.n, c))

    def switch(self, test: Expr, before: Expr, a: Expr, b: Expr) -> Any:
        return self(a) if self.test(*test) else self.within(self(before))(b)

    def loop(self, count: Any, start: Expr, step: Expr) -> Any:
        y = self(start)
        for _ in range({"fed": self.n}.get(count, MOST) if isinstance(count, str) else count):
            if count in ("bounded", "until") and not self.margin.less(y.sum(), 0.75):
                break
            y = jnp.tanh(self.within(y)(step))
        return y

    def entries(self, count: Any, last: bool, start: Expr, step: Expr) -> Any:
        found = [self(start)]
        for _ in range({"fed": self.n}.get(count, MOST) if isinstance(count, str) else count):
            found.append(jnp.tanh(self.within(found[-1])(step)))
            if count == "bounded" and not self.margin.less(found[-1].sum(), 0.75):
                break
        if not last and isinstance(count, int) and self.whole:
            return sum(found[1:], found[0])
        return found[-1] if last else found[0] + found[-1]

    def static(self, last: bool, parts: list[Expr], start: Expr, step: Expr) -> Any:
        state, found = self(start), []
        for part in parts:
            state = jnp.tanh(self.within(self(part), state)(step))
            found.append(state)
        return state if last else sum(found[1:], found[0])

    def if_else(self, test: Expr, other: Expr, a: Expr, b: Expr) -> Any:
        given, more = self(test), self(other)
        true = np.array([self.margin.less(row.sum(), 0.0) for row in given], bool)
        out = jnp.zeros_like(given)
        for rows, e in ((np.nonzero(true)[0], a), (np.nonzero(~true)[0], b)):
            if rows.size:
                out = out.at[rows].set(self.on(given[rows], more[rows])(e))
        return out

    def pool(self, kind: str, seq: Expr) -> Any:
        return self.pooled(kind, self.sequence(seq), self.lengths)

    def pooled(self, kind: str, whole: Any, lengths: tuple[int, ...]) -> Any:
        found, at = [], np.cumsum([0, *lengths])
        for k, length in enumerate(lengths):
            v = whole[at[k] : at[k + 1]]
            one = {"sum": lambda v: v.sum(0), "average": lambda v: v.mean(0), "sqrt": lambda v: v.sum(0) / np.sqrt(len(v)),
                   "max": lambda v: v[v.argmax(0), np.arange(WIDTH)], "last": lambda v: v[-1], "first": lambda v: v[0]}[kind]  # fmt: skip
            found.append(one(v) if length else jnp.zeros(WIDTH))
        return jnp.stack(found)

    def sequence(self, e: Expr) -> Any:
        kind, *rest = e
        if kind in ("fed", "text"):
            return self.q if kind == "fed" else self.p
        if kind == "rnn":
            return self.rnn(*rest)
        if kind == "unary":
            return self.curve(rest[0], self.sequence(rest[1]))
        if kind == "cond":
            return self.sequence(rest[1] if self.test(*rest[0]) else rest[2])
        if kind == "walk":
            found = given = self.sequence(rest[1])
            for _ in range(self.n if rest[0] == "fed" else rest[0]):
                found = jnp.tanh(found @ self.m + given)
            return found
        given, each = self.sequence(rest[0]), np.repeat(np.arange(len(self.lengths)), self.lengths)
        if kind == "plus":
            return given + self(rest[1])[each]
        if kind == "fc":
            return jnp.tanh(given @ self.m)
        ends = np.cumsum(self.lengths)[each]
        return given[2 * ends - np.array(self.lengths)[each] - 1 - np.arange(len(each))]

    def pages(self, outer: str, inner: str, text: Expr) -> Any:
        return self.pooled(
            outer, self.pooled(inner, self.sequence(text), self.sentences), self.lengths
        )

    def reading(self, text: Expr, kind: str, start: Expr, step: Expr) -> Any:
        return self.pooled(
            "sum",
            self.stepped(
                self.pooled(kind, self.sequence(text), self.sentences), start, False, step
            ),
            self.lengths,
        )

    def rnn(self, seq: Expr, start: Expr, static: bool, step: Expr) -> Any:
        return self.stepped(self.sequence(seq), start, static, step)

    def stepped(self, given: Any, start: Expr, static: bool, step: Expr) -> Any:
        state, lengths = self(start), np.array(self.lengths)
        first, out = np.cumsum(lengths) - lengths, jnp.zeros_like(given)
        for t in range(max(lengths)):
            going = np.nonzero(lengths > t)[0]
            more = [self.values[-1][going]] if static else []
            after = jnp.tanh(self.on(given[first[going] + t], state[going], *more)(step))
            state, out = state.at[going].set(after), out.at[first[going] + t].set(after)
        return out


def by_hand(net: Net, margin: Margin) -> Callable[..., Any]:
    """The loss of a net as a function of x, q, w, m and p."""

    def loss(x: Any, q: Any, w: Any, m: Any, p: Any) -> Any:
        out = Plain((x,), w, m, q, net.lengths, net.count, margin, p, tuple(sentences(net)))(
            net.tree
        )
        return (out**2).sum() + (x * w).mean()

    return loss
