"""Nets on sentences of many lengths, for both fluidjax and Paddle 1.8.5, and their batches:
the book's, at any width.
"""

import functools

import numpy as np

WORDS, VERBS, TAGS = 5000, 300, 59


def _parameter(fluid, name, **more):
    return fluid.ParamAttr(name=name, **more)


def _fc(fluid):
    return functools.partial(fluid.layers.fc, bias_attr=False)


def roles(fluid, width=512, depth=8):
    """Semantic role labelling: alternating LSTMs and a CRF."""
    layers, fc = fluid.layers, _fc(fluid)
    names = ["word", "n2", "n1", "c0", "p1", "p2", "verb", "mark", "target"]
    word, n2, n1, c0, p1, p2, verb, mark, target = [
        fluid.data(n, [None, 1], "int64", lod_level=1) for n in names
    ]
    shared = _parameter(fluid, "emb", trainable=False)
    looked = [
        layers.embedding(v, [WORDS, 32], param_attr=shared) for v in (word, n2, n1, c0, p1, p2)
    ]
    looked += [layers.embedding(verb, [VERBS, 32]), layers.embedding(mark, [2, 5])]
    mixed = layers.sums([fc(e, width, act="tanh") for e in looked])

    def lstm(x, reverse):
        return layers.dynamic_lstm(
            x,
            width,
            candidate_activation="relu",
            gate_activation="sigmoid",
            cell_activation="sigmoid",
            is_reverse=reverse,
        )[0]

    found = lstm(mixed, False)
    for i in range(1, depth):
        mixed = layers.sums([fc(mixed, width, act="tanh"), fc(found, width, act="tanh")])
        found = lstm(mixed, i % 2 == 1)
    scores = layers.sums([fc(mixed, TAGS, act="tanh"), fc(found, TAGS, act="tanh")])
    return layers.mean(
        layers.linear_chain_crf(scores, target, _parameter(fluid, "crfw", learning_rate=1e-3))
    )


def sentiment(fluid, width=512, depth=3):
    """Stacked LSTMs in turning directions, and a class for each sentence."""
    layers, fc = fluid.layers, _fc(fluid)
    word, label = (
        fluid.data("word", [None, 1], "int64", lod_level=1),
        fluid.data("label", [None, 1], "int64"),
    )
    inputs = [fc(layers.embedding(word, [WORDS, 128]), width)]
    inputs.append(layers.dynamic_lstm(inputs[0], width)[0])
    for i in range(2, depth + 1):
        mixed = fc(inputs, width)
        inputs = [mixed, layers.dynamic_lstm(mixed, width, is_reverse=i % 2 == 0)[0]]
    classes = fc([layers.sequence_pool(v, "max") for v in inputs], 2, act="softmax")
    return layers.mean(layers.cross_entropy(classes, label))


def text_cnn(fluid, width=64):
    """The book's convolutions over three and four words, and a class for each sentence."""
    word, label = (
        fluid.data("word", [None, 1], "int64", lod_level=1),
        fluid.data("label", [None, 1], "int64"),
    )
    x = fluid.layers.embedding(word, [WORDS, 64])
    found = [
        fluid.nets.sequence_conv_pool(x, width, size, act="tanh", pool_type="sqrt")
        for size in (3, 4)
    ]
    return fluid.layers.mean(
        fluid.layers.cross_entropy(fluid.layers.fc(found, 2, act="softmax"), label)
    )


def text_lstm(fluid, width=64):
    """One LSTM, and a class for each sentence."""
    word, label = (
        fluid.data("word", [None, 1], "int64", lod_level=1),
        fluid.data("label", [None, 1], "int64"),
    )
    x = fluid.layers.fc(fluid.layers.embedding(word, [WORDS, 64]), 4 * width)
    hidden, _ = fluid.layers.dynamic_lstm(x, 4 * width, use_peepholes=False)
    classes = fluid.layers.fc(fluid.layers.sequence_pool(hidden, "last"), 2, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(classes, label))


def translation(fluid, width=128):
    """An encoder of both directions, and a decoder that attends to it, in a DynamicRNN."""
    layers, fc = fluid.layers, _fc(fluid)
    source, target, following = [
        fluid.data(n, [None, 1], "int64", lod_level=1) for n in ("source", "target", "next")
    ]
    x = layers.embedding(source, [WORDS, width])
    both = [layers.dynamic_gru(fc(x, 3 * width), width, is_reverse=back) for back in (False, True)]
    encoded = layers.concat(both, axis=1)
    keys = fc(encoded, width)
    begin = fc(layers.sequence_first_step(both[1]), width, act="tanh")
    words = layers.embedding(target, [WORDS, width])
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, memory, key = rnn.step_input(words), rnn.static_input(encoded), rnn.static_input(keys)
        state = rnn.memory(init=begin, need_reorder=True)
        query = layers.sequence_expand(fc(state, width), key)
        weights = layers.sequence_softmax(fc(layers.tanh(layers.elementwise_add(key, query)), 1))
        context = layers.sequence_pool(
            layers.elementwise_mul(memory, layers.reshape(weights, [-1]), axis=0), "sum"
        )
        after, _, _ = layers.gru_unit(fc([word, context], 3 * width), state, 3 * width)
        rnn.update_memory(state, after)
        rnn.output(after)
    predicted = fc(rnn(), WORDS, act="softmax")
    return layers.mean(layers.cross_entropy(predicted, following))


def _ids(rng, lengths, high):
    return rng.randint(0, high, (int(np.sum(lengths)), 1)).astype("int64"), lengths


def role_batches(count):
    """10 to 20 sentences of 5 to 60 words."""
    rng = np.random.RandomState(0)
    highs = {
        "word": WORDS,
        "n2": WORDS,
        "n1": WORDS,
        "c0": WORDS,
        "p1": WORDS,
        "p2": WORDS,
        "verb": VERBS,
        "mark": 2,
        "target": TAGS,
    }
    for _ in range(count):
        lengths = rng.randint(5, 61, rng.randint(10, 21)).tolist()
        yield {n: _ids(rng, lengths, high) for n, high in highs.items()}


def sentiment_batches(count):
    rng = np.random.RandomState(0)
    for _ in range(count):
        lengths = rng.randint(10, 201, 32).tolist()
        yield {
            "word": _ids(rng, lengths, WORDS),
            "label": (rng.randint(0, 2, (32, 1)).astype("int64"), None),
        }


def translation_batches(count):
    rng = np.random.RandomState(0)
    for _ in range(count):
        source = rng.randint(5, 51, 16)
        target = np.maximum(source + rng.randint(-4, 5, 16), 3).tolist()
        yield {
            "source": _ids(rng, source.tolist(), WORDS),
            "target": _ids(rng, target, WORDS),
            "next": _ids(rng, target, WORDS),
        }


# name -> net, batches, learning rate
RAGGED = {
    "roles": (roles, role_batches, 0.01), "sentiment": (sentiment, sentiment_batches, 0.002),
    "translation": (translation, translation_batches, 0.01),
    "text-CNN": (text_cnn, sentiment_batches, 0.01), "text-LSTM": (text_lstm, sentiment_batches, 0.01),
}  # fmt: skip


def fed(fluid, batch):
    """A batch as it is fed."""
    place = fluid.CPUPlace()
    return {
        n: rows if lengths is None else fluid.create_lod_tensor(rows, [lengths], place)
        for n, (rows, lengths) in batch.items()
    }
