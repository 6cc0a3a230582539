"""What is drawn behind the forward net: a loss, an optimizer with its clips, regularizers and
schedules; or gradients of pairs.
"""

from __future__ import annotations


def schedule(d):
    return d.one(
        lambda: (
            "L.exponential_decay(%s, %d, %s, staircase=%s)"
            % (d.real(0.01, 0.3), d.number(1, 3), d.real(0.3, 0.9), d.one(True, False))
        ),
        lambda: (
            "L.natural_exp_decay(%s, %d, %s, staircase=%s)"
            % (d.real(0.01, 0.3), d.number(1, 3), d.real(0.3, 0.9), d.one(True, False))
        ),
        lambda: (
            "L.inverse_time_decay(%s, %d, %s, staircase=%s)"
            % (d.real(0.01, 0.3), d.number(1, 3), d.real(0.3, 0.9), d.one(True, False))
        ),
        lambda: (
            "L.polynomial_decay(%s, %d, %s, power=%s, cycle=%s)"
            % (
                d.real(0.01, 0.3),
                d.number(1, 3),
                d.real(0.001, 0.01),
                d.real(0.5, 2),
                d.one(True, False),
            )
        ),
        lambda: (
            "L.piecewise_decay([%d, %d], [%s, %s, %s])"
            % (
                d.number(0, 1),
                d.number(2, 3),
                d.real(0.1, 0.3),
                d.real(0.05, 0.1),
                d.real(0.01, 0.05),
            )
        ),
        lambda: (
            "L.noam_decay(%d, %d%s)"
            % (d.number(4, 64), d.number(1, 10), d.args(learning_rate=d.one(None, 0.5)))
        ),
        lambda: "L.cosine_decay(%s, %d, %d)" % (d.real(0.01, 0.3), d.number(1, 2), d.number(2, 4)),
        lambda: (
            "L.linear_lr_warmup(%s, %d, %s, %s)"
            % (
                d.one(d.real(0.01, 0.3), "L.cosine_decay(0.1, 1, 3)"),
                d.number(1, 3),
                d.real(0.001, 0.01),
                d.real(0.05, 0.2),
            )
        ),
    )()


def clip(d):
    return d.one(
        "fluid.clip.GradientClipByValue(max=%s%s)"
        % (d.real(0.01, 0.3), d.args(min=d.one(None, d.real(-0.2, -0.01)))),
        "fluid.clip.GradientClipByNorm(%s)" % d.real(0.05, 2),
        "fluid.clip.GradientClipByGlobalNorm(%s)" % d.real(0.05, 2),
        "fluid.clip.GradientClipByGlobalNorm(%s, need_clip=lambda p: p.name[-1] == '0')"
        % d.real(0.05, 2),
    )


def regularizer(d):
    return "fluid.regularizer.%s(%s)" % (
        d.one("L1Decay", "L2Decay", "L2DecayRegularizer"),
        d.real(0.001, 0.3),
    )


def optimizer(d):
    rate = schedule(d) if d.chance(0.4) else d.real(0.01, 0.3)
    common = d.args(
        regularization=regularizer(d) if d.chance(0.35) else None,
        grad_clip=clip(d) if d.chance(0.35) else None,
    )
    o = "fluid.optimizer."
    return d.one(
        lambda: o + "SGD(%s%s)" % (rate, common),
        lambda: (
            o
            + "Momentum(%s, %s%s%s)"
            % (rate, d.real(0.1, 0.95), d.args(use_nesterov=d.one(None, True)), common)
        ),
        lambda: (
            o
            + "Adagrad(%s%s%s)"
            % (
                rate,
                d.args(epsilon=d.one(None, 1e-2), initial_accumulator_value=d.one(None, 0.1)),
                common,
            )
        ),
        lambda: (
            o
            + "Adam(%s%s%s)"
            % (
                rate,
                d.args(
                    beta1=d.one(None, 0.5),
                    beta2=d.one(None, 0.8),
                    epsilon=d.one(None, 1e-2),
                    lazy_mode=d.one(None, True),
                ),
                common,
            )
        ),
        lambda: o + "Adam(%s%s)" % (rate, common),
        lambda: (
            o
            + "Adamax(%s%s%s)"
            % (rate, d.args(beta1=d.one(None, 0.5), epsilon=d.one(None, 1e-2)), common)
        ),
        lambda: (
            o
            + "DecayedAdagrad(%s%s%s)"
            % (rate, d.args(decay=d.one(None, 0.5), epsilon=d.one(None, 1e-2)), common)
        ),
        lambda: (
            o
            + "Ftrl(%s%s%s)"
            % (
                rate,
                d.args(l1=d.one(None, 0.1), l2=d.one(None, 0.1), lr_power=d.one(None, -0.4)),
                common,
            )
        ),
        lambda: (
            o
            + "RMSPropOptimizer(%s%s%s)"
            % (
                rate,
                d.args(
                    rho=d.one(None, 0.5),
                    epsilon=d.one(None, 1e-2),
                    momentum=d.one(None, 0.5),
                    centered=d.one(None, True),
                ),
                common,
            )
        ),
        lambda: (
            o
            + "Adadelta(%s%s%s)"
            % (rate, d.args(epsilon=d.one(None, 1e-2), rho=d.one(None, 0.5)), common)
        ),
        lambda: (
            o
            + "LarsMomentum(%s, %s%s%s)"
            % (
                rate,
                d.real(0.1, 0.9),
                d.args(lars_coeff=d.one(None, 0.1), lars_weight_decay=d.one(None, 0.1)),
                common,
            )
        ),
        lambda: (
            o
            + "LambOptimizer(%s%s%s)"
            % (
                rate,
                d.args(
                    lamb_weight_decay=d.one(None, 0.1),
                    beta1=d.one(None, 0.5),
                    exclude_from_weight_decay_fn=d.one(None, "lambda p: p.name[-1] == '0'"),
                ),
                common,
            )
        ),
    )()


def loss(d, floats):
    """Lines that bind `loss`, a mean over a few outputs."""
    chosen = d.r.sample(floats, min(len(floats), d.number(1, 3)))
    parts = []
    for v in chosen:
        forms = ["L.mean(%s)", "L.reduce_sum(%s)", "L.mean(L.square(%s))"]
        if abs(v.value).max(initial=0) < 3:  # far out, what tanh leaves of 1 is rounding
            forms.append("L.mean(L.tanh(%s))")
        parts.append(d.of(forms) % v)
    lines = ["loss = %s" % parts[0]]
    for p in parts[1:]:
        lines.append(
            "loss = L.elementwise_add(loss, L.reshape(%s, [1]))" % p
            if "reduce" in p
            else "loss = loss + %s" % p
        )
    return lines


def moved(program, names=None):
    """The variables that hang on these (on trainable parameters), by ops alone."""
    found = set(names or {p.name for p in program.all_parameters() if p.trainable})
    for op in program.global_block().ops:
        if found & set(op.input_arg_names):
            found |= set(op.output_arg_names)
    return found


def reaches(d, source, target):
    names = [d.built.variable(v.name).name for v in (source, target)]
    return names[0] != names[1] and names[1] in moved(d.built.main, names[:1])


def train(d):
    """The lines behind the forward net, and what to fetch of them; nothing if there is nothing to
    differentiate.
    """
    floats = [
        v for v in d.vars if v.dtype == d.float_dtype and v.differentiable and v.name[0] == "o"
    ]
    floats = floats[-4:]
    if not floats:
        return [], []
    params = [p.name for p in d.built.main.all_parameters() if p.trainable]
    inputs = [v for v in d.vars if v.dtype == d.float_dtype and v.differentiable]
    r = d.r.random()
    hanging = moved(d.built.main)
    hanging = [v for v in floats if d.built.variable(v.name).name in hanging]
    if r < 0.72 and hanging and d.chance(0.97):
        floats = hanging
    if r < 0.62 and params:
        lines = loss(d, floats)
        if d.chance(0.1):
            lines.append("fluid.clip.set_gradient_clip(%s)" % clip(d))
        lines.append("opt = %s" % optimizer(d))
        more = ""
        if d.chance(0.15):
            more = ", parameter_list=%s" % d.r.sample(params, d.number(1, len(params)))
        elif d.chance(0.1):
            more = ", no_grad_set={'%s'}" % d.of(params)
        # of float64 parameters 1.8.5 stops in the k-th step
        if d.chance(0.08) and not more and not d.wide and "set_gradient_clip" not in lines[-2]:
            lines.append(
                "opt = fluid.optimizer.LookaheadOptimizer(opt, alpha=%s, k=%d)"
                % (d.real(0.2, 0.8), d.number(1, 2))
            )
        lines.append("done, grads = opt.minimize(loss%s)" % more)
        if d.chance(0.08):
            lines.append(
                "average = fluid.optimizer.ModelAverage(0.5, min_average_window=1,"
                " max_average_window=%d)" % d.number(1, 3)
            )
        if d.chance(0.12):
            lines.append(
                "ema = fluid.optimizer.ExponentialMovingAverage(%s)\nema.update()"
                % d.real(0.5, 0.99)
            )
        return lines, ["loss"] + ["@" + p + "@GRAD" for p in params] + [
            "@" + v.name + "@GRAD" for v in inputs if v.name[0] == "x"
        ]
    if r < 0.72:
        lines = loss(d, floats) + ["grads = fluid.backward.append_backward(loss)"]
        return lines, ["loss"] + ["@" + p + "@GRAD" for p in params] + [
            "@" + v.name + "@GRAD" for v in inputs if v.name[0] == "x"
        ]
    if r < 0.95:
        lines, fetch = [], []
        for k in range(d.number(1, 2)):
            target = d.of(floats)
            sources = d.r.sample(inputs, min(len(inputs), d.number(1, 3)))
            # 1.8.5 raises IndexError where no source is reached, and finds less after a call that
            # reached less
            sources = [s for s in sources if reaches(d, s, target)]
            if not sources:
                continue
            more = ""
            # of sequences, that is their number; behind another call 1.8.5 finds nothing so
            first = not lines and d.chance(0.2)
            if first and not target.lod and "static_rnn" not in d.used:
                more = ", target_gradients=L.fill_constant_batch_size_like(%s, %s, '%s', 0.5)" % (
                    target,
                    list(target.size),
                    target.dtype,
                )
            lines.append(
                "g%d = fluid.gradients([%s], [%s]%s)"
                % (k, target, ", ".join(map(str, sources)), more)
            )
            fetch += ["g%d[%d]" % (k, i) for i in range(len(sources))]
        return lines, fetch
    return [], []
