"""What running a pass promises: verified, named in errors, kept names kept, new names for new
values, pipelines as text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, PassError
from fluidjax.ir import edit
from fluidjax.ir.desc import FrozenMap, ProgramDesc
from fluidjax.ops.registry import REGISTRY, lookup
from fluidjax.passes import PASSES, Pass, Pipeline, Rewrite, base, parse
from tests.documents import examples
from tests.look.dom import parsed

from .trained import Net, net


@pytest.fixture(scope="module")
def small() -> Net:
    return net(lambda x: layers.batch_norm(layers.conv2d(x, 4, 3), act="relu"))


@dataclass(frozen=True)
class Custom(Pass):
    """Does what the test says."""

    name: ClassVar[str] = "custom"
    what: str = "nothing"

    def rewrite(self, desc, params, keep):
        ops = desc.blocks[0].ops
        if self.what == "undeclared":
            bad = replace(ops[-1], inputs=FrozenMap({"X": ("nowhere",)}))
            return Rewrite(edit.replace_ops(desc, 0, (*ops[:-1], bad)))
        if self.what == "drops":
            return Rewrite(
                edit.drop_dead_vars(edit.replace_ops(desc, 0, ops[:-1]), keep_persistable=False)
            )
        if self.what == "overwrites":
            return Rewrite(desc, {"conv2d_0.w_0": np.zeros(1)})
        if self.what == "raises":
            raise FluidValueError("no")
        return Rewrite(desc)


def test_a_pass_that_changes_nothing(small: Net) -> None:
    result = passes.run(Custom(), small.program.desc, small.params, [small.out])
    assert (
        not result.changed and result.diff() == "" and result.counts() == {} and result.seconds >= 0
    )


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("undeclared", r"pass custom\(what='undeclared'\) broke the program: .*nowhere"),
        ("drops", "removed '.*', which is to be kept"),
        ("overwrites", "gives a new value to 'conv2d_0.w_0', which exists"),
    ],
)
def test_broken_promises_are_found(small: Net, what: str, text: str) -> None:
    with pytest.raises(PassError, match=text):
        passes.run(Custom(what=what), small.program.desc, small.params, [small.out])


@dataclass(frozen=True)
class Change(Pass):
    """Gives ops of some types another type, and other attributes."""

    name: ClassVar[str] = "change"
    types: tuple[tuple[str, str], ...] = ()
    attrs: tuple[tuple[str, float], ...] = ()

    def rewrite(self, desc, params, keep):
        types = dict(self.types)

        def attrs(op):
            known = {n: v for n, v in op.attrs.items() if lookup(types[op.type]).attr_type(n)}
            return FrozenMap({**known, **dict(self.attrs)})

        ops = [
            replace(op, type=types[op.type], attrs=attrs(op)) if op.type in types else op
            for op in desc.blocks[0].ops
        ]
        return Rewrite(edit.replace_ops(desc, 0, ops))


def trained_leaky() -> ProgramDesc:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        loss = layers.mean(layers.leaky_relu(layers.fc(fluid.data("x", [None, 4]), 3), 0.02))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main.desc


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change((("leaky_relu", "elu"),)), "'leaky_relu_grad' .*differentiates op 'leaky_relu', but .* made by op 'elu'"),
        (Change((("leaky_relu", "is_empty"),)), "op 'is_empty' .* was op 'leaky_relu', and op 'leaky_relu_grad' .*before minimize"),
        (Change((("leaky_relu", "leaky_relu"),), (("alpha", 0.5),)), "has alpha 0.5, and op 'leaky_relu_grad' .* 0.0199.*before minimize"),
    ],
)  # fmt: skip
def test_a_forward_op_is_not_changed_without_its_gradient(change: Change, text: str) -> None:
    with pytest.raises(PassError, match=text):
        passes.run(change, trained_leaky())


def test_a_forward_op_is_changed_with_its_gradient() -> None:
    pair = (("leaky_relu", "leaky_relu"), ("leaky_relu_grad", "leaky_relu_grad"))
    assert passes.run(Change(pair, (("alpha", 0.5),)), trained_leaky()).changed
    assert not passes.run("is_test", trained_leaky()).changed


def test_an_error_names_the_pass(small: Net) -> None:
    with pytest.raises(FluidValueError, match="no") as caught:
        passes.run(Custom(what="raises"), small.program.desc)
    assert "in pass custom(what='raises')" in caught.value.__notes__


def test_unknown_kept_name(small: Net) -> None:
    with pytest.raises(
        FluidValueError, match=r"no variable 'batch_norm_0\.tmp_9' to keep .*did you mean"
    ):
        passes.run("dce", small.program.desc, keep=["batch_norm_0.tmp_9"])


def test_result_says_what_happened(small: Net) -> None:
    result = passes.run("fuse_batch_norm,dce", small.program.desc, small.params, [small.out])
    assert result.counts() == {"batch_norm": (1, 0)}
    assert [p.title for p in result.parts] == ["fuse_batch_norm", "dce"]
    text = str(result)
    assert "batch_norm: 1 -> 0" in text and "folded into the op before it" in text
    assert "-    " in result.diff() and "conv2d_0.w_0_fuse_bn" in result.diff()
    assert set(result.params) == {"conv2d_0.w_0_fuse_bn", "conv2d_0.b_0_fuse_bn"}
    assert (
        result.certificates[0].to_dict()["folds"][0]["layer"] == "conv2d+elementwise_add+batch_norm"
    )
    shown = parsed(result._repr_html_())
    heads = [e.text for e in shown.all("summary")]
    assert (
        heads[0].startswith("fuse_batch_norm: changed")
        and heads[1].startswith("dce: ")
        and "difference, side by side" in heads
    )
    proof = parsed(result.certificates[0]._repr_html_()).one("table").text
    assert "conv2d+elementwise_add+batch_norm" in proof and "relative (probe" in proof


def test_every_pass_is_known_and_explains_itself() -> None:
    assert {
        "dce",
        "prune",
        "is_test",
        "inference",
        "fold_constants",
        "fuse_batch_norm",
        "fuse_conv_affine",
    } <= set(PASSES)
    for name, cls in PASSES.items():
        assert cls.name == name and cls.__doc__ and not cls.__doc__.startswith(cls.__name__ + "(")
        assert parse(name).passes == (cls(),)


def test_pipelines_as_text() -> None:
    pipeline = parse("inference, fuse_batch_norm(probe=False),\n dce")
    assert [p.name for p in pipeline.passes] == ["inference", "fuse_batch_norm", "dce"]
    assert pipeline.passes[1].probe is False
    assert parse(str(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a pipeline"),
        ("dce,,prune", "is not a pipeline"),
        ("dce prune", "is not a pipeline"),
        ("dse", "no pass 'dse'.*did you mean 'dce'"),
        ("fuse_batch_norm(prob=1)", "no option 'prob'.*did you mean 'probe'"),
        ("fuse_batch_norm(True)", "is not a pass"),
        ("fuse_batch_norm(probe=open('x'))", "is not a literal"),
        ("__import__('os').system('true')", "is not a pass"),
        ("(" * 500, "is not a pipeline"),
        ("dce;prune", "is not a pipeline"),
        ("dce\x00", "is not a pipeline"),
    ],
)
def test_bad_pipelines(text: str, message: str) -> None:
    with pytest.raises(FluidValueError, match=message):
        parse(text)


def test_wrong_types() -> None:
    with pytest.raises(FluidTypeError):
        parse(None)  # type: ignore[arg-type]
    with pytest.raises(FluidTypeError, match="passes run on a Program"):
        fluid.transpiler.apply_passes(ProgramDesc(), "dce")  # type: ignore[arg-type]
    with pytest.raises(FluidTypeError, match="fetch_list takes variables or their names, not int"):
        fluid.transpiler.apply_passes(fluid.Program(), "dce", [3])  # type: ignore[list-item]


def test_registration_refuses_namesakes_and_nameless() -> None:
    @dataclass(frozen=True)
    class Dce2(Pass):
        """Another dce."""

        name: ClassVar[str] = "dce"

    with pytest.raises(FluidValueError, match="there is a pass 'dce' already"):
        passes.register(Dce2)
    with pytest.raises(FluidValueError, match="needs a name"):
        passes.register(Pipeline.__base__)
    assert PASSES["dce"] is not Dce2


@pytest.mark.parametrize("page", ["passes.md", "own-passes.md"])
def test_the_examples_of_the_page_run(page: str) -> None:
    namespace: dict[str, object] = {}
    try:
        for example in examples(page, "# Passes"):
            exec(example, namespace)
    finally:
        for name in ("relu6_to_relu", "drop_casts"):
            PASSES.pop(name, None)
        for kind in ("mish_like", "mish_like_grad"):
            REGISTRY.pop(kind, None)


def test_failed_run_leaves_the_scope_alone(small: Net) -> None:
    before = set(small.scope.local_var_names())
    with pytest.raises(FluidError):
        fluid.transpiler.apply_passes(small.program, Custom(what="drops"), [small.out], small.scope)
    assert set(small.scope.local_var_names()) == before


def test_new_names() -> None:
    assert base.new_name("a", {}) == "a"
    assert base.new_name("a", {"a": 0}, ["a_1"]) == "a_2"
