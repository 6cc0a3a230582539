"""Names that scripts take from Fluid's inside: constants, descs, flags, helpers; the values are
those of Paddle 1.8.5.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import (
    FluidError,
    FluidTypeError,
    FluidValueError,
    LoadError,
    ParseError,
    UnsupportedError,
)
from fluidjax.incubate.fleet.collective import Collective, TrainStatus
from fluidjax.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)
from fluidjax.ir.desc import OpType
from fluidjax.transpiler.details import find_op_by_input_arg, find_op_by_output_arg, program_to_code
from fluidjax.transpiler.distribute_transpiler import ServerRuntimeConfig


@pytest.fixture
def net():
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        y = fluid.layers.fc(fluid.data("x", [2, 3]), 2, param_attr=fluid.initializer.Constant(0.5))
        fluid.Executor().run(startup)
        yield main, y


def test_constants():
    f, core = fluid.framework, fluid.core
    assert (f.TEMP_VAR_NAME, f.ZERO_VAR_SUFFIX, f.EMPTY_VAR_NAME, f.GRAD_VAR_SUFFIX) == (
        "@TEMP@",
        "@ZERO",
        "@EMPTY@",
        "@GRAD",
    )
    assert f.CONTROL_DEP_VAR_PREFIX == core.kControlDepVarName() == "__control_var"
    names = core.kTempVarName(), core.kZeroVarSuffix(), core.kEmptyVarName(), core.kGradVarSuffix()
    assert names == ("@TEMP@", "@ZERO", "@EMPTY@", "@GRAD")
    from fluidjax import backward
    from fluidjax.paddle import compat

    assert backward._append_grad_suffix_("x") == backward._append_grad_suffix_(b"x") == "x@GRAD"
    assert backward._strip_grad_suffix_("x@GRAD@RENAME@block0@1") == "x"
    assert [backward._as_list(v) for v in (None, 3, (1, 2), [1])] == [[], [3], [1, 2], [1]]
    assert compat.int_type is compat.long_type is int
    assert fluid.layers.device.get_places().type == fluid.core.VarDesc.VarType.PLACE_LIST
    assert (
        core._set_eager_deletion_mode(-1, 1.0, True)
        is fluid.reader.keep_data_loader_order(True)
        is None
    )


def test_program_descs_of_the_core(net):
    main, _ = net
    empty = fluid.core.ProgramDesc()
    assert empty == fluid.Program().desc and empty.num_blocks() == 1
    data = main.desc.serialize_to_string()
    again = fluid.core.ProgramDesc(data)
    assert again.serialize_to_string() == data and fluid.core.ProgramDesc(again) == again
    with pytest.raises(FluidTypeError, match="not Program"):
        fluid.core.ProgramDesc(main)
    with pytest.raises(ParseError, match="not a Paddle program"):
        fluid.core.ProgramDesc(b"no program")


def test_arrays_and_numbers_become_tensors():
    make, place = fluid.executor._as_lodtensor, fluid.CPUPlace()
    for data, dtype, want in (
        (np.ones((2, 3), "float64"), None, np.ones((2, 3), "float64")),
        (3, "float32", np.float32([3])),
        (2.5, fluid.core.VarDesc.VarType.FP64, np.float64([2.5])),
    ):
        tensor = make(data, place, dtype)
        got = np.array(tensor)
        assert type(tensor) is fluid.LoDTensor and got.dtype == want.dtype and tensor.lod() == []
        np.testing.assert_array_equal(got, want)
    for wrong in ([np.ones(2)], 3):
        with pytest.raises(FluidTypeError, match="takes an array, or a number and its dtype"):
            make(wrong, place)


def test_the_stack_of_scopes():
    """Each thread has one; what a function leaves in its scope is gone afterwards."""
    bottom = fluid.default_scope_funcs.get_cur_scope()
    assert (
        fluid.default_scope_funcs.get_cur_scope() is bottom
        and fluid.default_scope_funcs.find_var("a") is None
    )
    fluid.default_scope_funcs.var("a").get_tensor().set(np.float32([3]), fluid.CPUPlace())
    fluid.default_scope_funcs.enter_local_scope()
    assert fluid.default_scope_funcs.get_cur_scope() is not bottom and np.array(
        fluid.default_scope_funcs.find_var("a").get_tensor()
    ) == [3]
    fluid.default_scope_funcs.var("b")
    assert fluid.default_scope_funcs.find_var("b") is not None
    fluid.default_scope_funcs.leave_local_scope()
    assert (
        fluid.default_scope_funcs.get_cur_scope() is bottom
        and fluid.default_scope_funcs.find_var("b") is None
    )

    def fails():
        fluid.default_scope_funcs.var("c")
        raise KeyError("c")

    with pytest.raises(KeyError):
        fluid.default_scope_funcs.scoped_function(fails)
    assert (
        fluid.default_scope_funcs.get_cur_scope() is bottom
        and fluid.default_scope_funcs.find_var("c") is None
    )
    with pytest.raises(FluidValueError, match="enter_local_scope"):
        fluid.default_scope_funcs.leave_local_scope()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(fluid.default_scope_funcs.get_cur_scope).result() is not bottom
        assert pool.submit(fluid.default_scope_funcs.find_var, "a").result() is None
    bottom.erase(["a"])


def test_descs_answer_as_the_core_does(net):
    main, _ = net
    op = main.global_block().ops[0]
    desc = op.desc
    assert (
        desc.type() == desc.type == op.type == "mul"
        and type(desc.type()) is str
        and type(desc.type) is OpType
    )
    assert (desc.input_names(), desc.output_names(), desc.input_arg_names()) == (
        ["X", "Y"],
        ["Out"],
        ["x", "fc_0.w_0"],
    )
    assert (
        desc.output_arg_names() == ["fc_0.tmp_0"]
        and desc.attr("x_num_col_dims") == 1
        and desc.has_attr("y_num_col_dims")
    )
    with pytest.raises(ValueError, match="no attribute 'axes'"):
        desc.attr("axes")
    data = main.desc.serialize_to_string()
    assert (
        data == main.serialize_to_string()
        and fluid.Program.parse_from_string(data).desc == main.desc
    )


def test_protos():
    proto = fluid.framework.OpProtoHolder.instance().get_op_proto("sum")
    assert (
        proto.type,
        [(v.name, v.duplicable) for v in proto.inputs],
        [v.name for v in proto.outputs],
    ) == ("sum", [("X", True)], ["Out"])
    assert [a.name for a in fluid.framework.OpProtoHolder.instance().get_op_proto("mul").attrs] == [
        "x_num_col_dims",
        "y_num_col_dims",
    ]
    with pytest.raises(ValueError, match="nope"):
        fluid.framework.OpProtoHolder.instance().get_op_proto("nope")
    for kind, there in (("mul", True), ("sgd", False), ("while", True), ("shape", False)):
        assert (
            fluid.core.has_grad_op_maker(kind) is True
            and fluid.core.has_non_empty_grad_op_maker(kind) is there
        )
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.core.has_grad_op_maker("nope")


def test_flags_by_name():
    flags = fluid.core.globals()
    try:
        flags["FLAGS_benchmark"] = True
        assert (
            flags["FLAGS_benchmark"]
            is flags.get("FLAGS_benchmark")
            is fluid.get_flags("FLAGS_benchmark")["FLAGS_benchmark"]
            is True
        )
    finally:
        flags["FLAGS_benchmark"] = False
    assert (
        "FLAGS_check_nan_inf" in flags
        and flags.is_public("FLAGS_benchmark")
        and "FLAGS_nope" not in flags
    )
    assert set(flags.keys()) >= {"FLAGS_check_nan_inf", "FLAGS_benchmark"}


def test_as_numpy(net):
    main, y = net
    fetched = fluid.Executor().run(
        main, feed={"x": np.ones((2, 3), "float32")}, fetch_list=[y], return_numpy=False
    )
    assert np.array_equal(fluid.executor.as_numpy(fetched)[0], np.full((2, 2), 1.5))
    assert type(fluid.executor.as_numpy(fetched[0])) is np.ndarray
    rows = fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[1, 2]], fluid.CPUPlace())
    with pytest.raises(RuntimeError, match="LoD"):
        fluid.executor.as_numpy(rows)
    with pytest.raises(TypeError):
        fluid.executor.as_numpy(None)
    rows.set_recursive_sequence_lengths([range(1, 3)])
    assert rows.recursive_sequence_lengths() == [[1, 2]]


def test_an_array_in_a_scope():
    scope = fluid.Scope()
    array = scope.var("a").get_lod_tensor_array()
    array.append(fluid.create_lod_tensor(np.ones((2, 1), "float32"), [[2]], None))
    assert scope.find_var("a").get_lod_tensor_array() is array and len(array) == 1
    scope.var("b").set(np.ones(2, "float32"))
    with pytest.raises(TypeError, match="LoDTensorArray"):
        scope.find_var("b").get_lod_tensor_array()


def test_settings_of_servers_where_transpilers_are(monkeypatch):
    monkeypatch.setenv("FLAGS_rpc_get_thread_num", "7")
    assert vars(ServerRuntimeConfig()) == {
        "_rpc_send_thread_num": 12, "_rpc_get_thread_num": 7, "_rpc_prefetch_thread_num": 12,
    }  # fmt: skip


def test_an_array_that_a_program_wrote():
    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(scope):
        array = None
        for place, size in enumerate([2, 3]):
            entry = fluid.layers.fill_constant([size], "float32", place)
            array = fluid.layers.array_write(
                entry, fluid.layers.fill_constant([1], "int64", place), array
            )
        array.persistable = True
        fluid.Executor().run(main)
        found = scope.find_var(array.name).get_lod_tensor_array()
    assert [np.array(entry).tolist() for entry in found] == [[0, 0], [1, 1, 1]]
    assert [entry.shape() for entry in found] == [[2], [3]]


def test_attributes_of_every_op():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [2, 4])
        fluid.layers.relu(x)
        with fluid.name_scope("a"):
            fluid.layers.relu(x)
    plain, scoped = main.global_block().ops
    expected = {"op_device": "", "op_namescope": "/", "op_role": 0, "op_role_var": []}
    for name, value in expected.items():
        assert plain.has_attr(name) and name in plain.attr_names
        assert plain.attr(name) == plain.all_attrs()[name] == value
    assert scoped.attr("op_namescope") == "/a/"
    assert not plain.has_attr("op_nothing")
    with pytest.raises(ValueError, match="op_nothing"):
        plain.attr("op_nothing")
    copied = main.global_block().append_op(
        "relu", {"X": x}, {"Out": plain.output("Out")}, plain.all_attrs()
    )
    assert copied.all_attrs() == plain.all_attrs()


def test_types_of_attributes():
    """As core.AttrType of 1.8.5 has them; its names are all there."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [4, 3])
        fluid.layers.cond(fluid.layers.reduce_sum(x) > 1.0, lambda: x, lambda: x * 2.0)
        block = fluid.default_main_program().global_block()
    kind, names = fluid.core.AttrType, "BLOCK BLOCKS BOOL BOOLS FLOAT FLOATS INT INTS"
    assert sorted(kind.__members__) == [*names.split(), "LONG", "LONGS", "STRING", "STRINGS"]
    found = {(op.type, name): op.attr_type(name) for op in block.ops for name in op.attr_names}
    assert found["reduce_sum", "dim"] == kind.INTS and found["reduce_sum", "keep_dim"] == kind.BOOL
    assert found["conditional_block", "sub_block"] == kind.BLOCK
    assert found["fill_constant", "value"] == kind.FLOAT
    assert block.ops[0].attr_type("op_role_var") == kind.STRINGS


def test_programs_as_code(net, capsys, tmp_path):
    main, _ = net
    program_to_code(main)
    assert capsys.readouterr().out == f"{main}\n"
    with open(tmp_path / "code", "w") as file:
        program_to_code(main, fout=file)
    assert (tmp_path / "code").read_text() == f"{main}\n"
    block = main.global_block()
    assert (
        find_op_by_input_arg(block, "fc_0.tmp_0"),
        find_op_by_output_arg(block, "fc_0.tmp_0"),
    ) == (1, 0)
    assert find_op_by_input_arg(block, "no") == -1


def test_strategies_are_asynchronous_as_in_1_8_5():
    for made in (
        StrategyFactory.create_sync_strategy(),
        StrategyFactory.create_async_strategy(),
        StrategyFactory.create_geo_strategy(10),
    ):
        assert made._build_strategy.async_mode is True


def test_a_loader_is_reset(net):
    main, _ = net
    loader = fluid.io.DataLoader.from_generator([main.global_block().var("x")], 2, iterable=True)
    loader.set_batch_generator(
        lambda: ([np.full((2, 3), i, "float32")] for i in range(3)), fluid.CPUPlace()
    )
    assert [float(np.asarray(next(loader)[0]["x"])[0, 0]) for _ in range(2)] == [0, 1]
    loader._reset()
    assert float(np.asarray(next(loader)[0]["x"])[0, 0]) == 0
    loader._reset()


def test_check_points_of_a_fleet(net, tmp_path):
    """Saved twice, the last is loaded, with its epoch; of three, all but the last are removed."""
    main, _ = net
    fleet, exe, path = Collective(), fluid.Executor(), str(tmp_path / "points")
    assert fleet.load_check_point(exe, path, 0, main) is None
    weight = fluid.global_scope().find_var("fc_0.w_0")
    for epoch in (3, 4):
        weight.set(np.full((3, 2), epoch, "float32"))
        fleet.save_check_point(exe, path, TrainStatus(epoch), main)
    weight.set(np.zeros((3, 2), "float32"))
    status = fleet.load_check_point(exe, path, 0, main)
    assert status == TrainStatus(4) and status.next() == 5 and status != TrainStatus(3)
    assert np.array_equal(np.asarray(weight.get_tensor()), np.full((3, 2), 4.0))
    fleet.save_check_point(exe, path, TrainStatus(5), main, remain_all_checkpoint=False)
    assert [p.name for p in (tmp_path / "points").iterdir()] == ["__paddle_fleet_checkpoint__.2"]
    (tmp_path / "points" / "__paddle_fleet_checkpoint__.2" / "fleet_train_status").write_text(
        json.dumps({"epoch_no": -3})
    )
    with pytest.raises(LoadError, match="epoch_no"):
        fleet.load_check_point(exe, path, 0, main)
    with pytest.raises(ValueError, match="no check point"):
        fleet.load_check_point(exe, str(tmp_path), 0, main, ignore_empty=False)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(
    "samples, batch, ranks", [(11, 2, 3), (12, 2, 3), (7, 3, 2), (5, 4, 1), (23, 4, 4)]
)
def test_batches_of_one_worker_of_several(samples, batch, ranks, drop_last):
    """Each worker has as many samples, together they have all, the first ones again at the end;
    batches lie as one worker's would.
    """
    data = paddle.io.TensorDataset([np.arange(samples)])
    workers = [
        paddle.io.DistributedBatchSampler(data, batch, ranks, rank, drop_last=drop_last)
        for rank in range(ranks)
    ]
    found = [list(worker) for worker in workers]
    assert [len(f) for f in found] == [len(w) for w in workers] and len(
        {len(f) for f in found}
    ) == 1
    for k, group in enumerate(zip(*found, strict=True)):
        if all(len(b) == batch for b in group):
            assert [i for b in group for i in b] == [
                i % samples for i in range(k * batch * ranks, (k + 1) * batch * ranks)
            ]
    if not drop_last:
        assert {i for f in found for b in f for i in b} == set(range(samples))


def test_shuffled_batches_of_workers_are_apart():
    data = paddle.io.TensorDataset([np.arange(12)])
    workers = [
        paddle.io.DistributedBatchSampler(data, 2, 3, rank, shuffle=True) for rank in range(3)
    ]
    first, second = ([[i for b in w for i in b] for w in workers] for _ in range(2))
    assert {i for own in first for i in own} == {i for own in second for i in own} == set(
        range(12)
    ) and first != second
    for worker in workers:
        worker.set_epoch(0)
    assert [[i for b in w for i in b] for w in workers] == first
    with pytest.raises(ValueError, match="rank"):
        paddle.io.DistributedBatchSampler(data, 2, 3, 3)


def test_mixed_precision_of_paddle_2():
    for make in (
        lambda o: paddle.static.amp.decorate(
            o, paddle.static.amp.CustomOpLists(), init_loss_scaling=8.0
        ),
        paddle.static.amp.bf16.decorate_bf16,
    ):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
            with paddle.static.amp.fp16_guard():
                loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [2, 3]), 2))
            make(fluid.optimizer.SGD(0.1)).minimize(loss)
        assert "cast" in [op.type for op in main.global_block().ops]
    with pytest.raises(FluidError, match="O2"):
        paddle.static.amp.decorate(fluid.optimizer.SGD(0.1), level="O2")
    assert (
        fluid.contrib.mixed_precision.decorator.OptimizerWithMixedPrecison.__name__
        == "OptimizerWithMixedPrecision"
    )


def test_names_of_paddle_2():
    assert (
        paddle.device.get_device() == paddle.get_device()
        and "cpu" in paddle.device.get_all_device_type()
    )
    from fluidjax.paddle import utils

    assert utils.require_version("1.8.5") is None
    assert paddle.names.find("paddle.optimizer.adamw.AdamW") is paddle.optimizer.AdamW
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        assert paddle.create_parameter([2, 3], "float32").shape == (2, 3)
    from fluidjax.paddle import jit

    for name in ("save", "load"):
        with pytest.raises(NotImplementedError, match="save_inference_model"):
            getattr(jit, name)("layer")
    assert jit.not_to_static(len) is len


def test_sparse_rows_that_a_script_fills():
    rows = fluid.core.SelectedRows([0, 4, 7], 10)
    table = np.ones((3, 2), "float32")
    table[2, 1] = 4
    rows.get_tensor().set(table, fluid.CPUPlace())
    assert (rows.rows(), rows.rows()[1], rows.height(), rows.numel()) == ([0, 4, 7], 4, 10, 6)
    assert rows.get_tensor()._get_float_element(5) == 4
    expected = np.zeros((10, 2), "float32")
    expected[[0, 4, 7]] = table
    np.testing.assert_array_equal(rows.table(), expected)
    empty = fluid.core.SelectedRows()
    assert (empty.rows(), empty.height(), empty.get_tensor().shape()) == ([], 0, [0])
    for wrong in ((["a"], 3), ([1.5], 3), (3, 3), ([1], "a")):
        with pytest.raises(FluidTypeError, match="SelectedRows'"):
            fluid.core.SelectedRows(*wrong)


def test_sparse_rows_of_a_scope():
    scope = fluid.core._Scope()
    rows = scope.var("g").get_selected_rows()
    rows.set_height(4)
    rows.set_rows([3, 1])
    with pytest.raises(FluidValueError, match="2 rows, but its tensor"):
        scope.get("g")
    rows.get_tensor().set(np.float32([[1], [2]]), fluid.CPUPlace())
    assert scope.find_var("g").get_selected_rows().rows() == [3, 1]
    assert scope.get("g").ravel().tolist() == [0, 2, 0, 1]
    rows.set_height(3)
    with pytest.raises(FluidValueError, match="rows 1 to 3 of a table of 3"):
        scope.get("g")
    rows.set_height(4)
    main, kind = fluid.Program(), fluid.core.VarDesc.VarType.SELECTED_ROWS
    block = main.global_block()
    g = block.create_var(name="g", type=kind, dtype="float32", shape=[4, 1], persistable=True)
    out = block.create_var(name="o", type=kind, dtype="float32", shape=[4, 1])
    block.append_op("merge_selected_rows", {"X": g}, {"Out": out})
    with pytest.raises(UnsupportedError, match="'g' holds sparse rows"):
        fluid.Executor().run(main, fetch_list=[out], scope=scope)
    for ask in (scope.find_var, scope.var):
        with pytest.raises(FluidTypeError, match="by name"):
            ask(3)


def test_an_array_takes_no_tensor_without_a_value():
    var = fluid.core.Scope().var("a")
    array = var.get_lod_tensor_array()
    with pytest.raises(fluid.core.EnforceNotMet, match="holds no memory"):
        array.append(fluid.core.LoDTensor())
    assert len(array) == 0
    with pytest.raises(FluidTypeError, match="get_lod_tensor_array"):
        var.get_tensor()


@pytest.mark.parametrize("value", [None, "a", ["a", "b"], {"a": 1}, np.datetime64("2020-01-01")])
def test_a_tensor_holds_numbers(value):
    tensor = fluid.core.LoDTensor()
    tensor.set(np.float32([1, 2]), fluid.CPUPlace())
    with pytest.raises(fluid.core.EnforceNotMet, match="holds numbers, not an array of dtype"):
        tensor.set(value, fluid.CPUPlace())
    assert np.array(tensor).tolist() == [1, 2]


def test_dtypes_and_names_of_the_framework():
    f = fluid.framework
    floating = ["float16", "float32", np.float64, fluid.core.VarDesc.VarType.INT32, "bool"]
    assert [f.dtype_is_floating(d) for d in floating] == [True, True, True, False, False]
    names = {f.generate_control_dev_var_name() for _ in range(2)}
    assert len(names) == 2 and all(n.startswith("__control_var@") for n in names)
    assert f._dygraph_tracer() is fluid.Program()._sync_with_cpp() is None
    assert fluid.dataset.FileInstantDataset is not None
