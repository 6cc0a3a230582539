"""Small training programs for optimizers, clips, regularizers and averages, for any
Fluid-compatible module.

`record_optimizers.py` builds each with the real Paddle 1.8.5 and stores the programs; the tests
build them with fluidjax and compare. A case is a function of the module that returns {name:
program} on top of main and startup. Written for Python 3.8 as well.
"""

import contextlib

import numpy as np


@contextlib.contextmanager
def fresh(fluid):
    """New programs, names and name scopes."""
    main, startup = fluid.Program(), fluid.Program()
    with fresh_name_scopes(fluid), fluid.unique_name.guard(), fluid.program_guard(main, startup):
        yield main, startup


def fresh_name_scopes(fluid):
    """Name scopes counted as in a new process: ours have a guard, Paddle has a global variable."""
    if fluid.__name__ == "fluidjax":
        from fluidjax.graph import name_scope

        return name_scope.fresh_name_scopes()
    fluid.framework._name_scope = fluid.framework.NameScope()
    return contextlib.nullcontext()


def constant(fluid, name, value=0.5, **more):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Constant(value), **more)


def line(fluid, w=None, b=None, dtype="float32"):
    """The mean of x w + b."""
    x = fluid.data("x", [None, 4], dtype)
    h = fluid.layers.fc(
        x, 3, param_attr=w or constant(fluid, "w"), bias_attr=b or constant(fluid, "b")
    )
    return fluid.layers.mean(h)


def clip_norm(fluid, *args, **more):
    return fluid.clip.GradientClipByGlobalNorm(*args, **more)


def only_w(param):
    return param.name == "w"


def float64_adam(fluid):
    fluid.optimizer.Adam(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(
        line(fluid, dtype="float64")
    )


def adam_beta_variables(fluid):
    loss = line(fluid)
    beta = [
        fluid.layers.create_global_var([1], v, "float32", persistable=True, name=n)
        for n, v in (("b1", 0.8), ("b2", 0.9))
    ]
    fluid.optimizer.Adam(0.1, beta1=beta[0], beta2=beta[1]).minimize(loss)


def adam_lazy_named(fluid):
    fluid.optimizer.Adam(0.1, lazy_mode=True, name="mine").minimize(line(fluid))


def momentum_named(fluid):
    fluid.optimizer.Momentum(0.1, 0.9, name="mine").minimize(line(fluid))


def lamb_exclude(fluid):
    opt = fluid.optimizer.Lamb(
        0.1, lamb_weight_decay=0.5, exclude_from_weight_decay_fn=lambda p: p.name == "b"
    )
    opt.minimize(line(fluid))


def lr_variable(fluid):
    loss = line(fluid)
    rate = fluid.layers.create_global_var([1], 0.25, "float32", persistable=True, name="rate")
    fluid.optimizer.SGD(rate).minimize(loss)


def lr_factor_variable(fluid):
    loss = line(fluid)
    factor = fluid.layers.create_global_var([1], 0.25, "float32", persistable=True, name="factor")
    fluid.default_main_program().global_block().var("w").optimize_attr["learning_rate"] = factor
    fluid.optimizer.SGD(0.1).minimize(loss)


def adamax_factor(fluid):
    fluid.optimizer.Adamax(0.1).minimize(line(fluid, w=constant(fluid, "w", learning_rate=0.5)))


def two_losses(fluid):
    x = fluid.data("x", [None, 4])
    opt = fluid.optimizer.Momentum(0.1, 0.9)
    for i in "ab":
        opt.minimize(
            fluid.layers.mean(
                fluid.layers.fc(x, 2, param_attr=constant(fluid, "w" + i), bias_attr=False)
            )
        )


def same_loss_twice(fluid):
    loss = line(fluid)
    for _ in range(2):
        fluid.optimizer.Adam(0.1).minimize(loss)


def parameter_list_of_optimizer(fluid):
    loss = line(fluid)
    fluid.optimizer.SGD(0.1, parameter_list=["w"]).minimize(loss)


def parameter_list_of_minimize(fluid):
    loss = line(fluid)
    fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=["b"])


def parameter_list_of_optimizer_in_two_steps(fluid):
    opt = fluid.optimizer.SGD(0.1, parameter_list=["w"])
    opt.apply_gradients(opt.backward(line(fluid)))


def parameter_list_of_optimizer_or_backward(fluid):
    opt = fluid.optimizer.SGD(0.1, parameter_list=["w"])
    opt.apply_gradients(opt.backward(line(fluid), parameter_list=["b"]))


def parameter_list_under_weight_decay(fluid):
    decayed = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)
    decayed(weight_decay=0.1, learning_rate=0.1, parameter_list=["w"]).minimize(line(fluid))


def no_grad_set_names(fluid):
    fluid.optimizer.SGD(0.1).minimize(line(fluid), no_grad_set={"b"})


def in_two_steps(fluid):
    loss = line(fluid)
    opt = fluid.optimizer.Momentum(
        0.1, 0.9, regularization=fluid.regularizer.L1Decay(0.01), grad_clip=clip_norm(fluid, 1.0)
    )
    opt.apply_gradients(opt.backward(loss))


def hand_made_gradients(fluid):
    loss = line(fluid)
    pairs = fluid.backward.append_backward(loss)
    pairs = [(p, fluid.layers.scale(g, 2.0)) for p, g in pairs]
    fluid.optimizer.SGD(0.1).apply_gradients(pairs)


def one_gradient_missing(clip):
    def build(fluid):
        loss = line(fluid)
        more = {"grad_clip": fluid.clip.GradientClipByNorm(1.0)} if clip else {}
        opt = fluid.optimizer.Momentum(
            0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.1), **more
        )
        opt.apply_gradients([(p, None if p.name == "b" else g) for p, g in opt.backward(loss)])

    return build


def no_gradients(fluid):
    loss = line(fluid)
    opt = fluid.optimizer.Momentum(0.1, 0.9)
    opt.apply_gradients([(p, None) for p, _ in opt.backward(loss)])


def distributed_table(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    e = fluid.layers.embedding(
        ids, (10, 4), is_sparse=True, is_distributed=True, param_attr=constant(fluid, "w")
    )
    loss = fluid.layers.mean(
        fluid.layers.fc(e, 2, param_attr=constant(fluid, "w2"), bias_attr=False)
    )
    clip = fluid.clip.GradientClipByNorm(1.0)
    fluid.optimizer.Adam(
        0.1, regularization=fluid.regularizer.L2Decay(0.1), grad_clip=clip
    ).minimize(loss)


def not_trainable(fluid):
    loss = line(fluid)
    opt = fluid.optimizer.Adam(0.1)
    pairs = opt.backward(loss)
    fluid.default_main_program().global_block().var("b").trainable = False
    opt.apply_gradients(pairs)


def outside_guard(fluid):
    loss = line(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        fluid.optimizer.Adagrad(0.1).minimize(loss, startup_program=startup)
    assert main is fluid.default_main_program()


def shared_regularizer_overrides(fluid):
    w = constant(fluid, "w", regularizer=fluid.regularizer.L1Decay(0.3))
    fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(
        line(fluid, w=w)
    )


def regularizer_of_parameter(fluid):
    w = constant(fluid, "w", regularizer=fluid.regularizer.L2DecayRegularizer(0.3))
    fluid.optimizer.SGD(0.1).minimize(line(fluid, w=w))


def need_clip(kind):
    def build(fluid):
        clip = {
            "value": lambda: fluid.clip.GradientClipByValue(0.5, need_clip=only_w),
            "norm": lambda: fluid.clip.GradientClipByNorm(0.5, need_clip=only_w),
            "global_norm": lambda: fluid.clip.GradientClipByGlobalNorm(0.5, need_clip=only_w),
            "global_norm_nothing": lambda: fluid.clip.GradientClipByGlobalNorm(
                0.5, need_clip=lambda p: False
            ),
        }[kind]()
        fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(line(fluid))

    return build


def clip_value_bounds(fluid):
    fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByValue(min=-2, max=1)).minimize(
        line(fluid)
    )


def set_clip(param_list=None, **more):
    def build(fluid):
        loss = line(fluid)
        fluid.clip.set_gradient_clip(clip_norm(fluid, 1.0), param_list=param_list, **more)
        fluid.optimizer.SGD(0.1).minimize(loss)

    return build


def set_clip_of_variables(fluid):
    loss = line(fluid)
    block = fluid.default_main_program().global_block()
    fluid.clip.set_gradient_clip(
        fluid.clip.GradientClipByNorm(1.0), param_list=[block.var("w"), block.var("b")]
    )
    fluid.optimizer.SGD(0.1).minimize(loss)


def set_clip_groups(fluid):
    x = fluid.data("x", [None, 4])
    h = x
    for i in "abcd":
        h = fluid.layers.fc(h, 4, param_attr=constant(fluid, "w" + i), bias_attr=False)
    loss = fluid.layers.mean(h)
    fluid.clip.set_gradient_clip(clip_norm(fluid, 1.0, group_name="one"), param_list=["wa", "wc"])
    fluid.clip.set_gradient_clip(clip_norm(fluid, 2.0, group_name="two"), param_list=["wb", "wd"])
    fluid.optimizer.SGD(0.1).minimize(loss)


def set_clip_mixed_kinds(fluid):
    loss = line(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(1.0), param_list=["w"])
    fluid.clip.set_gradient_clip(clip_norm(fluid, 2.0), param_list=["b"])
    fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)


def set_clip_and_grad_clip(fluid):
    loss = line(fluid)
    fluid.clip.set_gradient_clip(clip_norm(fluid, 1.0))
    fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByNorm(2.0)).minimize(loss)


def error_clip(fluid):
    x = fluid.data("x", [None, 4])
    h = fluid.layers.fc(x, 3, param_attr=constant(fluid, "w"), bias_attr=constant(fluid, "b"))
    fluid.default_main_program().block(0).var(h.name).error_clip = fluid.clip.ErrorClipByValue(
        max=0.5, min=-0.25
    )
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))


def sparse_embedding(clip, decay):
    def build(fluid):
        ids = fluid.data("ids", [None, 2], "int64")
        e = fluid.embedding(ids, (10, 4), is_sparse=True, param_attr=constant(fluid, "w"))
        loss = fluid.layers.mean(
            fluid.layers.fc(e, 2, param_attr=constant(fluid, "w2"), bias_attr=False)
        )
        clip_ = clip_norm(fluid, 1.0) if clip else None
        decay_ = fluid.regularizer.L2Decay(0.1) if decay else None
        fluid.optimizer.SGD(0.1, grad_clip=clip_, regularization=decay_).minimize(loss)

    return build


def model_average(name=None):
    def build(fluid):
        fluid.optimizer.SGD(0.1).minimize(line(fluid))
        average = fluid.optimizer.ModelAverage(
            0.15, min_average_window=2, max_average_window=5, name=name
        )
        return {"apply": average.apply_program, "restore": average.restore_program}

    return build


def model_average_some(fluid):
    fluid.optimizer.SGD(0.1).minimize(line(fluid, b=constant(fluid, "b", do_model_average=False)))
    average = fluid.optimizer.ModelAverage(0.5)
    return {"apply": average.apply_program, "restore": average.restore_program}


def moving_average(name=None, thres=False):
    def build(fluid):
        loss = line(fluid)
        fluid.optimizer.SGD(0.1).minimize(loss)
        steps = None
        if thres:
            steps = fluid.layers.create_global_var(
                [1], 5.0, "float32", persistable=True, name="steps"
            )
        ema = fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps, name=name)
        ema.update()
        return {"apply": ema.apply_program, "restore": ema.restore_program}

    return build


def moving_average_not_trainable(fluid):
    fluid.optimizer.SGD(0.1).minimize(line(fluid, b=constant(fluid, "b", trainable=False)))
    ema = fluid.optimizer.ExponentialMovingAverage(0.9)
    ema.update()
    return {"apply": ema.apply_program, "restore": ema.restore_program}


CASES = {
    f.__name__: f
    for f in (
        float64_adam,
        adam_beta_variables,
        adam_lazy_named,
        momentum_named,
        lamb_exclude,
        lr_variable,
        lr_factor_variable,
        adamax_factor,
        two_losses,
        same_loss_twice,
        parameter_list_of_optimizer,
        parameter_list_of_minimize,
        parameter_list_of_optimizer_in_two_steps,
        parameter_list_of_optimizer_or_backward,
        parameter_list_under_weight_decay,
        no_grad_set_names,
        in_two_steps,
        hand_made_gradients,
        not_trainable,
        outside_guard,
        shared_regularizer_overrides,
        regularizer_of_parameter,
        clip_value_bounds,
        set_clip_of_variables,
        set_clip_groups,
        set_clip_mixed_kinds,
        set_clip_and_grad_clip,
        error_clip,
        model_average_some,
        moving_average_not_trainable,
        no_gradients,
        distributed_table,
    )
}
CASES.update(
    {
        "need_clip_" + k: need_clip(k)
        for k in ("value", "norm", "global_norm", "global_norm_nothing")
    }
)
CASES.update(set_clip=set_clip(), set_clip_w=set_clip(["w"]), set_clip_b=set_clip(["b"]))
CASES.update(
    sparse_plain=sparse_embedding(False, False),
    sparse_clip=sparse_embedding(True, False),
    sparse_decay=sparse_embedding(False, True),
    sparse_clip_decay=sparse_embedding(True, True),
)
CASES.update(model_average=model_average(), model_average_named=model_average("avg"))
CASES.update(
    moving_average=moving_average(),
    moving_average_named=moving_average("e"),
    moving_average_thres=moving_average(thres=True),
)
CASES.update(
    gradient_missing=one_gradient_missing(False), gradient_missing_clip=one_gradient_missing(True)
)


def _made(kind, *args, **more):
    """The average itself, over `line` trained with SGD."""

    def build(fluid):
        fluid.optimizer.SGD(0.1).minimize(line(fluid))
        if kind == "thres":
            more["thres_steps"] = fluid.layers.create_global_var(
                [1], 5.0, "float32", persistable=True, name="steps"
            )
        average = getattr(
            fluid.optimizer, "ModelAverage" if kind == "model" else "ExponentialMovingAverage"
        )(*args, **more)
        if kind != "model":
            average.update()
        return average

    return build


AVERAGES = {
    "model_average": _made("model", 0.5, min_average_window=2, max_average_window=4),
    "moving_average": _made("moving", 0.9),
    "moving_average_thres": _made("thres", 0.9),
}


def feeds(main, steps):
    """One feed a step for the variables that the program declares as data."""
    rng = np.random.RandomState(7)
    for _ in range(steps):
        x, ids = rng.rand(5, 4), rng.randint(0, 10, (5, 2))
        feed = {}
        for v in main.global_block().vars.values():
            if v.name == "x":
                feed["x"] = x.astype("float64" if int(v.dtype) == 6 else "float32")
            if v.name == "ids":
                feed["ids"] = ids[:, : v.shape[1]].astype("int64")
        yield feed


def applied(fluid, average, main, startup, steps=6):
    """After each step: the parameters before, within and after apply (which is only entered once,
    at the last step).
    """
    scope, exe, trace = fluid.Scope(), fluid.Executor(fluid.CPUPlace()), []

    def now():
        return {n: np.array(scope.find_var(n).get_tensor()).ravel().tolist() for n in "wb"}

    with fluid.scope_guard(scope):
        exe.run(startup)
        for feed in feeds(main, steps):
            exe.run(main, feed=feed)
            trace.append(now())
        with average.apply(exe):
            within = now()
        after = now()
        with average.apply(exe, need_restore=False):
            pass
        kept = now()
        average.restore(exe)
    return {"trace": trace, "within": within, "after": after, "kept": kept, "restored": now()}


def _sgd(fluid, *args, **more):
    return fluid.optimizer.SGD(*args, **more)


def _conflict(fluid):
    loss = line(fluid)
    fluid.clip.set_gradient_clip(clip_norm(fluid, 1.0), param_list=["w"])
    fluid.clip.set_gradient_clip(clip_norm(fluid, 2.0), param_list=["b"])
    fluid.optimizer.SGD(0.1).minimize(loss)


# calls that Paddle refuses; what is recorded is the class of exception and its text
ERRORS = {
    "rate_text": lambda f: _sgd(f, "0.1"),
    "rate_int": lambda f: _sgd(f, 1),
    "rate_none": lambda f: _sgd(f, None),
    "rate_array": lambda f: _sgd(f, np.array([0.1], "float32")),
    "rate_np": lambda f: _sgd(f, np.float32(0.1)),
    "clip_class": lambda f: _sgd(f, 0.1, grad_clip=f.clip.GradientClipByNorm),
    "clip_number": lambda f: _sgd(f, 0.1, grad_clip=1.0),
    "clip_error_clip": lambda f: _sgd(f, 0.1, grad_clip=f.clip.ErrorClipByValue(1.0)),
    "loss_text": lambda f: _sgd(f, 0.1).minimize("loss"),
    "loss_none": lambda f: _sgd(f, 0.1).minimize(None),
    "loss_shape": lambda f: _sgd(f, 0.1).minimize(f.layers.create_parameter([2], "float32")),
    "list_not_list": lambda f: _sgd(f, 0.1, parameter_list="w").minimize(line(f)),
    "minimize_list_text": lambda f: _sgd(f, 0.1).minimize(line(f), parameter_list="w"),
    "no_params_grads": lambda f: _sgd(f, 0.1).apply_gradients([]),
    "no_gradients": lambda f: _sgd(f, 0.1).apply_gradients(
        [(f.layers.create_parameter([2], "float32"), None)]
    ),
    "nothing_trainable": lambda f: _sgd(f, 0.1).minimize(
        line(f, constant(f, "w", trainable=False), constant(f, "b", trainable=False))
    ),
    "set_clip_kind": lambda f: f.clip.set_gradient_clip(1.0),
    "set_clip_none": lambda f: (line(f), f.clip.set_gradient_clip(None)),
    "set_clip_class": lambda f: f.clip.set_gradient_clip(f.clip.GradientClipByNorm),
    "set_clip_error_clip": lambda f: f.clip.set_gradient_clip(f.clip.ErrorClipByValue(1.0)),
    "set_clip_list": lambda f: f.clip.set_gradient_clip(clip_norm(f, 1.0), param_list=[1]),
    "set_clip_unknown": lambda f: f.clip.set_gradient_clip(
        clip_norm(f, 1.0), param_list=["nobody"]
    ),
    "set_clip_text_list": lambda f: (
        line(f),
        f.clip.set_gradient_clip(clip_norm(f, 1.0), param_list="w"),
    ),
    "group_conflict": _conflict,
    "value_negative": lambda f: f.clip.GradientClipByValue(-1.0),
    "need_clip": lambda f: f.clip.GradientClipByValue(1.0, need_clip="w"),
    "norm_text": lambda f: clip_norm(f, "a"),
    "error_clip_negative": lambda f: f.clip.ErrorClipByValue(-1.0),
    "group_name": lambda f: clip_norm(f, 1.0, group_name=3),
    "decay_none": lambda f: f.regularizer.L2Decay(None),
    "decay_text": lambda f: f.regularizer.L2Decay("a"),
    "momentum_none": lambda f: f.optimizer.Momentum(0.1, None),
    "adam_none": lambda f: f.optimizer.Adam(beta1=None),
    "adamax_none": lambda f: f.optimizer.Adamax(beta1=None),
    "lamb_none": lambda f: f.optimizer.Lamb(lamb_weight_decay=None),
    "adagrad_none": lambda f: f.optimizer.Adagrad(0.1, epsilon=None),
    "rmsprop_none": lambda f: f.optimizer.RMSProp(0.1, rho=None),
    "rmsprop_name": lambda f: f.optimizer.RMSPropOptimizer(0.1, rho=None),
    "rate_none_rmsprop": lambda f: f.optimizer.RMSPropOptimizer(None),
    "ftrl_none": lambda f: f.optimizer.Ftrl(None),
    "adadelta_none": lambda f: f.optimizer.Adadelta(0.1, rho=None),
    "dpsgd_none": lambda f: f.optimizer.Dpsgd(clip=None),
    "average_before": lambda f: f.optimizer.ModelAverage(0.15),
    "moving_before": lambda f: f.optimizer.ExponentialMovingAverage(0.9),
    "regularization_number": lambda f: _sgd(f, 0.1, regularization=0.1).minimize(line(f)),
    "rate_shape": lambda f: _sgd(f, f.layers.fill_constant([2], "float32", 0.1)).minimize(line(f)),
}
