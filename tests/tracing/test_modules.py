"""Modules of flax nnx given to fluid.trace, and among the arguments of what it takes, beside
nnx.jit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, TraceError

from .same import check_same

X = jax.random.normal(jax.random.key(0), (4, 6))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(6, 8, rngs=rngs), nnx.Linear(8, 3, rngs=rngs)])
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.layers[1](self.encode(x))

    def encode(self, x: Any) -> Any:
        return self.drop(nnx.relu(self.norm(self.layers[0](x))))


def train(model: Any, optimizer: Any, x: Any) -> Any:
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean(m(x) ** 2))(model)
    optimizer.update(model, grads)
    return loss, x.sum()


ADAM = optax.adam(1e-2)


def fresh(rule: Any = ADAM) -> tuple[Net, nnx.Optimizer[Net]]:
    model = Net(nnx.Rngs(0))
    return model, nnx.Optimizer(model, rule, wrt=nnx.Param)


@pytest.mark.parametrize("wrapped", [train, nnx.jit(train)])
def test_a_step_writes_what_it_changes_in_the_objects_that_it_is_given(wrapped: Any) -> None:
    """Nothing of a model, its batch norm, its stream of dropout and its optimizer is lost."""
    (model, optimizer), (own, its) = fresh(), fresh()
    traced = fluid.trace(wrapped, model, optimizer, X)
    assert list(traced.feeds) == ["x"] and traced.continued == {0: 0, 1: 1}
    assert "model.drop.rngs.count" in traced.state and "optimizer.step" in traced.state
    step, by_hand = jax.jit(traced.step()), nnx.jit(train)
    given: Any = (model, optimizer)
    for _ in range(3):
        *given, out = step(*given, X)
        check_same(by_hand(own, its, X), out)
        check_same(nnx.to_pure_dict(nnx.state(own)), given[0])
        check_same(nnx.to_pure_dict(nnx.state(its)), given[1])


def test_a_step_of_nnx_runs_in_an_executor() -> None:
    rule = optax.sgd(1e-2, momentum=0.9)  # Adam makes much of a gradient that is next to zero
    (model, optimizer), (own, its) = fresh(rule), fresh(rule)
    traced = fluid.trace(train, model, optimizer, X)
    traced.write()
    for _ in range(3):
        (loss, _) = fluid.Executor().run(
            traced.main, feed={"x": np.asarray(X)}, fetch_list=list(traced.fetches)
        )
        np.testing.assert_allclose(loss, nnx.jit(train)(own, its, X)[0], rtol=1e-5)
    np.testing.assert_allclose(
        traced.read()["model.norm.mean"], own.norm.mean[...], rtol=1e-4, atol=1e-7
    )


def test_a_method_has_the_module_as_its_state() -> None:
    model, own = Net(nnx.Rngs(0)), Net(nnx.Rngs(0))
    traced = fluid.trace(model.encode, X)
    assert list(traced.feeds) == ["x"] and "model.norm.var" in traced.state
    new, out = jax.jit(traced.step())(model, X)
    check_same(nnx.jit(Net.encode)(own, X), out)
    check_same(nnx.to_pure_dict(nnx.state(own)), new)


def test_parts_are_called_as_their_owner_calls_them_in_lists_and_dicts_too() -> None:
    class Within(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.nets = nnx.Dict({"a": nnx.Linear(6, 6, rngs=rngs)})
            self.block = nnx.Sequential(nnx.Linear(6, 6, rngs=rngs), nnx.relu)

        def __call__(self, x: Any) -> Any:
            return self.block(self.nets["a"](x))

    scopes = fluid.trace(Within(nnx.Rngs(0)), X).report.scopes
    assert scopes == ("Within/nets.a", "Within/block/layers.0", "Within/block")


def test_minimize_trains_parameters_and_no_statistics() -> None:
    """A batch norm that predicts hands gradients to its mean too, which nobody wants."""
    model = Net(nnx.Rngs(0))
    model.eval()
    traced = fluid.trace(model, X)
    trained = {v.name for v in traced.main.desc.blocks[0].vars.values() if v.is_parameter}
    params = nnx.state(model, nnx.Param)
    assert len(trained) == len(jax.tree.leaves(params)) and "model.norm.mean" not in trained

    def of_haiku(params: Any, state: Any, x: Any) -> Any:
        return (x @ params["w"] - state["mean"]).sum()

    traced = fluid.trace(of_haiku, {"w": jnp.ones((6, 2))}, {"mean": X[0, :2]}, X, state=(0, 1))
    names = [v.name for v in traced.main.desc.blocks[0].vars.values() if v.is_parameter]
    assert names == ["params.w"]


def test_a_metric_counts_and_a_list_of_modules_is_state() -> None:
    metric = nnx.metrics.Average("loss")

    def seen(metric: Any, x: Any) -> Any:
        metric.update(loss=x)
        return metric.compute()

    step = fluid.trace(seen, metric, X).step()
    arrays, first = step(metric, X)
    _, second = step(arrays, 3 * X)
    np.testing.assert_allclose([first, second], [X.mean(), 2 * X.mean()], rtol=1e-6)
    nets = [nnx.Linear(6, 6, rngs=nnx.Rngs(i)) for i in range(2)]
    traced = fluid.trace(lambda nets, x: nets[1](nets[0](x)), nets, X)
    assert list(traced.feeds) == ["x"] and "nets.1.kernel" in traced.state


def test_what_no_state_can_keep_is_refused() -> None:
    class Seen(nnx.Module):
        def __call__(self, x: Any) -> Any:
            self.seen = nnx.Intermediate(x)
            return 2 * x

    with pytest.raises(TraceError, match=r"adds seen of the Seen.*nnx.pop"):
        fluid.trace(Seen(), X)

    def popped(model: Any, x: Any) -> Any:
        return model(x), nnx.pop(model, nnx.Intermediate)

    np.testing.assert_array_equal(fluid.trace(popped, Seen(), X).step()(Seen(), X)[1][0], 2 * X)


def test_what_cannot_be_called_says_what_can() -> None:
    class Encoder(nnx.Module):
        def encode(self, x: Any) -> Any:
            return x

    with pytest.raises(FluidTypeError, match="Encoder has no __call__: trace one of its methods"):
        fluid.trace(Encoder(), X)
    haiku = pytest.importorskip("haiku")
    made = haiku.transform(lambda x: haiku.Linear(3)(x))
    with pytest.raises(FluidTypeError, match="not Transformed; trace its apply"):
        fluid.trace(made, X)


def test_a_flag_that_python_decides_by_is_told_how() -> None:
    class Flagged(nnx.Module):
        def __call__(self, x: Any, train: Any) -> Any:
            return x if train else -x

    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        fluid.trace(Flagged(), X, True)
    assert "is closed over" in caught.value.__notes__[-1]
    traced = fluid.trace(lambda m, x: m(x, False), Flagged(), X)
    np.testing.assert_array_equal(traced.step()(Flagged(), X)[1], -X)


def test_new_statistics_of_a_part_of_the_variables_are_not_passed_over() -> None:
    """What ``mutable`` of linen returns is a part of an argument."""
    net = linen.BatchNorm(use_running_average=False)
    variables = net.init(jax.random.key(0), X)

    def step(variables: Any, x: Any) -> Any:
        return net.apply(variables, x, mutable=["batch_stats"])

    with pytest.raises(TraceError, match=r"result 1 may be new .* of 'variables', batch_stats"):
        fluid.trace(step, variables, X, state=0)
    read = fluid.trace(step, variables, X, state={"variables": None})
    check_same(jax.jit(step)(variables, X), jax.jit(read.step())(variables, X))
    trained = [v.name for v in read.main.desc.blocks[0].vars.values() if v.is_parameter]
    assert trained == ["variables.params.bias", "variables.params.scale"]


def test_parameters_that_were_fed_say_how_they_are_state() -> None:
    params = {"w": jnp.ones((6, 2))}
    traced = fluid.trace(lambda params, x: (x @ params["w"]).mean(), params, X)
    exe, feed = fluid.Executor(), {"x": np.asarray(X)}
    with pytest.raises(fluid.FluidError, match=r"'params.w' must be fed: .*state='params'\); fed"):
        exe.run(traced.main, feed=feed, fetch_list=list(traced.fetches))
    with (
        fluid.program_guard(traced.main, traced.startup),
        pytest.warns(UserWarning, match="no parameter .*nothing is trained"),
    ):
        fluid.optimizer.SGD(0.1).minimize(traced.main.global_block().var(traced.fetches[0]))
    bare = fluid.trace(lambda w, x: (x @ w).mean(), params["w"], X)
    with pytest.raises(fluid.FluidError, match=r"state=\{'w': None\}"):
        exe.run(bare.main, feed=feed, fetch_list=list(bare.fetches))
    kept = fluid.trace(lambda params, x: (x @ params["w"]).mean(), params, X, state=0)
    with pytest.raises(fluid.FluidError, match=r"not initialised; write\(\) what fluid.trace"):
        exe.run(kept.main, feed=feed, fetch_list=list(kept.fetches), scope=fluid.Scope())
