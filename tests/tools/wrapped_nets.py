"""Scripts that wrap an optimizer in another one; `fluid` is Paddle 1.8.5's, or ours."""

import numpy as np


def layers_of(fluid, act="tanh"):
    """Three layers, the input between them, and the loss."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    h = [x]
    for size in (4, 4, 4):
        h.append(fluid.layers.fc(h[-1], size, act=act))
    return h, fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h[-1], 1), y))


def recompute(fluid, optimizer, loss, checkpoints):
    wrapped = fluid.optimizer.RecomputeOptimizer(optimizer)
    wrapped._set_checkpoints(checkpoints)
    return wrapped.minimize(loss)


def recompute_two(fluid):
    h, loss = layers_of(fluid)
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1), loss, [h[1], h[3]])


def recompute_one(fluid):
    h, loss = layers_of(fluid, "sigmoid")
    return loss, recompute(fluid, fluid.optimizer.Adam(0.1), loss, [h[2]])


def recompute_none_on_path(fluid):
    h, loss = layers_of(fluid)
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1), loss, [])


def recompute_dropout_and_skip(fluid):
    """A mask that is drawn once, a value that two segments read, checkpoints out of order and one
    that nothing reads.
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.dropout(fluid.layers.fc(a, 4, act="tanh"), 0.5, seed=3)
    c = fluid.layers.elementwise_add(fluid.layers.fc(b, 4, act="relu"), a)
    d = fluid.layers.layer_norm(fluid.layers.fc(c, 4, act="tanh"))
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(d, 1), y))
    return loss, recompute(
        fluid,
        fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)),
        loss,
        [d, b, x, loss],
    )


def recompute_shared_and_decayed(fluid):
    """A weight that two segments use, batch_norm, a schedule, clipping by the global norm."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    w = fluid.ParamAttr(name="shared")
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.batch_norm(fluid.layers.fc(a, 4, param_attr=w), act="relu")
    c = fluid.layers.fc(b, 4, param_attr=w, act="tanh")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(c, 1), y))
    rate = fluid.layers.exponential_decay(0.1, 1, 0.5)
    return loss, recompute(
        fluid,
        fluid.optimizer.Momentum(rate, 0.9, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1)),
        loss,
        [a, b, c],
    )


def recompute_parameter_and_feed(fluid):
    """Checkpoints that no op of the path writes: a parameter, and what is fed, beside two values."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="tanh", param_attr=fluid.ParamAttr(name="w"))
    b = fluid.layers.fc(a, 4, act="relu")
    c = fluid.layers.fc(fluid.layers.scale(b, 2.0), 4, act="sigmoid")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(c, 1), y))
    w = fluid.default_main_program().global_block().var("w")
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1), loss, [w, a, y, c])


def recompute_parameter_alone(fluid):
    h, loss = layers_of(fluid)
    return loss, recompute(
        fluid,
        fluid.optimizer.SGD(0.1),
        loss,
        [fluid.default_main_program().global_block().var("fc_1.w_0")],
    )


def recompute_loss_alone(fluid):
    h, loss = layers_of(fluid)
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1), loss, [loss])


def recompute_convolutions_and_dropouts(fluid):
    """Dropouts without a seed and of both kinds, a pool, a convolution; the first segment begins at
    what is fed.
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.reshape(fluid.layers.fc(x, 32, act="relu"), [-1, 2, 4, 4])
    b = fluid.layers.dropout(fluid.layers.conv2d(a, 4, 3, padding=1, act="relu"), 0.25)
    c = fluid.layers.pool2d(fluid.layers.batch_norm(b, act="tanh"), 2, pool_stride=2)
    d = fluid.layers.dropout(fluid.layers.fc(c, 8), 0.5, dropout_implementation="upscale_in_train")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(d, 1), y))
    return loss, recompute(fluid, fluid.optimizer.Adam(0.1), loss, [x, b, d])


def recompute_tied_words(fluid):
    """An embedding whose table is the last product's weight too, dropouts on both sides of a
    checkpoint, a sum of three branches.
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    ids = fluid.layers.cast(
        fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 1.0), "int64"
    )
    a = fluid.layers.embedding(ids, [6, 4], param_attr=fluid.ParamAttr(name="table"))
    a = fluid.layers.dropout(fluid.layers.elementwise_add(a, fluid.layers.fc(x, 4)), 0.1)
    b = fluid.layers.layer_norm(
        fluid.layers.sums([a, fluid.layers.fc(a, 4, act="gelu"), fluid.layers.scale(a, 0.5)])
    )
    c = fluid.layers.dropout(fluid.layers.fc(b, 4, act="tanh"), 0.3, seed=7)
    table = fluid.default_main_program().global_block().var("table")
    logits = fluid.layers.matmul(c, table, transpose_y=True)
    loss = fluid.layers.mean(
        fluid.layers.square_error_cost(fluid.layers.reduce_sum(logits, 1, keep_dim=True), y)
    )
    return loss, recompute(fluid, fluid.optimizer.Adagrad(0.1), loss, [a, b, c])


def recompute_two_losses(fluid):
    """A sum of two losses that branch off at a checkpoint, one with a batch_norm; a third that
    nothing minimizes.
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.batch_norm(fluid.layers.fc(a, 4), act="sigmoid")
    one = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(b, 1), y))
    two = fluid.layers.mean(
        fluid.layers.abs(fluid.layers.elementwise_sub(fluid.layers.fc(a, 1, act="tanh"), y))
    )
    fluid.layers.mean(fluid.layers.fc(b, 2))
    loss = fluid.layers.elementwise_add(one, fluid.layers.scale(two, 0.5))
    return loss, recompute(
        fluid, fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True), loss, [a, b]
    )


def recompute_each_of_two_losses(fluid):
    """Two optimizers of one program, the second of which finds the first one's gradients and
    recomputed ops (with a dropout 1.8.5 fails).
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.fc(a, 4, act="tanh")
    c = fluid.layers.fc(b, 4, act="tanh", param_attr="own.w", bias_attr="own.b")
    one = fluid.layers.mean(
        fluid.layers.square_error_cost(
            fluid.layers.fc(b, 1, param_attr="one.w", bias_attr="one.b"), y
        )
    )
    two = fluid.layers.mean(fluid.layers.fc(c, 2, param_attr="two.w", bias_attr="two.b"))
    wrapped = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    wrapped._set_checkpoints([a, b])
    first = wrapped.minimize(one, parameter_list=["one.w", "one.b"])
    wrapped = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.2))
    wrapped._set_checkpoints([a, c])
    wrapped.minimize(two, parameter_list=["two.w", "own.w"])
    return one, first


def recompute_beside_a_loop(fluid):
    """A while loop that the loss does not need; a stopped gradient, a slice and a concat within the
    segments.
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="tanh")
    i, n = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 3)
    fluid.layers.while_loop(lambda i: fluid.layers.less_than(i, n), lambda i: [i + 1], [i])
    b = fluid.layers.fc(a, 4, act="leaky_relu")
    stopped = fluid.layers.scale(b, 3.0)
    stopped.stop_gradient = True
    c = fluid.layers.concat(
        [fluid.layers.slice(b, [1], [0], [2]), fluid.layers.elementwise_mul(a, stopped)], axis=1
    )
    d = fluid.layers.fc(fluid.layers.softmax(c), 4, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(d, 1), y))
    return loss, recompute(fluid, fluid.optimizer.Adamax(0.1), loss, [b, d])


def checkpoints_by_hand_of_some(fluid):
    """append_backward for some of the parameters, some gradients of which are not wanted, names
    among the checkpoints.
    """
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="relu", param_attr="a.w")
    b = fluid.layers.dropout(fluid.layers.fc([a, x], 4, act="tanh", param_attr=["b.w", "c.w"]), 0.4)
    c = fluid.layers.elementwise_mul(fluid.layers.fc(b, 4, param_attr="a2.w"), b)
    parts = fluid.layers.split(c, 2, dim=1)
    loss = fluid.layers.mean(
        fluid.layers.square_error_cost(fluid.layers.elementwise_add(parts[0], parts[1]), y)
    )
    pairs = fluid.backward.append_backward(
        loss, parameter_list=["b.w", "a2.w", "a.w"], no_grad_set={"c.w"}, checkpoints=[a, b, c]
    )
    return loss, [None, pairs]


def checkpoints_by_hand_of_parameter(fluid):
    h, loss = layers_of(fluid)
    w = fluid.default_main_program().global_block().var("fc_2.w_0")
    return loss, [None, fluid.backward.append_backward(loss, checkpoints=[w, h[2], loss])]


def recompute_under_amp(fluid):
    h, loss = layers_of(fluid)
    wrapped = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    wrapped._set_checkpoints([h[1], h[2]])
    optimizer = fluid.contrib.mixed_precision.decorate(
        wrapped, init_loss_scaling=8.0, use_dynamic_loss_scaling=False
    )
    return loss, optimizer.minimize(loss)


def checkpoints_by_hand(fluid):
    h, loss = layers_of(fluid)
    return loss, [None, fluid.backward.append_backward(loss, checkpoints=[h[1], h[2]])]


def lookahead(fluid):
    _, loss = layers_of(fluid)
    return loss, fluid.optimizer.LookaheadOptimizer(
        fluid.optimizer.SGD(0.1), alpha=0.5, k=2
    ).minimize(loss)


def pipeline(fluid):
    h, loss = layers_of(fluid)
    places = [fluid.CPUPlace()] * 3
    fluid.optimizer.PipelineOptimizer(
        fluid.optimizer.SGD(0.1), [[h[2]], [loss]], places, [1, 1, 1], queue_size=2
    ).minimize(loss)
    return loss, None


def decoupled(fluid):
    _, loss = layers_of(fluid)
    adamw = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
    return loss, adamw(learning_rate=0.1, weight_decay=0.5).minimize(loss)


def decoupled_of_some(fluid):
    _, loss = layers_of(fluid)
    momentum = fluid.contrib.extend_optimizer.extend_with_decoupled_weight_decay(
        fluid.optimizer.Momentum
    )
    optimizer = momentum(
        weight_decay=0.5,
        apply_decay_param_fun=lambda n: ".w_" in n,
        learning_rate=0.1,
        momentum=0.9,
    )
    return loss, optimizer.minimize(loss)


NETS = [
    recompute_two,
    recompute_one,
    recompute_none_on_path,
    recompute_dropout_and_skip,
    recompute_shared_and_decayed,
    recompute_tied_words,
    recompute_two_losses,
    recompute_each_of_two_losses,
    recompute_beside_a_loop,
    checkpoints_by_hand_of_some,
    recompute_parameter_and_feed,
    recompute_parameter_alone,
    recompute_loss_alone,
    recompute_convolutions_and_dropouts,
    checkpoints_by_hand_of_parameter,
    recompute_under_amp,
    checkpoints_by_hand,
    lookahead,
    pipeline,
    decoupled,
    decoupled_of_some,
]
RUN = {
    "recompute_shared_and_decayed",
    "recompute_parameter_and_feed",
    "lookahead",
    "recompute_two_losses",
    "recompute_beside_a_loop",
}  # with three steps; of the others the programs alone

FEEDS = [
    {
        "x": np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3) * (k + 1),
        "y": np.array([[0.5], [-0.25]], "float32"),
    }
    for k in range(3)
]


def initial(name, shape):
    """Values that depend on the name alone."""
    at = np.arange(int(np.prod(shape)), dtype="float64") + sum(map(ord, name)) % 17
    return (np.cos(at) * 0.5).astype("float32").reshape(shape)
