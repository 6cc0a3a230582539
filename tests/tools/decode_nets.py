"""Networks that decode, as functions of the fluid module: each returns what to fetch, or a loss to
train by (TRAINED).

Importable on Python 3.8 with nothing but NumPy. What must be fed stands in FEEDS, by data variable.
"""

import numpy as np

HIDDEN, WORDS, END = 6, 12, 1


def attr(fluid, name):
    return fluid.ParamAttr(name=name)


def book(fluid, beam=3, longest=6, finish=True):
    """the decoder of the book's chapter on machine translation"""
    L = fluid.layers
    context = L.tanh(
        L.fc(
            fluid.data("context", [None, 4]),
            HIDDEN,
            param_attr=attr(fluid, "init_w"),
            bias_attr=False,
        )
    )
    init_ids = fluid.data("init_ids", [None, 1], "int64", lod_level=2)
    init_scores = fluid.data("init_scores", [None, 1], "float32", lod_level=2)
    length = L.fill_constant([1], "int64", longest)
    counter = L.zeros([1], "int64", force_cpu=True)
    states = L.create_array("float32")
    L.array_write(context, i=counter, array=states)
    ids, scores = L.create_array("int64"), L.create_array("float32")
    L.array_write(init_ids, i=counter, array=ids)
    L.array_write(init_scores, i=counter, array=scores)
    going = L.less_than(x=counter, y=length)
    loop = L.While(cond=going)
    with loop.block():
        pre_ids, pre_state, pre_score = (
            L.array_read(array=a, i=counter) for a in (ids, states, scores)
        )
        state = L.sequence_expand(pre_state, pre_score)
        word = L.embedding(
            pre_ids, size=[WORDS, HIDDEN], param_attr=attr(fluid, "vemb"), is_sparse=True
        )
        state = L.fc(
            [state, word],
            HIDDEN,
            act="tanh",
            param_attr=[attr(fluid, "wa"), attr(fluid, "wb")],
            bias_attr=attr(fluid, "wc"),
        )
        with_lod = L.lod_reset(x=state, y=pre_score)
        score = L.fc(
            with_lod,
            WORDS,
            act="softmax",
            param_attr=attr(fluid, "out_w"),
            bias_attr=attr(fluid, "out_b"),
        )
        best, at = L.topk(score, k=beam)
        total = L.elementwise_add(x=L.log(best), y=L.reshape(pre_score, shape=[-1]), axis=0)
        new_ids, new_scores = L.beam_search(
            pre_ids, pre_score, at, total, beam, end_id=END, level=0
        )
        L.increment(x=counter, value=1, in_place=True)
        L.array_write(state, array=states, i=counter)
        L.array_write(new_ids, array=ids, i=counter)
        L.array_write(new_scores, array=scores, i=counter)
        left = L.less_than(x=counter, y=length)
        if finish:
            L.logical_and(x=left, y=L.logical_not(L.is_empty(new_ids)), out=going)
        else:
            L.less_than(x=counter, y=length, cond=going)
    return list(L.beam_search_decode(ids=ids, scores=scores, beam_size=beam, end_id=END))


def book_to_the_end(fluid):
    """sources end, and others go on; a sentence ends long before the loop does"""
    return book(fluid, beam=2, longest=12)


def carried_rows(fluid, beam=2):
    """values that the loop hands on without arrays, gathered by the rows that the beams extend"""
    L = fluid.layers
    memory = fluid.data("context", [None, 4])
    ids = L.assign(fluid.data("init_ids", [None, 1], "int64", lod_level=2))
    scores = L.assign(fluid.data("init_scores", [None, 1], "float32", lod_level=2))
    state = L.assign(memory)
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 4)
    going = L.less_than(i, n)
    all_ids, all_scores = L.create_array("int64"), L.create_array("float32")
    L.array_write(ids, i, all_ids)
    L.array_write(scores, i, all_scores)
    loop = L.While(going)
    with loop.block():
        before = L.scale(state, 0.9)
        after = L.fc(
            L.concat([before, L.embedding(ids, [WORDS, 3], param_attr=attr(fluid, "emb"))], 1),
            4,
            act="tanh",
            param_attr=attr(fluid, "w"),
            bias_attr=False,
        )
        logits = L.fc(
            L.lod_reset(after, scores), WORDS, param_attr=attr(fluid, "out"), bias_attr=False
        )
        best, at = L.topk(L.softmax(logits), k=beam + 1)
        new_ids, new_scores, parents = L.beam_search(
            ids, scores, at, best, beam, END, is_accumulated=False, return_parent_idx=True
        )
        L.assign(L.gather(after, parents), state)
        L.assign(new_ids, ids)
        L.assign(new_scores, scores)
        L.increment(i)
        L.array_write(new_ids, i, all_ids)
        L.array_write(new_scores, i, all_scores)
        L.less_than(i, n, cond=going)
    return list(L.beam_search_decode(all_ids, all_scores, beam, END))


def cell(fluid, name="cell"):
    return fluid.layers.GRUCell(
        HIDDEN, param_attr=attr(fluid, name + "_w"), bias_attr=attr(fluid, name + "_b")
    )


def scores_of(fluid):
    L = fluid.layers
    return lambda x: L.fc(
        x,
        WORDS,
        num_flatten_dims=len(x.shape) - 1,
        param_attr=attr(fluid, "out_w"),
        bias_attr=attr(fluid, "out_b"),
    )


def words_of(fluid):
    return lambda ids: fluid.embedding(ids, size=[WORDS, 4], param_attr=attr(fluid, "emb"))


def beam_decoder(fluid, is_test=False, **more):
    L = fluid.layers
    decoder = L.BeamSearchDecoder(cell(fluid), 0, END, 3, words_of(fluid), scores_of(fluid))
    found = L.dynamic_decode(
        decoder, inits=fluid.data("h", [None, HIDDEN]), max_step_num=5, is_test=is_test, **more
    )
    return [found[0], found[1].log_probs, found[1].lengths] + list(found[2:])


def beam_decoder_test(fluid):
    return beam_decoder(fluid, is_test=True, output_time_major=True, return_length=True)


def beam_decoder_imputed(fluid):
    return beam_decoder(fluid, impute_finished=True, return_length=True)


def beam_decoder_two_states(fluid):
    """an LSTM's states, and a tiled encoder output"""
    L = fluid.layers
    lstm = L.LSTMCell(HIDDEN, param_attr=attr(fluid, "cell_w"), bias_attr=attr(fluid, "cell_b"))
    memory = L.BeamSearchDecoder.tile_beam_merge_with_batch(fluid.data("m", [None, 3, HIDDEN]), 2)

    class Attends(L.RNNCell):
        def call(self, inputs, states):
            out, new = lstm(inputs, states)
            return L.reduce_max(L.elementwise_mul(memory, L.unsqueeze(out, [1])), dim=1), new

    decoder = L.BeamSearchDecoder(Attends(), 0, END, 2, words_of(fluid), scores_of(fluid))
    h = fluid.data("h", [None, HIDDEN])
    (found, last) = L.dynamic_decode(decoder, inits=[h, L.scale(h, 0.5)], max_step_num=4)
    return [found, last.cell_states[1]]


def greedy(fluid, is_test=False):
    L = fluid.layers
    helper = L.GreedyEmbeddingHelper(words_of(fluid), fluid.data("start", [None], "int64"), END)
    decoder = L.BasicDecoder(cell(fluid), helper, scores_of(fluid))
    found, last, lengths = L.dynamic_decode(
        decoder,
        inits=fluid.data("h", [None, HIDDEN]),
        max_step_num=4,
        is_test=is_test,
        return_length=True,
    )
    return [found.cell_outputs, found.sample_ids, last, lengths]


def greedy_test(fluid):
    return greedy(fluid, is_test=True)


def sampled(fluid):
    """ids are drawn, so only the program is recorded"""
    L = fluid.layers
    helper = L.SampleEmbeddingHelper(
        words_of(fluid), fluid.data("start", [None], "int64"), END, softmax_temperature=0.5, seed=3
    )
    decoder = L.BasicDecoder(cell(fluid), helper, scores_of(fluid))
    return [
        L.dynamic_decode(decoder, inits=fluid.data("h", [None, HIDDEN]), max_step_num=4)[
            0
        ].cell_outputs
    ]


def taught(fluid, time_major=False, **more):
    """training with the true words as inputs"""
    L = fluid.layers
    x = fluid.data("y" if time_major else "x", [3, 4, 5] if not time_major else [4, 3, 5])
    helper = L.TrainingHelper(
        x, fluid.data("lengths", [3], "int32" if time_major else "int64"), time_major
    )
    decoder = L.BasicDecoder(cell(fluid), helper, scores_of(fluid))
    h = L.fc(
        fluid.data("h", [3, HIDDEN]),
        HIDDEN,
        act="tanh",
        param_attr=attr(fluid, "init"),
        bias_attr=False,
    )
    found, last = L.dynamic_decode(decoder, inits=h, max_step_num=3, **more)
    return L.reduce_mean(L.square(found.cell_outputs)) + L.reduce_sum(last)


def taught_by_time(fluid):
    return taught(fluid, time_major=True, output_time_major=True, impute_finished=True)


def layers_of_gru(fluid):
    """two layers, both directions, with lengths"""
    x = fluid.data("x", [3, 4, 5])
    x.stop_gradient = False
    out, last = fluid.contrib.layers.basic_gru(
        x,
        None,
        4,
        num_layers=2,
        sequence_length=fluid.data("lengths", [3], "int64"),
        bidirectional=True,
        param_attr=attr(fluid, "w"),
        bias_attr=attr(fluid, "b"),
    )
    return fluid.layers.reduce_mean(out) + fluid.layers.reduce_sum(last)


def layers_of_lstm(fluid):
    """both directions from given states, time first"""
    y, states = fluid.data("y", [4, 3, 5]), fluid.data("states", [4, 3, 4])
    y.stop_gradient = False
    out, last, cell = fluid.contrib.layers.basic_lstm(
        y,
        states,
        states,
        4,
        num_layers=2,
        bidirectional=True,
        batch_first=False,
        param_attr=attr(fluid, "w"),
        bias_attr=attr(fluid, "b"),
        forget_bias=0.5,
    )
    return fluid.layers.reduce_mean(out) + fluid.layers.reduce_sum(
        fluid.layers.elementwise_mul(last, cell)
    )


def layer_of_lstm(fluid):
    """one layer, one direction, without states"""
    x = fluid.data("x", [3, 4, 5])
    x.stop_gradient = False
    out, last, cell = fluid.contrib.layers.basic_lstm(
        x, None, None, 4, sequence_length=fluid.data("lengths", [3], "int64")
    )
    return fluid.layers.reduce_mean(out) + fluid.layers.reduce_sum(
        fluid.layers.elementwise_mul(last, cell)
    )


def matched(fluid):
    """two texts, matched as pictures"""
    C, L = fluid.contrib.layers, fluid.layers
    left, right = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in ("left", "right"))
    a, b = (
        L.add_position_encoding(L.embedding(v, [WORDS, 4], param_attr=attr(fluid, "emb")), 0.2, 0.1)
        for v in (left, right)
    )
    grid, _ = C.match_matrix_tensor(a, b, 2, act="tanh", param_attr=attr(fluid, "match"))
    image = C.var_conv_2d(grid, a, b, 2, 3, [3, 3], act="relu", param_attr=attr(fluid, "conv"))
    best = C.sequence_topk_avg_pooling(image, a, b, [1, 2], 3)
    bags = C.fused_embedding_seq_pool(left, [WORDS, 6], param_attr=attr(fluid, "bags"))
    return L.mean(L.square(best)) + L.mean(L.square(bags))


def over_trees(fluid):
    edges = fluid.data("edges", [2, 4, 2], "int32")
    nodes = fluid.data("nodes", [2, 5, 3])
    nodes.stop_gradient = False
    out = fluid.contrib.layers.tree_conv(
        nodes, edges, 4, 2, 3, param_attr=attr(fluid, "tree_w"), bias_attr=attr(fluid, "tree_b")
    )
    return fluid.layers.reduce_mean(fluid.layers.square(out))


def state_cell(fluid, h):
    L, D = fluid.layers, fluid.contrib.decoder.beam_search_decoder
    found = D.StateCell(
        inputs={"x": None}, states={"h": D.InitState(init=h, need_reorder=True)}, out_state="h"
    )

    @found.state_updater
    def step(c):
        c.set_state(
            "h",
            L.fc(
                [c.get_state("h"), c.get_input("x")],
                HIDDEN,
                act="tanh",
                param_attr=[attr(fluid, "cell_h"), attr(fluid, "cell_x")],
                bias_attr=attr(fluid, "cell_b"),
            ),
        )

    return found


def contrib_training(fluid):
    """a state cell along sentences"""
    L, D = fluid.layers, fluid.contrib.decoder.beam_search_decoder
    decoder = D.TrainingDecoder(
        state_cell(
            fluid, L.fc(fluid.data("h", [None, HIDDEN]), HIDDEN, param_attr=attr(fluid, "init"))
        )
    )
    words = L.embedding(
        fluid.data("words", [None, 1], "int64", lod_level=1),
        [WORDS, 4],
        param_attr=attr(fluid, "vemb"),
    )
    with decoder.block():
        decoder.state_cell.compute_state(inputs={"x": decoder.step_input(words)})
        shares = L.fc(
            decoder.state_cell.get_state("h"), WORDS, act="softmax", param_attr=attr(fluid, "out_w")
        )
        decoder.state_cell.update_states()
        decoder.output(shares)
    return L.mean(L.square(decoder()))


def contrib_search(fluid):
    """a state cell in a search"""
    D = fluid.contrib.decoder.beam_search_decoder
    ids, scores = (
        fluid.data("init_" + n, [None, 1], kind, lod_level=2)
        for n, kind in (("ids", "int64"), ("scores", "float32"))
    )
    decoder = D.BeamSearchDecoder(
        state_cell(fluid, fluid.data("h", [None, HIDDEN])),
        ids,
        scores,
        WORDS,
        4,
        topk_size=5,
        max_len=6,
        beam_size=2,
    )
    decoder.decode()
    return list(decoder())


NETS = [
    contrib_training,
    contrib_search,
    layers_of_gru,
    layers_of_lstm,
    layer_of_lstm,
    matched,
    over_trees,
    book,
    book_to_the_end,
    carried_rows,
    beam_decoder,
    beam_decoder_test,
    beam_decoder_imputed,
    beam_decoder_two_states,
    greedy,
    greedy_test,
    sampled,
    taught,
    taught_by_time,
]
TRAINED = {
    "contrib_training",
    "taught",
    "taught_by_time",
    "layers_of_gru",
    "layers_of_lstm",
    "layer_of_lstm",
    "matched",
    "over_trees",
}
PROGRAMS_ALONE = {"sampled"}


def numbers(*shape, **more):
    return (
        (np.sin(np.arange(np.prod(shape)) * 1.7 + more.get("at", 0)) * more.get("by", 1.0))
        .reshape(shape)
        .astype("float32")
    )


def sentences(*lengths):
    return np.arange(sum(lengths)).reshape(-1, 1) * 5 % WORDS, [list(lengths)]


ONES = [[1, 1], [1, 1]]
SEARCH = [
    {
        "context": numbers(2, 4, at=k),
        "init_ids": (np.zeros((2, 1), "int64"), ONES),
        "init_scores": (np.ones((2, 1), "float32"), ONES),
    }
    for k in (0, 3)
]
STATE = [{"h": numbers(2, HIDDEN, at=k, by=2.0)} for k in (0, 5)]
EDGES = np.array([[[1, 2], [1, 3], [3, 4], [3, 5]], [[1, 2], [2, 3], [1, 4], [4, 5]]], "int32")
FEEDS = {
    "contrib_training": [
        {"h": numbers(2, HIDDEN), "words": sentences(*lengths)}
        for lengths in ((2, 4), (3, 1), (5, 5))
    ],
    "contrib_search": [
        {
            "h": numbers(2, HIDDEN, at=k),
            "init_ids": (np.zeros((2, 1), "int64"), ONES),
            "init_scores": (np.zeros((2, 1), "float32"), ONES),
        }
        for k in (0, 4)
    ],
    "layers_of_gru": [
        {"x": numbers(3, 4, 5, at=k), "lengths": np.array([4, 2, 3], "int64")} for k in range(3)
    ],
    "layer_of_lstm": [
        {"x": numbers(3, 4, 5, at=k), "lengths": np.array([4, 2, 3], "int64")} for k in range(3)
    ],
    "layers_of_lstm": [{"y": numbers(4, 3, 5, at=k), "states": numbers(4, 3, 4)} for k in range(3)],
    "matched": [
        {"left": sentences(2, 3), "right": sentences(4, 2)},
        {"left": sentences(1, 4), "right": sentences(2, 2)},
        {"left": sentences(3, 3), "right": sentences(1, 5)},
    ],
    "over_trees": [{"nodes": numbers(2, 5, 3, at=k), "edges": EDGES} for k in range(3)],
    "book": SEARCH,
    "book_to_the_end": SEARCH,
    "carried_rows": SEARCH,
    "beam_decoder": STATE,
    "beam_decoder_test": STATE,
    "beam_decoder_imputed": STATE,
    "beam_decoder_two_states": [dict(f, m=numbers(2, 3, HIDDEN)) for f in STATE],
    "greedy": [dict(f, start=np.zeros(2, "int64")) for f in STATE],
    "greedy_test": [dict(f, start=np.zeros(2, "int64")) for f in STATE],
    "sampled": [],
    "taught": [
        {
            "x": numbers(3, 4, 5, at=k),
            "lengths": np.array([4, 2, 3], "int64"),
            "h": numbers(3, HIDDEN),
        }
        for k in range(3)
    ],
    "taught_by_time": [
        {
            "y": numbers(4, 3, 5, at=k),
            "lengths": np.array([3, 4, 1], "int32"),
            "h": numbers(3, HIDDEN),
        }
        for k in range(3)
    ],
}


def initial(name, shape):
    """what a parameter begins with"""
    size = int(np.prod(shape))
    return (
        np.sin(np.arange(1, size + 1, dtype="float32") * 0.7 + len(name))
        .reshape(shape)
        .astype("float32")
        * 1.5
    )


def fed(fluid, value):
    """a value as it is fed: an array, or one with the lengths of its sequences"""
    return (
        fluid.create_lod_tensor(value[0], value[1], fluid.CPUPlace())
        if isinstance(value, tuple)
        else value
    )
