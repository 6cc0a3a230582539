"""Networks with rank tables, DynamicRNN and IfElse, as control_nets.py has others: functions of the
fluid module.
"""

import numpy as np

try:
    from control_nets import parameter
except ImportError:
    from .control_nets import parameter


def rows(lengths, width=3, seed=0):
    """sequences of these lengths, of rows of numbers"""
    at = np.cumsum([0] + list(lengths))
    values = (
        np.sin(np.arange(at[-1] * width, dtype="float32") * 1.3 + seed)
        .reshape(-1, width)
        .astype("float32")
    )
    return [values[a:b] for a, b in zip(at, at[1:])]


def sentences(layers, name="x", width=3, level=1):
    x = layers.data(name, [width], lod_level=level)
    x.stop_gradient = False
    return x


def named(fluid, name):
    return fluid.ParamAttr(name=name)


def fc(fluid, inputs, size, name, act=None):
    inputs = inputs if isinstance(inputs, list) else [inputs]
    attrs = [named(fluid, "%s.w%d" % (name, i)) for i in range(len(inputs))]
    return fluid.layers.fc(
        inputs, size, param_attr=attrs, bias_attr=named(fluid, name + ".b"), act=act
    )


def squares(layers, v):
    return layers.mean(layers.square(v))


def value_memory(fluid):
    """a memory that begins with a number, and two outputs"""
    layers = fluid.layers
    inputs = fc(fluid, sentences(layers), 4, "in")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(inputs)
        before = rnn.memory(shape=[4], value=0.5)
        hidden = fc(fluid, [word, before], 4, "h", "tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden, fc(fluid, hidden, 2, "o"))
    hidden, out = rnn()
    return (
        squares(layers, layers.sequence_last_step(hidden))
        + squares(layers, layers.sequence_pool(out, "sqrt")) * 0.1
    )


def init_memory(fluid):
    """two memories that begin with variables, one of them in the order of the sentences"""
    layers = fluid.layers
    x, boot = sentences(layers), layers.data("boot", [4])
    begin, side = fc(fluid, boot, 4, "boot", "tanh"), fc(fluid, boot, 4, "other", "tanh")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        first, other = rnn.memory(init=begin, need_reorder=True), rnn.memory(init=side)
        hidden = fc(fluid, [word, first, other], 4, "h", "tanh")
        rnn.update_memory(first, hidden)
        rnn.update_memory(other, hidden + other)
        rnn.output(hidden)
    return squares(layers, rnn())


def attention(fluid):
    """a static input with a LoD of its own, as in machine translation"""
    layers = fluid.layers
    source, target = sentences(layers, "source"), sentences(layers, "x")
    encoded = fc(fluid, source, 4, "enc", "tanh")
    last = layers.sequence_last_step(encoded)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(target)
        memory = rnn.static_input(encoded)
        state = rnn.memory(init=last, need_reorder=True)
        spread = layers.sequence_expand(fc(fluid, state, 4, "q"), memory)
        weights = layers.sequence_softmax(fc(fluid, layers.tanh(memory + spread), 1, "score"))
        weights = layers.reshape(weights, [-1])
        context = layers.sequence_pool(layers.elementwise_mul(memory, weights, axis=0), "sum")
        after = fc(fluid, [word, context, state], 4, "h", "tanh")
        rnn.update_memory(state, after)
        rnn.output(fc(fluid, after, 5, "out", "softmax"))
    label = layers.data("label", [1], dtype="int64", lod_level=1)
    return layers.mean(layers.cross_entropy(rnn(), label))


def static_rows(fluid):
    """a static input without a LoD: a row for each sentence"""
    layers = fluid.layers
    x, side = sentences(layers), fc(fluid, layers.data("boot", [4]), 4, "side")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, given = rnn.step_input(x), rnn.static_input(side)
        total = rnn.memory(shape=[4])
        after = layers.tanh(fc(fluid, word, 4, "w") + given) + total
        rnn.update_memory(total, after)
        rnn.output(after)
    return squares(layers, layers.sequence_pool(rnn(), "max"))


def words(fluid):
    """a table that is looked up within the loop; 1.8.5 takes no sparse gradient out of one"""
    layers = fluid.layers
    ids = layers.data("ids", [1], dtype="int64", lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = layers.embedding(rnn.step_input(ids), [7, 4], param_attr=named(fluid, "table"))
        before = rnn.memory(shape=[4])
        after = layers.tanh(word + before)
        rnn.update_memory(before, after)
        rnn.output(after)
    return squares(layers, rnn())


def nested(fluid):
    """paragraphs of sentences: a loop over sentences with a loop over words in it"""
    layers = fluid.layers
    x = sentences(layers, level=2)
    outer = layers.DynamicRNN()
    with outer.block():
        sentence = outer.step_input(x)
        before = outer.memory(shape=[4])
        inner = layers.DynamicRNN()
        with inner.block():
            word = inner.step_input(sentence)
            state = inner.memory(init=before, need_reorder=True)
            after = fc(fluid, [word, state], 4, "inner", "tanh")
            inner.update_memory(state, after)
            inner.output(after)
        new = fc(fluid, [layers.sequence_last_step(inner()), before], 4, "outer", "tanh")
        outer.update_memory(before, new)
        outer.output(new)
    return squares(layers, outer())


def cond_within(fluid):
    layers = fluid.layers
    w = parameter(layers, fluid, "w", [3])
    x = sentences(layers)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[3])
        positive = layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(w))
        after = layers.cond(positive, lambda: layers.tanh(word * w + before), lambda: word * w)
        rnn.update_memory(before, after)
        rnn.output(after)
    return squares(layers, rnn())


def branch(fluid):
    layers = fluid.layers
    x, y = layers.data("x", [4]), layers.data("y", [1])
    h = fc(fluid, x, 3, "h")
    both = layers.IfElse(
        layers.less_than(y, layers.fill_constant_batch_size_like(y, [-1, 1], "float32", 0.0))
    )
    with both.true_block():
        both.output(fc(fluid, both.input(h), 3, "true", "tanh"), layers.scale(both.input(x), 2.0))
    with both.false_block():
        both.output(layers.square(both.input(h)), both.input(x))
    out, other = both()
    return squares(layers, out) + squares(layers, layers.elementwise_mul(other, x))


def branch_of_sequences(fluid):
    layers = fluid.layers
    x, y = sentences(layers), layers.data("y", [1])
    both = layers.IfElse(
        layers.less_than(y, layers.fill_constant_batch_size_like(y, [-1, 1], "float32", 0.0))
    )
    with both.true_block():
        both.output(fc(fluid, both.input(x), 3, "true", "tanh"))
    with both.false_block():
        both.output(fc(fluid, both.input(x), 3, "false"))
    return squares(layers, both()[0])


def branch_within(fluid):
    """IfElse within a DynamicRNN"""
    layers = fluid.layers
    x = sentences(layers)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[3])
        total = layers.reduce_sum(word, dim=1, keep_dim=True)
        both = layers.IfElse(
            layers.less_than(
                total, layers.fill_constant_batch_size_like(word, [-1, 1], "float32", 0.0)
            )
        )
        with both.true_block():
            both.output(fc(fluid, both.input(word), 3, "true", "tanh"))
        with both.false_block():
            both.output(fc(fluid, both.input(word), 3, "false"))
        after = both()[0] + before
        rnn.update_memory(before, after)
        rnn.output(after)
    return squares(layers, rnn())


def reordered(fluid):
    layers = fluid.layers
    x, side = sentences(layers), layers.data("boot", [4])
    table = layers.control_flow.lod_rank_table(x)
    longest = layers.cast(layers.control_flow.max_sequence_len(table), "float32")
    moved = layers.reorder_lod_tensor_by_rank(fc(fluid, x, 4, "x"), table)
    ranked = layers.reorder_lod_tensor_by_rank(fc(fluid, side, 4, "side"), table)
    weighed = layers.sequence_pool(moved, "sum") * ranked
    back = layers.control_flow.array_to_lod_tensor(
        layers.control_flow.lod_tensor_to_array(fc(fluid, x, 4, "y"), table), table
    )
    return squares(layers, weighed) * longest * 0.002 + squares(
        layers, layers.sequence_pool(back, "first")
    )


LENGTHS = [[3, 1, 3], [2, 4, 1], [2, 2, 2]]
BOOT = np.cos(np.arange(12, dtype="float32")).reshape(3, 4).astype("float32")
X = rows([3, 3, 3, 3], 4)
Y = np.array([[1.0], [-1.0], [2.0]], "float32")
WORDS = [np.arange(n, dtype="int64")[:, None] % 7 for n in (9, 5, 6)]

NETS = [
    value_memory,
    init_memory,
    attention,
    static_rows,
    words,
    nested,
    cond_within,
    branch,
    branch_of_sequences,
    branch_within,
    reordered,
]
FEEDS = {
    net.__name__: [{"x": rows(lengths, seed=k)} for k, lengths in enumerate(LENGTHS)]
    for net in NETS
}
for _name in ("init_memory", "static_rows", "reordered"):
    FEEDS[_name] = [dict(f, boot=BOOT * (k + 1)) for k, f in enumerate(FEEDS[_name])]
FEEDS["value_memory"] += [{"x": rows([4])}, {"x": rows([0, 4, 0])}]
FEEDS["attention"] = [
    dict(
        f,
        source=rows([n[2], n[1], n[0] + 1], seed=5),
        label=[np.arange(m, dtype="int64")[:, None] % 5 for m in n],
    )
    for f, n in zip(FEEDS["attention"], LENGTHS)
]
FEEDS["words"] = [
    {"ids": [np.arange(k, k + m, dtype="int64")[:, None] % 7 for m in n]}
    for k, n in enumerate(LENGTHS)
]
FEEDS["branch"] = [{"x": np.concatenate(X[:1]), "y": y} for y in (Y, -Y, np.abs(Y), -np.abs(Y))]
FEEDS["branch_of_sequences"] = [
    dict(f, y=y) for f, y in zip(FEEDS["branch_of_sequences"], (Y, -Y, np.abs(Y)))
]
FEEDS["nested"] = [
    {"x": {"rows": np.concatenate(rows([8], seed=k)), "lengths": n}}
    for k, n in enumerate([[[2, 1], [3, 2, 3]], [[1, 2], [4, 3, 1]], [[0, 3], [1, 3, 4]]])
]
