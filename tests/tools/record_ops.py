"""Record the answers of the real Paddle 1.8.5 to the op samples (runs on Paddle 1.8.5, CPU).

    python3.8 tests/tools/record_ops.py [--only OP,OP] [FAMILY...]

Writes tests/data/ops/FAMILY.npz: "3/Out" is output Out of sample 3, "3/Out#1" the second variable
of a duplicable slot, "3/X@GRAD" a gradient, "3/Out@LOD0" the offsets of an output's first LoD
level; "digests" tells which recordings are out of date. --only tries samples, writing nothing.

On Paddle 3.3.1 it records the samples of ops that 1.8.5 lacks instead, to FAMILY.later.npz.
"""

import os
import pickle
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("FLAGS_use_pinned_memory", "0")  # else every child pins half a gigabyte
os.environ.setdefault("FLAGS_enable_pir_api", "0")  # Paddle 3 would build another kind of program
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, ROOT)

import numpy as np  # noqa: E402
import paddle  # noqa: E402

from tests.ops.recorded import FOLDER, path  # noqa: E402
from tests.ops.sample import LATER  # noqa: E402
from tests.ops.samples import FAMILIES, samples_of  # noqa: E402

VERSION = paddle.__version__
if VERSION == LATER:
    import paddle.base as fluid

    paddle.enable_static()
else:
    import paddle.fluid as fluid


def keys(slot, count):
    """keys of an output slot's variables, in order"""
    return [slot] if count is None else ["%s#%d" % (slot, i) for i in range(count)]


def check_names(sample):
    """Paddle ignores a misspelt slot or attribute; a recording must not"""
    proto = fluid.framework.OpProtoHolder.instance().get_op_proto(sample.op)
    for given, known in (
        (sample.inputs, proto.inputs),
        (sample.outputs, proto.outputs),
        (sample.attrs, proto.attrs),
    ):
        wrong = set(given) - {k.name for k in known}
        if wrong:
            raise NameError("%s has no %s" % (sample.op, ", ".join(sorted(wrong))))
    return proto


class Net:
    """The program of one sample. `dtypes` are the outputs' dtypes where a first run has told them."""

    def __init__(self, sample, dtypes):
        proto = check_names(sample)
        self.sample, self.main = sample, fluid.Program()
        self.block = self.main.global_block()
        self.feed, self.ins, self.outs = {}, {}, {}
        for slot in sample.inputs:
            self.ins[slot] = [
                self.data(slot, i, n, a) for i, (n, a) in enumerate(sample.variables(slot))
            ]
        for slot in self.output_slots(proto):
            self.outs[slot] = [
                self.output(slot, key, dtypes) for key in keys(slot, sample.outputs.get(slot))
            ]
        self.op = self.block.append_op(
            type=sample.op, inputs=self.ins, outputs=self.outs, attrs=dict(sample.attrs)
        )

    def output_slots(self, proto):
        """rnn writes all of its outputs, dispensable or not"""
        every = self.sample.op == "rnn"
        return [
            s.name
            for s in proto.outputs
            if s.name in self.sample.outputs or not s.dispensable or every
        ]

    def data(self, slot, index, name, array):
        lod = self.sample.lod_of(slot, index)
        array = np.asarray(array)
        self.feed[name] = fluid.create_lod_tensor(array, lod, fluid.CPUPlace()) if lod else array
        return self.block.create_var(
            name=name,
            shape=array.shape,
            dtype=str(array.dtype),
            is_data=True,
            lod_level=len(lod or ()),
            stop_gradient=slot not in self.sample.grad,
        )

    def output(self, slot, key, dtypes):
        if slot in self.sample.inplace:
            return self.ins[self.sample.inplace[slot]][0]
        known = {"dtype": dtypes[key]} if key in dtypes else {}
        return self.block.create_var(name="out." + key, stop_gradient=False, **known)

    def compared(self):
        """(key, slot, variable) of the outputs to compare"""
        return [
            (key, slot, v)
            for slot, count in self.sample.outputs.items()
            for key, v in zip(keys(slot, count), self.outs[slot])
        ]

    def run(self, wanted):
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(fluid.Scope()):
            got = exe.run(
                self.main, feed=self.feed, fetch_list=[v for _, v in wanted], return_numpy=False
            )
        self.lods = {
            "%s@LOD%d" % (key, i): np.array(level, "int32")
            for (key, _), value in zip(wanted, got)
            for i, level in enumerate(value.lod())
        }
        return {key: np.array(value) for (key, _), value in zip(wanted, got)}

    def add_gradients(self, values):
        """append the backward ops for fixed cotangents; -> (key, gradient variable) of each input"""
        targets = [
            (key, slot, v)
            for key, slot, v in self.compared()
            if self.sample.starts_gradient(slot, values[key])
        ]
        fixed = []
        for i, (key, slot, target) in enumerate(targets):
            array = values[key]
            self.feed["ct.%d" % i] = self.sample.cotangent(slot, i, array.shape, array.dtype)
            fixed.append(
                self.block.create_var(
                    name="ct.%d" % i,
                    shape=target.shape,
                    dtype=str(array.dtype),
                    is_data=True,
                    stop_gradient=True,
                )
            )
        wrt = [(slot, v) for slot in self.sample.grad for v in self.ins[slot]]
        with fluid.program_guard(self.main):
            grads = fluid.backward.gradients([t for _, _, t in targets], [v for _, v in wrt], fixed)
        named = [(grad_key(self.sample, slot, v.name), g) for (slot, v), g in zip(wrt, grads)]
        lost = [key for key, g in named if g is None]
        if lost:
            raise ValueError("no gradient for " + ", ".join(lost))
        return named


def grad_key(sample, slot, name):
    if not isinstance(sample.inputs[slot], (list, tuple)):
        return slot + "@GRAD"
    return "%s@GRAD#%s" % (slot, name.rsplit("_", 1)[1])


def answer(sample):
    """{key: array} from two programs: only the first run tells shapes and dtypes that cannot be
    inferred
    """
    net = Net(sample, {})
    values = net.run([(key, v) for key, _, v in net.compared()])
    lods = net.lods
    if sample.grad:
        net = Net(sample, {k: str(v.dtype) for k, v in values.items()})
        values.update(net.run(net.add_gradients(values)))
    values.update(lods)
    return values


def explain(error):
    """the telling lines of Paddle's long messages"""
    text = str(error)
    mark = "Error Message Summary:"
    text = text[text.index(mark) + len(mark) :] if mark in text else text
    lines = [s for s in text.splitlines() if s.strip("- \t")]
    return "%s: %s" % (type(error).__name__, " | ".join(s.strip() for s in lines)[-600:])


def tried(sample, work=answer):
    """work(sample) -> (result, error)"""
    try:
        return work(sample), None
    except BaseException as e:
        return None, explain(e)


def forked(sample, work=answer):
    """tried() in a child: an op that crashes natively must not end the others"""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        warnings.simplefilter("ignore")
        result = tried(sample, work)
        with os.fdopen(w, "wb") as f:
            pickle.dump(result, f)
        os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        data = f.read()
    status = os.waitpid(pid, 0)[1]
    return pickle.loads(data) if data else (None, "native crash (status %d)" % status)


def record(family, only):
    """-> number of failures"""
    table, failed = {}, 0
    samples = samples_of(family)
    mine = [s.paddle == (LATER if VERSION == LATER else True) for s in samples]
    for i, sample in enumerate(samples):
        if not mine[i] or (only and sample.op not in only):
            continue
        values, error = (tried if VERSION == LATER else forked)(sample)  # a child of Paddle 3 hangs
        if error:
            failed += 1
            print("%s/%d %s\n    %s" % (family, i, str(sample)[:200], error), flush=True)
            continue
        table.update(("%d/%s" % (i, key), v) for key, v in values.items())
    if table and not only:
        table["digests"] = np.array([s.digest() for s in samples], "uint32")
        os.makedirs(FOLDER, exist_ok=True)
        np.savez_compressed(path(family, VERSION == LATER), **table)
    skipped = len(samples) - sum(mine)
    print(
        "%s: %d samples, %d failed, %d not for Paddle %s"
        % (family, len(samples), failed, skipped, VERSION),
        flush=True,
    )
    return failed


def main(args):
    only = args.pop(0) and args.pop(0).split(",") if args[:1] == ["--only"] else None
    failed = sum(record(family, only) for family in args or FAMILIES)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
