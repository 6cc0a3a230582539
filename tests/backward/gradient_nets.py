"""Programs that differentiate gradients, for Paddle 1.8.5 (the recorder) and for fluidjax (the
tests).

`TRAINED` are nets to train: builders that take the fluid module and return what to fetch, the loss
first. `random_net` makes a program of a seed: layers, gradients() with all sorts of arguments in
between, and minimize.
"""

import random
import zlib

import numpy as np


def values(name, shape):
    """what a parameter or a feed starts with"""
    return (
        np.random.RandomState(zlib.crc32(name.encode())).uniform(-0.5, 0.5, shape).astype("float32")
    )


def _critic(fluid, image, norm, act):
    layers = fluid.layers
    h = layers.conv2d(image, 3, 3, stride=2, padding=1, param_attr="d_c1_w", bias_attr="d_c1_b")
    if norm == "instance_norm":
        h = layers.instance_norm(h, param_attr="d_n_w", bias_attr="d_n_b")
    h = act(layers, h)
    h = layers.conv2d(h, 4, 3, stride=1, padding=1, param_attr="d_c2_w", bias_attr=False)
    h = act(layers, h)
    return layers.fc(h, 1, param_attr="d_fc_w", bias_attr="d_fc_b")


def _generator(fluid, noise):
    layers = fluid.layers
    h = layers.reshape(layers.fc(noise, 32, param_attr="g_fc_w", bias_attr="g_fc_b"), [-1, 2, 4, 4])
    h = layers.batch_norm(
        h,
        act="relu",
        param_attr="g_n_w",
        bias_attr="g_n_b",
        moving_mean_name="g_m",
        moving_variance_name="g_v",
    )
    return layers.conv2d_transpose(
        h, 2, filter_size=4, stride=2, padding=1, act="tanh", param_attr="g_t_w", bias_attr="g_t_b"
    )


def _parameters(fluid, start):
    return [
        p.name for p in fluid.default_main_program().all_parameters() if p.name.startswith(start)
    ]


def _penalty(fluid, grad, sizes):
    """(|gradient of a sample| - 1) ** 2"""
    layers = fluid.layers
    flat = layers.reshape(grad, [-1, sizes])
    norm = layers.sqrt(layers.reduce_sum(layers.square(flat), dim=1) + 1e-3)
    return layers.reduce_mean(layers.square(norm - 1.0))


def _gan(
    fluid, norm="", no_grad=True, act=lambda layers, h: layers.leaky_relu(h, 0.2), optimizer=None
):
    layers = fluid.layers
    noise, real = layers.data("noise", [4]), layers.data("real", [2, 8, 8])
    alpha = layers.data("alpha", [1])
    fake = _generator(fluid, noise)
    of_real, of_fake = (_critic(fluid, x, norm, act) for x in (real, fake))
    between = layers.elementwise_add(layers.elementwise_mul(fake - real, alpha, axis=0), real)
    between.stop_gradient = False
    pred = _critic(fluid, between, norm, act)
    parameters = _parameters(fluid, "d_")
    grad = fluid.gradients(pred, between, no_grad_set=set(parameters) if no_grad else None)[0]
    penalty = _penalty(fluid, grad, 128)
    loss = layers.mean(of_fake) - layers.mean(of_real) + 10.0 * penalty
    (optimizer or fluid.optimizer.Adam(0.01, beta1=0.5, beta2=0.9)).minimize(
        loss, parameter_list=parameters
    )
    return [loss, penalty]


def wgan_gp(fluid):
    return _gan(fluid)


def wgan_gp_without_no_grad_set(fluid):
    return _gan(fluid, no_grad=False, optimizer=fluid.optimizer.SGD(0.01))


def wgan_gp_instance_norm(fluid):
    return _gan(
        fluid,
        "instance_norm",
        act=lambda layers, h: layers.elu(h),
        optimizer=fluid.optimizer.SGD(0.01),
    )


def r1_penalty(fluid):
    """the gradient of the real images' score, and a generator's step through it"""
    layers = fluid.layers
    noise, real = layers.data("noise", [4]), layers.data("real", [2, 8, 8])
    real.stop_gradient = False
    score = _critic(fluid, real, "", lambda layers, h: layers.relu(h))
    grad = fluid.gradients([score], [real])[0]
    penalty = layers.reduce_sum(layers.square(grad), dim=[1, 2, 3])
    fake = _critic(fluid, _generator(fluid, noise), "", lambda layers, h: layers.relu(h))
    loss = (
        layers.reduce_mean(penalty * 0.5)
        + layers.mean(layers.softplus(fake))
        + layers.mean(layers.softplus(score * -1.0))
    )
    fluid.optimizer.SGD(0.05).minimize(loss)
    return [loss]


def dense_penalty(fluid):
    """mul, elementwise ops with broadcasting, split, concat, slice, expand, reduce_mean; three data"""
    layers = fluid.layers
    x, y, w = layers.data("x", [4]), layers.data("y", [4]), layers.data("w", [1])
    x.stop_gradient = y.stop_gradient = False

    def net(value):
        h = layers.fc(value, 6, act="relu", param_attr="f1_w", bias_attr="f1_b")
        a, b = layers.split(layers.fc(h, 6, param_attr="f2_w", bias_attr="f2_b"), 2, dim=1)
        c = layers.elementwise_div(layers.elementwise_mul(a, w, axis=0), layers.square(b) + 1.0)
        d = layers.elementwise_sub(c, layers.reduce_mean(c, dim=[1], keep_dim=True))
        e = layers.slice(layers.expand(layers.concat([d, b], axis=1), [1, 2]), [1], [3], [9])
        return layers.fc(layers.sqrt(layers.square(e) + 0.1), 1, param_attr="f3_w", bias_attr=False)

    mixed = layers.elementwise_add(
        layers.elementwise_mul(x, w, axis=0), layers.elementwise_mul(y, 1.0 - w, axis=0)
    )
    out = net(mixed)
    gx, gy = fluid.gradients(out, [x, mixed], no_grad_set=set(_parameters(fluid, "f")))
    penalty = _penalty(fluid, gx, 4) + layers.reduce_mean(layers.abs(gy))
    loss = layers.mean(layers.square(net(x) - net(y))) + penalty
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    return [loss, penalty]


def fused_activations(fluid):
    """fluid.contrib's elementwise op with an activation, where what is between the two is saved and
    where it is not
    """
    layers, value = fluid.layers, fluid.layers.data("x", [4])
    kinds = [
        ("elementwise_add,relu", False),
        ("scale,elementwise_add", False),
        ("elementwise_mul,sigmoid", True),
        ("tanh,elementwise_add", True),
        ("elementwise_mul,scale", False),
        ("relu,elementwise_add", True),
    ]
    for k, (functors, saved) in enumerate(kinds):
        side = layers.fc(value, 4, param_attr="f%d_w" % k, bias_attr=False)
        value = fluid.contrib.layers.fused_elemwise_activation(
            value, side, functors.split(","), scale=0.7, save_intermediate_out=saved
        )
    loss = layers.mean(layers.square(value))
    fluid.optimizer.SGD(0.5).minimize(loss)
    return [loss] + [
        "fused_elemwise_activation_%d.tmp_1@GRAD" % k for k, (_, saved) in enumerate(kinds) if saved
    ]


NETS = (
    fused_activations,
    wgan_gp,
    wgan_gp_without_no_grad_set,
    wgan_gp_instance_norm,
    r1_penalty,
    dense_penalty,
)
TRAINED = {f.__name__: f for f in NETS}
BATCH = 3


def feeds(main, step):
    """a batch for every variable of layers.data"""
    data = sorted(v.name for v in main.global_block().vars.values() if v.is_data)
    shapes = {n: [BATCH] + list(main.global_block().var(n).shape)[1:] for n in data}
    return {n: values("%s %d" % (n, step), shapes[n]) for n in data}


UNARY = (
    "relu",
    "tanh",
    "sigmoid",
    "square",
    "leaky_relu",
    "sqrt",
    "abs",
    "exp",
    "elu",
    "softmax",
    "softplus",
    "scale",
    "mean",
    "relu6",
    "hard_swish",
)
BINARY = (
    "elementwise_add",
    "elementwise_sub",
    "elementwise_mul",
    "elementwise_div",
    "elementwise_max",
)
KINDS = (
    "unary",
    "unary",
    "unary",
    "binary",
    "binary",
    "binary",
    "fc",
    "fc",
    "concat",
    "split",
    "reshape",
    "reduce",
    "batch_norm",
    "stop",
    "gradients",
    "gradients",
    "conv",
    "sums",
    "slice",
    "expand",
    "dropout",
    "assign",
    "instance_norm",
    "bias",
    "matmul",
    "transpose",
)
WIDTH = 4


class RandomNet:
    """[batch, WIDTH] variables in a row, each made of earlier ones."""

    def __init__(self, fluid, seed):
        self.fluid, self.layers, self.random = fluid, fluid.layers, random.Random(seed)
        self.log = []  # what gradients and minimize were asked and what they gave, by name
        x, y = self.layers.data("x", [WIDTH]), self.layers.data("y", [WIDTH])
        if self.random.random() < 0.7:
            x.stop_gradient = False
        self.values = [x, y, self.layers.fc(x, WIDTH)]
        for _ in range(self.random.randint(2, 9)):
            out = getattr(self, "_" + self.random.choice(KINDS))(self.pick(), self.pick())
            if out is not None:
                self.values.append(out)
        self.train()

    def pick(self):
        return self.random.choice(self.values[-6:] + self.values[:3])

    def parameters(self):
        return [p.name for p in self.fluid.default_main_program().all_parameters()]

    def wide(self, value):
        return self.layers.reshape(value, [-1, WIDTH])

    def image(self, value):
        return self.layers.reshape(value, [-1, 1, 2, 2])

    def _unary(self, a, b):
        name = self.random.choice(UNARY)
        if name == "scale":
            return self.layers.scale(a, 2.0, bias=0.5)
        out = getattr(self.layers, name)(a)
        return self.layers.elementwise_mul(a, out) if name == "mean" else out

    def _binary(self, a, b):
        return getattr(self.layers, self.random.choice(BINARY))(a, b)

    def _fc(self, a, b):
        weight = self.random.choice(["shared", "shared", None])
        bias = self.random.choice([None, False, "shared_bias"])
        return self.layers.fc(
            [a, b] if weight is None and self.random.random() < 0.3 else a,
            WIDTH,
            param_attr=weight,
            bias_attr=bias,
        )

    def _concat(self, a, b):
        return self.layers.split(self.layers.concat([a, b], axis=1), 2, dim=1)[
            self.random.randint(0, 1)
        ]

    def _split(self, a, b):
        u, v = self.layers.split(a, 2, dim=1)
        return self.layers.concat([v, u], axis=1)

    def _reshape(self, a, b):
        return self.wide(self.layers.square(self.layers.reshape(a, [-1, 2, 2])))

    def _reduce(self, a, b):
        if self.random.random() < 0.5:
            return self.layers.elementwise_mul(a, self.layers.reduce_sum(b, dim=1), axis=0)
        return self.layers.elementwise_sub(a, self.layers.reduce_mean(b, dim=[1], keep_dim=True))

    def _batch_norm(self, a, b):
        return self.layers.batch_norm(a)

    def _instance_norm(self, a, b):
        return self.wide(self.layers.instance_norm(self.image(a)))

    def _conv(self, a, b):
        weight = self.random.choice(["shared_filter", None])
        return self.wide(
            self.layers.conv2d(self.image(a), 1, 3, padding=1, param_attr=weight, bias_attr=False)
        )

    def _sums(self, a, b):
        return self.layers.sums([a, b, self.pick()])

    def _slice(self, a, b):
        return self.layers.expand(self.layers.slice(a, [1], [1], [2]), [1, WIDTH])

    def _expand(self, a, b):
        return self.layers.slice(self.layers.expand(a, [1, 2]), [1], [2], [2 + WIDTH])

    def _dropout(self, a, b):
        return self.layers.dropout(a, 0.5)

    def _assign(self, a, b):
        return self.layers.assign(a)

    def _bias(self, a, b):
        return self.layers.elementwise_add(
            a, self.layers.create_parameter([WIDTH], "float32"), axis=1
        )

    def _matmul(self, a, b):
        return self.layers.matmul(a, self.layers.matmul(a, b, transpose_x=True))

    def _transpose(self, a, b):
        return self.wide(self.layers.transpose(self.layers.reshape(a, [-1, 2, 2]), [0, 2, 1]))

    def _stop(self, a, b):
        out = self.layers.scale(a, 1.5)
        out.stop_gradient = True
        return out

    def _gradients(self, a, b):
        r, parameters = self.random, self.parameters()
        targets = [a] if r.random() < 0.7 else [a, b]
        first = self.fluid.default_main_program().global_block().var(parameters[0])
        inputs = r.choice([[self.values[0]], [self.pick()], [self.pick(), self.values[0]], [first]])
        no_grad = r.choice([None, None, set(parameters), set(parameters[:1]), {self.pick().name}])
        given = [self.pick() for _ in targets] if r.random() < 0.15 and not self.log else None
        if given and any(g.shape != t.shape for g, t in zip(given, targets)):
            given = None
        found = self.fluid.gradients(
            targets, inputs, target_gradients=given, no_grad_set=no_grad
        ) or [None]
        self.log.append([None if g is None else g.name for g in found])
        found = [g for g in found if g is not None and len(g.shape) == 2]
        if not found:
            return None
        kind = r.randint(0, 3)
        out = (
            found[0]
            if kind == 0
            else (
                self.layers.square(found[0])
                if kind == 1
                else (
                    self.layers.sqrt(self.layers.square(found[0]))
                    if kind == 2
                    else self.layers.elementwise_mul(found[-1], a)
                )
            )
        )
        return self.layers.elementwise_add(out, a) if r.random() < 0.5 else out

    def train(self):
        r, layers = self.random, self.layers
        last = self.values[-1]
        loss = layers.mean(
            layers.elementwise_add(last, layers.square(self.values[2]))
            if r.random() < 0.6
            else last
        )
        if r.random() < 0.3:
            loss = layers.elementwise_add(loss, layers.mean(layers.square(r.choice(self.values))))
        if r.random() < 0.2:
            loss = layers.scale(loss, 3.0)
        chosen = {"no_grad_set": {r.choice(self.parameters())}} if r.random() < 0.2 else {}
        if r.random() < 0.2:
            chosen["parameter_list"] = self.parameters()[:2]
        if r.random() < 0.7:
            self.note(lambda: self.fluid.optimizer.SGD(0.1).minimize(loss, **chosen)[1])
            return
        self.note(lambda: self.fluid.backward.append_backward(loss, **chosen))
        if r.random() < 0.4:
            again = layers.mean(layers.square(last))
            self.note(lambda: self.fluid.backward.append_backward(again))

    def note(self, minimize):
        pairs = minimize()
        self.log.append([[p.name, g.name] for p, g in pairs])


def plain(main):
    """[type, inputs, outputs] of every op"""
    slots = lambda names, get: {s: list(get(s)) for s in sorted(names) if get(s)}
    return [
        [op.type, slots(op.input_names, op.input), slots(op.output_names, op.output)]
        for op in main.global_block().ops
    ]
