"""A beam search for fluidjax and Paddle 1.8.5: the decoder of the book's chapter on machine
translation, wider.
"""

import numpy as np

BEAMS, STEPS, WORDS, HIDDEN, END = 4, 50, 10000, 256, 1
CASES = {"beam search, 1 sentence": 1, "beam search, 8 sentences": 8}


def net(fluid):
    """The sentences found, and their scores."""
    L, attr = fluid.layers, lambda name: fluid.ParamAttr(name=name)
    context = fluid.data("context", [None, HIDDEN])
    init_ids = fluid.data("init_ids", [None, 1], "int64", lod_level=2)
    init_scores = fluid.data("init_scores", [None, 1], "float32", lod_level=2)
    length, counter = L.fill_constant([1], "int64", STEPS), L.zeros([1], "int64", force_cpu=True)
    states, ids, scores = (
        L.create_array("float32"),
        L.create_array("int64"),
        L.create_array("float32"),
    )
    for value, array in ((context, states), (init_ids, ids), (init_scores, scores)):
        L.array_write(value, i=counter, array=array)
    going = L.less_than(x=counter, y=length)
    loop = L.While(cond=going)
    with loop.block():
        pre_ids, pre_state, pre_score = (
            L.array_read(array=a, i=counter) for a in (ids, states, scores)
        )
        word = L.embedding(pre_ids, size=[WORDS, HIDDEN], param_attr=attr("embedding"))
        state = L.fc(
            [L.sequence_expand(pre_state, pre_score), word],
            HIDDEN,
            act="tanh",
            param_attr=[attr("u"), attr("w")],
        )
        score = L.fc(
            L.lod_reset(x=state, y=pre_score), WORDS, act="softmax", param_attr=attr("out")
        )
        best, at = L.topk(score, k=BEAMS)
        total = L.elementwise_add(x=L.log(best), y=L.reshape(pre_score, shape=[-1]), axis=0)
        new_ids, new_scores = L.beam_search(
            pre_ids, pre_score, at, total, BEAMS, end_id=END, level=0
        )
        L.increment(x=counter, value=1, in_place=True)
        for value, array in ((state, states), (new_ids, ids), (new_scores, scores)):
            L.array_write(value, array=array, i=counter)
        L.logical_and(
            x=L.less_than(x=counter, y=length), y=L.logical_not(L.is_empty(new_ids)), out=going
        )
    return list(L.beam_search_decode(ids=ids, scores=scores, beam_size=BEAMS, end_id=END))


def feed(fluid, sentences, seed=0):
    """What is fed for so many sentences."""
    ones, place = [[1] * sentences] * 2, fluid.CPUPlace()
    return {
        "context": np.random.RandomState(seed)
        .standard_normal((sentences, HIDDEN))
        .astype("float32"),
        "init_ids": fluid.create_lod_tensor(np.zeros((sentences, 1), "int64"), ones, place),
        "init_scores": fluid.create_lod_tensor(np.zeros((sentences, 1), "float32"), ones, place),
    }


def make(fluid, case):
    """A function of how many searches to run, which gives the mean of the ids found last."""
    sentences = CASES[case]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        found = net(fluid)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
    for name, fan in (("embedding", 4), ("u", HIDDEN), ("w", HIDDEN), ("out", 16)):
        tensor = scope.find_var(name).get_tensor()
        shape = np.array(tensor).shape
        numbers = np.random.RandomState(len(name)).standard_normal(shape) / np.sqrt(fan)
        tensor.set(numbers.astype("float32"), fluid.CPUPlace())
    feeds = [feed(fluid, sentences, seed) for seed in range(3)]

    def steps(count):
        for k in range(count):
            ids, _ = exe.run(
                main, feed=feeds[k % 3], fetch_list=found, scope=scope, return_numpy=False
            )
        return float(np.array(ids).mean())

    return steps
