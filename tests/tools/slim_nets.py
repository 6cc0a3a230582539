"""Small nets through the passes of fluid.contrib.slim.quantization, written for Paddle and fluidjax
alike.
"""

import importlib
import shutil
import tempfile

import numpy as np


def conv(fluid):
    """two convolutions, one of them depthwise, a normalisation, a sum, a linear layer"""
    x, label = fluid.layers.data("x", [1, 6, 6]), fluid.layers.data("label", [1], dtype="int64")
    y = fluid.layers.conv2d(x, 2, 3, act="relu")
    y = fluid.layers.batch_norm(fluid.layers.conv2d(y, 2, 3, padding=1, groups=2, bias_attr=False))
    y = fluid.layers.pool2d(
        fluid.layers.elementwise_add(y, fluid.layers.conv2d(y, 2, 1)), 2, pool_stride=2
    )
    out = fluid.layers.fc(y, 3, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(out, label)), out


def linear(fluid, with_gradient=False):
    """two linear layers, one of which is left as it is"""
    x, label = fluid.layers.data("x", [4]), fluid.layers.data("label", [1], dtype="int64")
    x.stop_gradient = not with_gradient
    y = fluid.layers.fc(x, 3, act="relu")
    with fluid.name_scope("skip_quant"):
        z = fluid.layers.fc(x, 3)
    y = fluid.layers.elementwise_add(y, z)
    out = fluid.layers.softmax(fluid.layers.fc(y, 3))
    return fluid.layers.mean(fluid.layers.cross_entropy(out, label)), out


def differentiated(fluid):
    """the same, whose data has a gradient"""
    return linear(fluid, True)


def batch(net, seed, rows=4):
    rng = np.random.RandomState(seed)
    shape = (rows, 1, 6, 6) if net is conv else (rows, 4)
    return {
        "x": rng.uniform(-1, 1, shape).astype("float32"),
        "label": rng.randint(0, 3, (rows, 1)).astype("int64"),
    }


def fill(fluid, scope, startup):
    """weights that any framework makes alike"""
    rng = np.random.RandomState(3)
    for name in sorted(p.name for p in startup.list_vars() if p.persistable):
        tensor = scope.find_var(name).get_tensor()
        shape = list(tensor.shape())
        if name.endswith((".w_0", ".b_0")) and "batch_norm" not in name:
            tensor.set(rng.uniform(-0.6, 0.6, shape).astype("float32"), fluid.CPUPlace())


def built(fluid, net):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss, out = net(fluid)
        test = main.clone(for_test=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        exe.run(startup)
    fill(fluid, scope, startup)
    return main, test, loss, out, scope, exe


def quantization(fluid):
    return importlib.import_module(fluid.__name__ + ".contrib.slim.quantization")


def graph_of(fluid, program, for_test=False):
    return fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=for_test)


def values(scope, program):
    """every persistable array of a program"""
    names = sorted(
        v.name for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")
    )
    return {n: np.array(scope.find_var(n).get_tensor()) for n in names}


class Said(dict):
    """programs and arrays by stage"""

    def __init__(self):
        super().__init__(programs={}, arrays={})

    def add(self, stage, program=None, **arrays):
        if program is not None:
            self["programs"][stage] = program
        for name, array in arrays.items():
            self["arrays"]["%s: %s" % (stage, name)] = np.array(array)


def trained(fluid, exe, program, loss, net, said, scope, what="steps"):
    losses = [exe.run(program, feed=batch(net, i), fetch_list=[loss.name])[0] for i in range(3)]
    said.add(what, losses=np.array(losses).reshape(-1))


def through(
    fluid, net, frozen=None, others=False, compiled=False, runs="steps test frozen", **transform
):
    """train -> freeze -> int8 -> save -> load -> run; others: also the passes that add scales
    elsewhere; runs: stages to run
    """
    q, place, said = quantization(fluid), fluid.CPUPlace(), Said()
    main, test, loss, out, scope, exe = built(fluid, net)
    with fluid.scope_guard(scope):
        graph, testing = graph_of(fluid, main), graph_of(fluid, test, True)
        for g in (graph, testing):
            q.QuantizationTransformPass(scope, place, **transform).apply(g)
            if others:
                q.AddQuantDequantPass(scope, place).apply(g)
                if g is graph:
                    q.OutScaleForTrainingPass(scope, place).apply(g)
        said.add("train", graph.to_program())
        said.add("test", testing.to_program())
        program = graph.to_program()
        if compiled:
            program = fluid.CompiledProgram(graph.graph).with_data_parallel(
                loss_name=loss.name, places=fluid.cpu_places(1)
            )
        if "steps" in runs:
            trained(fluid, exe, program, loss, net, said, scope)
            said.add("steps", **values(scope, graph.to_program()))
        if others:
            q.OutScaleForInferencePass(scope).apply(testing)
            said.add("scales", testing.to_program())
        feed = {"x": batch(net, 7)["x"]}
        if "test" in runs:
            said.add(
                "test",
                out=exe.run(testing.to_program(), feed=batch(net, 7), fetch_list=[out.name])[0],
            )
        q.QuantizationFreezePass(scope, place, **(frozen or {})).apply(testing)
        program = testing.to_program()
        said.add("frozen", program, **values(scope, program))
        saved(fluid, exe, program, out, feed if "frozen" in runs else None, said, "frozen, saved")
        q.ConvertToInt8Pass(scope, place).apply(testing)
        program = testing.to_program()
        said.add("int8", program, **values(scope, program))
        saved(fluid, exe, program, out, None, said, "int8, saved")
        q.TransformForMobilePass().apply(testing)
        said.add("mobile", testing.to_program())
    return said


def by_functions(fluid, net, freeze=False, **functions):
    """training and test through functions of one's own; ops in the order of either framework, so
    how many there are of each
    """
    q, place, said = quantization(fluid), fluid.CPUPlace(), Said()
    main, test, loss, out, scope, exe = built(fluid, net)

    def clipped(x):
        bound = fluid.layers.create_parameter(
            [1],
            "float32",
            name=x.name + "_bound",
            default_initializer=fluid.initializer.ConstantInitializer(0.5),
        )
        over = fluid.layers.relu(fluid.layers.elementwise_sub(x, bound))
        under = fluid.layers.relu(fluid.layers.elementwise_sub(fluid.layers.scale(x, -1.0), bound))
        return fluid.layers.elementwise_add(fluid.layers.elementwise_sub(x, over), under)

    def bent(x):
        return fluid.layers.scale(fluid.layers.tanh(x), 0.9)

    given = {k: dict(clipped=clipped, bent=bent)[name] for k, name in functions.items()}
    with fluid.scope_guard(scope):
        graph, testing = graph_of(fluid, main), graph_of(fluid, test, True)
        for g in (graph, testing):
            q.QuantizationTransformPass(
                scope,
                place,
                executor=exe,
                optimizer_func=lambda: fluid.optimizer.Momentum(0.05, 0.9),
                **given,
            ).apply(g)
        program = graph.to_program()
        kinds = [op.type for op in program.global_block().ops]
        said.add("ops", **{kind: kinds.count(kind) for kind in set(kinds)})
        trained(fluid, exe, program, loss, net, said, scope)
        said.add("steps", **values(scope, program))
        said.add(
            "test", out=exe.run(testing.to_program(), feed=batch(net, 7), fetch_list=[out.name])[0]
        )
        if freeze:
            q.QuantizationFreezePass(scope, place).apply(testing)
            said.add("frozen", **values(scope, testing.to_program()))
            said.add(
                "frozen",
                out=exe.run(testing.to_program(), feed=batch(net, 7), fetch_list=[out.name])[0],
            )
    return said


def saved(fluid, exe, program, out, feed, said, stage):
    """what a saved model is when it is loaded into another scope, and what it computes"""
    folder, program = tempfile.mkdtemp(), program.clone()
    try:
        fluid.io.save_inference_model(
            folder, ["x"], [program.global_block().var(out.name)], exe, main_program=program
        )
        with fluid.scope_guard(fluid.Scope()):
            loaded, feeds, fetches = fluid.io.load_inference_model(folder, exe)
            said.add(stage, loaded, **values(fluid.global_scope(), loaded))
            if feed:
                said["arrays"][stage + ": out"] = exe.run(loaded, feed=feed, fetch_list=fetches)[0]
    finally:
        shutil.rmtree(folder)


def transpiled(fluid, net, runs=True, **args):
    """QuantizeTranspiler: a program rewritten in place"""
    t, said = fluid.contrib.QuantizeTranspiler(**args), Said()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss, out = net(fluid)
        test = main.clone(for_test=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        t.training_transpile(main, startup)
        t.training_transpile(test, startup)
    said.add("train", main.clone())
    said.add("startup", startup)
    scope, exe, place = fluid.Scope(), fluid.Executor(fluid.CPUPlace()), fluid.CPUPlace()
    with fluid.scope_guard(scope):
        exe.run(startup)
        fill(fluid, scope, startup)
        if runs:
            trained(fluid, exe, main, loss, net, said, scope)
        t.freeze_program(test, place, scope)
        said.add("frozen", test.clone(), **values(scope, test))
        if runs:
            said["arrays"]["frozen: out"] = exe.run(
                test, feed=batch(net, 7), fetch_list=[out.name]
            )[0]
        t.convert_to_int8(test, place, scope)
        said.add("int8", test, **values(scope, test))
    return said


def model(fluid, net, folder):
    """a saved model of a net, whose weights any framework makes alike; what runs it"""
    _, test, _, out, scope, exe = built(fluid, net)
    with fluid.scope_guard(scope):
        fluid.io.save_inference_model(
            folder, ["x"], [test.global_block().var(out.name)], exe, main_program=test
        )
    return exe


def plain(fluid, program):
    """a copy without Parameters, which 1.8.5's files do not know and others do"""
    return graph_of(fluid, program, True).to_program()


def after_training(fluid, net, batches=False, **args):
    """PostTrainingQuantization: its program, what it keeps, what it saves, and what that computes;
    batches: by batch_generator
    """
    q, folder, said = quantization(fluid), tempfile.mkdtemp(), Said()
    try:
        exe = model(fluid, net, folder)
        made = (
            dict(batch_generator=lambda: ([batch(net, i)["x"]] for i in range(5)))
            if batches
            else dict(
                sample_generator=lambda: ([row] for i in range(3) for row in batch(net, i)["x"])
            )
        )
        with fluid.scope_guard(fluid.Scope()):
            scope = fluid.global_scope()
            p = q.PostTrainingQuantization(
                executor=exe,
                model_dir=folder,
                batch_size=4,
                cache_dir=folder + "/cache",
                **dict(made, **args),
            )
            program = p.quantize()
            said.add("quantised", plain(fluid, program), **values(scope, program))
            p.save_quantized_model(folder + "/saved")
            loaded, feeds, fetches = fluid.io.load_inference_model(folder + "/saved", exe)
            said.add("saved", plain(fluid, loaded), **values(scope, loaded))
            said["arrays"]["saved: out"] = exe.run(
                loaded, feed={"x": batch(net, 7)["x"]}, fetch_list=fetches
            )[0]
    finally:
        shutil.rmtree(folder)
    return said


def stored(path):
    """the array in a file of one tensor, of any dtype: behind the version, an empty LoD, a version,
    and the size of what describes it
    """
    with open(path, "rb") as f:
        data = f.read()
    size = int.from_bytes(data[16:20], "little")
    kind = {20: "uint8", 21: "int8", 1: "int16", 5: "float32"}[data[21]]
    return np.frombuffer(data[20 + size :], kind)


def weights(fluid, net, **args):
    """WeightQuantization: the saved programs, the weights in their files, what the restored ones
    compute
    """
    q, folder, said = quantization(fluid), tempfile.mkdtemp(), Said()
    try:
        exe = model(fluid, net, folder + "/net")
        with fluid.scope_guard(fluid.Scope()):
            q.WeightQuantization(folder + "/net").quantize_weight_to_int(
                folder, generate_test_model=True, **args
            )
        with open(folder + "/quantized_model/__model__", "rb") as f:
            program = fluid.Program.parse_from_string(f.read())
        said.add(
            "quantised",
            plain(fluid, program),
            **{
                v.name: stored(folder + "/quantized_model/" + v.name)
                for v in program.list_vars()
                if v.persistable and v.name not in ("feed", "fetch")
            },
        )
        with fluid.scope_guard(fluid.Scope()):
            loaded, feeds, fetches = fluid.io.load_inference_model(folder + "/test_model", exe)
            said.add("restored", plain(fluid, loaded), **values(fluid.global_scope(), loaded))
            said["arrays"]["restored: out"] = exe.run(
                loaded, feed={"x": batch(net, 7)["x"]}, fetch_list=fetches
            )[0]
    finally:
        shutil.rmtree(folder)
    return said


CASES = {
    "after training, KL": lambda f: after_training(f, conv),
    "after training, abs_max": lambda f: after_training(
        f,
        linear,
        batches=True,
        algo="abs_max",
        is_full_quantize=True,
        batch_nums=2,
        activation_quantize_type="moving_average_abs_max",
        weight_quantize_type="abs_max",
    ),
    "after training, min_max": lambda f: after_training(
        f, linear, algo="min_max", quantizable_op_type=["mul", "relu"]
    ),
    # 1.8.5's own files cannot have the names of a saved model's outputs
    "after training, KL, one scale": lambda f: after_training(
        f,
        linear,
        is_use_cache_file=f.__name__ == "fluidjax",
        weight_quantize_type="abs_max",
        quantizable_op_type=["mul", "elementwise_add"],
    ),
    "weights, channels": lambda f: weights(f, conv),
    "weights, abs_max": lambda f: weights(
        f,
        linear,
        weight_bits=16,
        weight_quantize_type="abs_max",
        threshold_rate=0.1,
        quantizable_op_type=["mul"],
    ),
    "conv, abs_max": lambda f: through(f, conv, runs="frozen"),
    "conv, moving average, channels": lambda f: through(
        f,
        conv,
        dict(weight_quantize_type="channel_wise_abs_max"),
        others=True,
        runs="steps",
        activation_quantize_type="moving_average_abs_max",
        weight_quantize_type="channel_wise_abs_max",
    ),
    "linear, range": lambda f: through(
        f,
        linear,
        compiled=True,
        runs="steps frozen",
        activation_quantize_type="range_abs_max",
        window_size=2,
    ),
    "linear, transpiler": lambda f: transpiled(
        f, linear, activation_quantize_type="range_abs_max", window_size=2
    ),
    "conv, functions of weights": lambda f: by_functions(f, conv, weight_preprocess_func="clipped"),
    "linear, functions of weights and data": lambda f: by_functions(
        f,
        differentiated,
        weight_preprocess_func="bent",
        weight_quantize_func="bent",
        act_quantize_func="clipped",
    ),
    "linear, function of data, frozen": lambda f: by_functions(
        f, differentiated, True, act_preprocess_func="clipped"
    ),
    "conv, transpiler": lambda f: transpiled(f, conv, runs=False),
}
