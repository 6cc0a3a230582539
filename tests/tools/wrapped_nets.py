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
    """A mask that is drawn once, a value that two segments read, checkpoints out of order and one that nothing reads."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.dropout(fluid.layers.fc(a, 4, act="tanh"), 0.5, seed=3)
    c = fluid.layers.elementwise_add(fluid.layers.fc(b, 4, act="relu"), a)
    d = fluid.layers.layer_norm(fluid.layers.fc(c, 4, act="tanh"))
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(d, 1), y))
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)), loss, [d, b, x, loss])


def recompute_shared_and_decayed(fluid):
    """A weight that two segments use, batch_norm, a schedule, clipping by the global norm."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    w = fluid.ParamAttr(name="shared")
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.batch_norm(fluid.layers.fc(a, 4, param_attr=w), act="relu")
    c = fluid.layers.fc(b, 4, param_attr=w, act="tanh")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(c, 1), y))
    rate = fluid.layers.exponential_decay(0.1, 1, 0.5)
    return loss, recompute(fluid, fluid.optimizer.Momentum(rate, 0.9, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1)), loss, [a, b, c])


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
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1), loss, [fluid.default_main_program().global_block().var("fc_1.w_0")])


def recompute_loss_alone(fluid):
    h, loss = layers_of(fluid)
    return loss, recompute(fluid, fluid.optimizer.SGD(0.1), loss, [loss])


def recompute_convolutions_and_dropouts(fluid):
    """Dropouts without a seed and of both kinds, a pool, a convolution; the first segment begins at what is fed."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    a = fluid.layers.reshape(fluid.layers.fc(x, 32, act="relu"), [-1, 2, 4, 4])
    b = fluid.layers.dropout(fluid.layers.conv2d(a, 4, 3, padding=1, act="relu"), 0.25)
    c = fluid.layers.pool2d(fluid.layers.batch_norm(b, act="tanh"), 2, pool_stride=2)
    d = fluid.layers.dropout(fluid.layers.fc(c, 8), 0.5, dropout_implementation="upscale_in_train")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(d, 1), y))
    return loss, recompute(fluid, fluid.optimizer.Adam(0.1), loss, [x, b, d])


def checkpoints_by_hand_of_parameter(fluid):
    h, loss = layers_of(fluid)
    w = fluid.default_main_program().global_block().var("fc_2.w_0")
    return loss, [None, fluid.backward.append_backward(loss, checkpoints=[w, h[2], loss])]


def recompute_under_amp(fluid):
    h, loss = layers_of(fluid)
    wrapped = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    wrapped._set_checkpoints([h[1], h[2]])
    optimizer = fluid.contrib.mixed_precision.decorate(wrapped, init_loss_scaling=8.0, use_dynamic_loss_scaling=False)
    return loss, optimizer.minimize(loss)


def checkpoints_by_hand(fluid):
    h, loss = layers_of(fluid)
    return loss, [None, fluid.backward.append_backward(loss, checkpoints=[h[1], h[2]])]


def lookahead(fluid):
    _, loss = layers_of(fluid)
    return loss, fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=2).minimize(loss)


def pipeline(fluid):
    h, loss = layers_of(fluid)
    places = [fluid.CPUPlace()] * 3
    fluid.optimizer.PipelineOptimizer(fluid.optimizer.SGD(0.1), [[h[2]], [loss]], places, [1, 1, 1], queue_size=2).minimize(loss)
    return loss, None


def decoupled(fluid):
    _, loss = layers_of(fluid)
    adamw = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
    return loss, adamw(learning_rate=0.1, weight_decay=0.5).minimize(loss)


def decoupled_of_some(fluid):
    _, loss = layers_of(fluid)
    momentum = fluid.contrib.extend_optimizer.extend_with_decoupled_weight_decay(fluid.optimizer.Momentum)
    optimizer = momentum(weight_decay=0.5, apply_decay_param_fun=lambda n: ".w_" in n, learning_rate=0.1, momentum=0.9)
    return loss, optimizer.minimize(loss)


NETS = [
    recompute_two, recompute_one, recompute_none_on_path, recompute_dropout_and_skip, recompute_shared_and_decayed,
    recompute_parameter_and_feed, recompute_parameter_alone, recompute_loss_alone, recompute_convolutions_and_dropouts,
    checkpoints_by_hand_of_parameter, recompute_under_amp, checkpoints_by_hand, lookahead, pipeline, decoupled, decoupled_of_some,
]
RUN = {"recompute_shared_and_decayed", "recompute_parameter_and_feed", "lookahead"}  # with three steps; of the others the programs alone

FEEDS = [
    {"x": np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3) * (k + 1), "y": np.array([[0.5], [-0.25]], "float32")} for k in range(3)
]


def initial(name, shape):
    """Values that depend on the name alone."""
    at = np.arange(int(np.prod(shape)), dtype="float64") + sum(map(ord, name)) % 17
    return (np.cos(at) * 0.5).astype("float32").reshape(shape)
