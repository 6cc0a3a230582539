"""Trains a small Transformer from a py_reader with label smoothing and noam decay, then translates by beam search in a While."""
from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers

from utility import set_parameters

WORDS, MODEL, HEADS, INNER, LENGTH, BATCH, BEAM, OUT_LEN = 14, 8, 2, 16, 5, 3, 2, 4
BOS, EOS = 0, 1


def multi_head_attention(queries, keys, values, attn_bias, cache=None):
    keys = queries if keys is None else keys
    values = keys if values is None else values
    q, k, v = [layers.fc(input=x, size=MODEL, bias_attr=False, num_flatten_dims=2) for x in (queries, keys, values)]
    if cache is not None:
        k = cache["k"] = layers.concat([cache["k"], k], axis=1)
        v = cache["v"] = layers.concat([cache["v"], v], axis=1)

    def split_heads(x):
        return layers.transpose(x=layers.reshape(x=x, shape=[0, 0, HEADS, MODEL // HEADS]), perm=[0, 2, 1, 3])
    q, k, v = split_heads(q), split_heads(k), split_heads(v)
    product = layers.matmul(x=q, y=k, transpose_y=True, alpha=(MODEL // HEADS) ** -0.5)
    if attn_bias is not None:
        product += attn_bias
    out = layers.transpose(layers.matmul(layers.softmax(product), v), perm=[0, 2, 1, 3])
    out = layers.reshape(x=out, shape=[0, 0, MODEL], inplace=True)
    return layers.fc(input=out, size=MODEL, bias_attr=False, num_flatten_dims=2)


def pre_process_layer(x):
    return layers.layer_norm(
        x, begin_norm_axis=len(x.shape) - 1, param_attr=fluid.initializer.Constant(1.), bias_attr=fluid.initializer.Constant(0.))


def positionwise_feed_forward(x):
    hidden = layers.fc(input=x, size=INNER, num_flatten_dims=2, act="relu")
    return layers.fc(input=hidden, size=MODEL, num_flatten_dims=2)


def prepare(word, pos, word_emb, pos_emb):
    emb = layers.embedding(word, size=[WORDS, MODEL], padding_idx=EOS, param_attr=fluid.ParamAttr(
        name=word_emb, initializer=fluid.initializer.Normal(0., MODEL ** -0.5)))
    emb = layers.scale(x=emb, scale=MODEL ** 0.5)
    pos_enc = layers.embedding(pos, size=[LENGTH + 2, MODEL], param_attr=fluid.ParamAttr(name=pos_emb, trainable=False))
    pos_enc.stop_gradient = True
    return emb + pos_enc


def encoder(word, pos, bias):
    x = prepare(word, pos, "src_word_emb_table", "src_pos_enc_table")
    normed = pre_process_layer(x)
    x = x + multi_head_attention(normed, None, None, bias)
    x = x + positionwise_feed_forward(pre_process_layer(x))
    return pre_process_layer(x)


def decoder(word, pos, self_bias, cross_bias, enc, cache=None):
    x = prepare(word, pos, "trg_word_emb_table", "trg_pos_enc_table")
    normed = pre_process_layer(x)
    x = x + multi_head_attention(normed, None, None, self_bias, cache)
    x = x + multi_head_attention(pre_process_layer(x), enc, enc, cross_bias)
    x = x + positionwise_feed_forward(pre_process_layer(x))
    return layers.fc(input=pre_process_layer(x), size=WORDS, bias_attr=False, num_flatten_dims=2)


def build_train():
    shapes = [[-1, LENGTH, 1]] * 2 + [[-1, HEADS, LENGTH, LENGTH]] + [[-1, LENGTH, 1]] * 2 + [[-1, HEADS, LENGTH, LENGTH]] * 2 + [[-1, 1]] * 2
    dtypes = ["int64"] * 2 + ["float32"] + ["int64"] * 2 + ["float32"] * 2 + ["int64", "float32"]
    reader = layers.py_reader(capacity=4, shapes=shapes, dtypes=dtypes, lod_levels=[0] * len(shapes), name="train_reader")
    src, src_pos, src_bias, trg, trg_pos, trg_bias, cross_bias, label, weights = layers.read_file(reader)
    enc = encoder(src, src_pos, src_bias)
    predict = layers.reshape(decoder(trg, trg_pos, trg_bias, cross_bias, enc), shape=[-1, WORDS])
    soft = layers.label_smooth(label=layers.one_hot(input=label, depth=WORDS), epsilon=0.1)
    cost = layers.softmax_with_cross_entropy(logits=predict, label=soft, soft_label=True)
    weighted_cost = cost * weights
    sum_cost = layers.reduce_sum(weighted_cost)
    token_num = layers.reduce_sum(weights)
    token_num.stop_gradient = True
    return sum_cost, sum_cost / token_num, token_num, reader


def build_fast_decoder():
    src = layers.data(name="src_word", shape=[LENGTH, 1], dtype="int64")
    src_pos = layers.data(name="src_pos", shape=[LENGTH, 1], dtype="int64")
    src_bias = layers.data(name="src_slf_attn_bias", shape=[HEADS, LENGTH, LENGTH], dtype="float32")
    start_tokens = layers.data(name="trg_word", shape=[1, 1], dtype="int64", lod_level=2)
    init_scores = layers.data(name="init_score", shape=[1], dtype="float32", lod_level=2)
    cross_bias = layers.data(name="trg_src_attn_bias", shape=[HEADS, 1, LENGTH], dtype="float32")
    enc = encoder(src, src_pos, src_bias)
    max_len = layers.fill_constant(shape=[1], dtype=start_tokens.dtype, value=OUT_LEN, force_cpu=True)
    step_idx = layers.fill_constant(shape=[1], dtype=start_tokens.dtype, value=0, force_cpu=True)
    cond = layers.less_than(x=step_idx, y=max_len)
    while_op = layers.While(cond)
    ids = layers.array_write(layers.reshape(start_tokens, (-1, 1)), step_idx)
    scores = layers.array_write(init_scores, step_idx)
    cache = {k: layers.fill_constant_batch_size_like(
        input=start_tokens, shape=[-1, 0, MODEL], dtype=enc.dtype, value=0) for k in ("k", "v")}
    with while_op.block():
        pre_ids = layers.reshape(layers.array_read(array=ids, i=step_idx), (-1, 1, 1))
        pre_scores = layers.array_read(array=scores, i=step_idx)
        pre_src_attn_bias = layers.sequence_expand(x=cross_bias, y=pre_scores)
        pre_enc_output = layers.sequence_expand(x=enc, y=pre_scores)
        pre_caches = {k: layers.sequence_expand(x=v, y=pre_scores) for k, v in cache.items()}
        pre_pos = layers.elementwise_mul(
            x=layers.fill_constant_batch_size_like(input=pre_enc_output, value=1, shape=[-1, 1, 1], dtype=pre_ids.dtype), y=step_idx, axis=0)
        new = dict(pre_caches)
        logits = layers.reshape(decoder(pre_ids, pre_pos, None, pre_src_attn_bias, pre_enc_output, new), (-1, WORDS))
        topk_scores, topk_indices = layers.topk(input=layers.softmax(logits), k=BEAM)
        accu_scores = layers.elementwise_add(x=layers.log(topk_scores), y=layers.reshape(pre_scores, shape=[-1]), axis=0)
        accu_scores = layers.lod_reset(accu_scores, pre_ids)
        selected_ids, selected_scores = layers.beam_search(
            pre_ids=layers.reshape(pre_ids, (-1, 1)), pre_scores=pre_scores, ids=topk_indices, scores=accu_scores, beam_size=BEAM, end_id=EOS)
        layers.increment(x=step_idx, value=1.0, in_place=True)
        layers.array_write(selected_ids, i=step_idx, array=ids)
        layers.array_write(selected_scores, i=step_idx, array=scores)
        layers.assign(pre_src_attn_bias, cross_bias)
        layers.assign(pre_enc_output, enc)
        for k in cache:
            layers.assign(new[k], cache[k])
        length_cond = layers.less_than(x=step_idx, y=max_len)
        finish_cond = layers.logical_not(layers.is_empty(x=selected_ids))
        layers.logical_and(x=length_cond, y=finish_cond, out=cond)
    return layers.beam_search_decode(ids, scores, beam_size=BEAM, end_id=EOS)


def pad(lengths):
    mask = np.arange(LENGTH).reshape(1, -1) < np.array(lengths).reshape(-1, 1)
    return np.tile(np.where(mask, 0.0, -1e9).reshape(-1, 1, 1, LENGTH), (1, HEADS, LENGTH, 1)).astype("float32")


def batches():
    rng = np.random.RandomState(13)
    pos = np.tile(np.arange(LENGTH).reshape(1, -1, 1), (BATCH, 1, 1)).astype("int64")
    future = np.triu(np.full((LENGTH, LENGTH), -1e9), 1).reshape(1, 1, LENGTH, LENGTH)
    for _ in range(3):
        src = rng.randint(2, WORDS, (BATCH, LENGTH, 1)).astype("int64")
        lengths = rng.randint(2, LENGTH + 1, BATCH)
        bias = pad(lengths)
        trg = np.concatenate([np.zeros((BATCH, 1, 1), "int64"), src[:, :0:-1]], 1)
        weights = (np.arange(LENGTH).reshape(1, -1) < lengths.reshape(-1, 1)).astype("float32").reshape(-1, 1)
        yield src, pos, bias, trg, pos, (bias + future).astype("float32"), bias, src[:, ::-1].reshape(-1, 1), weights


def main():
    train_prog, startup_prog, infer_prog = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(train_prog, startup_prog), fluid.unique_name.guard():
        sum_cost, avg_cost, token_num, reader = build_train()
        lr_decay = layers.noam_decay(MODEL, 4)
        optimizer = fluid.optimizer.Adam(learning_rate=lr_decay * 0.3, beta1=0.9, beta2=0.997, epsilon=1e-9)
        optimizer.minimize(avg_cost)
    with fluid.program_guard(infer_prog, fluid.Program()), fluid.unique_name.guard():
        out_ids, out_scores = build_fast_decoder()
    infer_prog = infer_prog.clone(for_test=True)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    set_parameters(train_prog, place, 2.0)
    reader.decorate_tensor_provider(batches)
    reader.start()
    step = 0
    try:
        while True:
            outs = exe.run(train_prog, fetch_list=[sum_cost.name, avg_cost.name, token_num.name, lr_decay.name])
            print("step %d sum %.5f avg %.6f tokens %d lr %.6f" % ((step,) + tuple(np.array(v).reshape(-1)[0] for v in outs)))
            step += 1
    except fluid.core.EOFException:
        reader.reset()
    src, pos, bias = next(batches())[:3]
    lod = [list(range(BATCH + 1))] * 2
    trg_word, init_score = fluid.LoDTensor(), fluid.LoDTensor()
    trg_word.set(np.full((BATCH, 1, 1), BOS, "int64"), place)
    init_score.set(np.zeros((BATCH, 1), "float32"), place)
    for tensor in (trg_word, init_score):
        tensor.set_lod(lod)
    feed = {"src_word": src, "src_pos": pos, "src_slf_attn_bias": bias, "trg_word": trg_word, "init_score": init_score,
            "trg_src_attn_bias": bias[:, :, :1]}
    ids, scores = exe.run(infer_prog, feed=feed, fetch_list=[out_ids, out_scores], return_numpy=False)
    print("beams", ids.lod(), np.array(ids).reshape(-1).tolist())
    print("beams", " ".join("%.4f" % v for v in np.array(scores).reshape(-1)))


if __name__ == "__main__":
    main()
