"""Record whole programs of the real Paddle 1.8.5: forward, startup, test clone, backward, minimize.

    python3.8 tests/tools/record_golden.py [NAME...]

Writes tests/data/golden_extra/NAME.json, a net from golden_nets.py and its programs. A program is
{random_seed, blocks: [{idx, parent, forward_block, ops, vars}]}; the variables of a later program
are those that the one it grew from (minimize's main from append_backward, that from forward) lacks
or has otherwise. op_callstack is left out.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))

import paddle.fluid as fluid  # noqa: E402
from paddle.fluid import core  # noqa: E402

import golden_nets  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden_extra")
DEFAULTS = {"op_device": "", "op_namescope": "/", "op_role_var": []}
DTYPES = ("BOOL", "INT8", "UINT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64")
KINDS = (
    "LOD_TENSOR",
    "SELECTED_ROWS",
    "LOD_TENSOR_ARRAY",
    "RAW",
    "STEP_SCOPES",
    "FEED_MINIBATCH",
    "FETCH_LIST",
    "LOD_RANK_TABLE",
    "READER",
)
NAMES = {int(getattr(core.VarDesc.VarType, n)): n for n in DTYPES + KINDS}


def count_control_variables():
    """control-dependency variables have random names in Paddle; count them instead"""
    counter = iter(range(1 << 30))
    prefix = fluid.framework.CONTROL_DEP_VAR_PREFIX
    fluid.framework.generate_control_dev_var_name = lambda: "%s@%d" % (prefix, next(counter))


def dotted(name):
    obj = fluid
    for part in name.split("."):
        obj = getattr(obj, part)
    return obj


def resolve(v, env):
    """ "$key": an earlier result; {"@": name, "args": {}}: a call; {"@ref": name}: the function
    itself
    """
    if isinstance(v, str) and v.startswith("$"):
        return env[v[1:]]
    if isinstance(v, dict):
        if "@ref" in v:
            return dotted(v["@ref"])
        args = {k: resolve(x, env) for k, x in v.get("args", {}).items()} if "@" in v else None
        return dotted(v["@"])(**args) if "@" in v else {k: resolve(x, env) for k, x in v.items()}
    return [resolve(x, env) for x in v] if isinstance(v, list) else v


def run_steps(steps):
    env = {}
    for s in steps:
        try:
            result = dotted(s["fn"])(**{k: resolve(x, env) for k, x in s.get("args", {}).items()})
        except Exception:
            print("step", s)
            raise
        if isinstance(s.get("out"), list):
            env.update(zip(s["out"], result))
        elif s.get("out"):
            env[s["out"]] = result
    return env


class Fresh:
    """the net built in fresh programs, whose guards stay open for what follows"""

    def __init__(self, net):
        fluid.framework._name_scope = fluid.framework.NameScope()  # as in a fresh process
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.guards = [fluid.unique_name.guard(), fluid.program_guard(self.main, self.startup)]
        self.net = net

    def __enter__(self):
        for g in self.guards:
            g.__enter__()
        if callable(self.net):
            self.loss = self.net(fluid)[0]
        else:
            self.loss = run_steps(self.net["steps"])[self.net["loss"]]
        return self

    def __exit__(self, *error):
        for g in reversed(self.guards):
            g.__exit__(*error)


def clean(v):
    if isinstance(v, (list, tuple)):
        return [clean(x) for x in v]
    return v if isinstance(v, (bool, int, float, str)) or v is None else int(v)


def attribute(op, name):
    kind = op.desc.attr_type(name)
    if kind == core.AttrType.BLOCK:
        return {"block": op._block_attr_id(name)}
    if kind == core.AttrType.BLOCKS:
        return {"blocks": list(op._blocks_attr_ids(name))}
    return clean(op.desc.attr(name))


def dump_op(op):
    attrs = {n: attribute(op, n) for n in sorted(op.attr_names) if n != "op_callstack"}
    return {
        "type": op.type,
        "inputs": {k: list(op.input(k)) for k in op.input_names if op.input(k)},
        "outputs": {k: list(op.output(k)) for k in op.output_names if op.output(k)},
        "attrs": {n: v for n, v in attrs.items() if not (n in DEFAULTS and v == DEFAULTS[n])},
    }


def dump_var(v):
    d = {
        "name": v.name,
        "persistable": bool(v.persistable),
        "type": NAMES.get(int(v.type), int(v.type)),
    }
    for field, convert in (
        ("shape", list),
        ("lod_level", int),
        ("dtype", lambda x: NAMES.get(int(x), str(x))),
    ):
        try:
            d[field] = convert(getattr(v, field))
        except Exception:
            continue  # this kind of variable has no such thing
    d["stop_gradient"] = bool(v.stop_gradient)
    if isinstance(v, fluid.framework.Parameter):
        d.update(parameter=True, trainable=bool(v.trainable))
    return d


def dump_program(program, base=None):
    """`base`: the dumped program whose variables need no repetition"""
    blocks = []
    for b in program.blocks:
        known = base["all_vars"][b.idx] if base and b.idx < len(base["all_vars"]) else []
        blocks.append(
            {
                "idx": b.idx,
                "parent": b.parent_idx,
                "forward_block": b.forward_block_idx,
                "ops": [dump_op(o) for o in b.ops],
                "vars": [
                    v for v in map(dump_var, (b.vars[n] for n in sorted(b.vars))) if v not in known
                ],
            }
        )
    full = [[dump_var(v) for v in b.vars.values()] for b in program.blocks]
    return {"random_seed": program.random_seed, "blocks": blocks, "all_vars": full}


def names(params_grads):
    return [[p.name, None if g is None else g.name] for p, g in params_grads]


def record(name, case):
    net = case["net"]
    rec = {"paddle": "1.8.5", "net_name": name}
    rec.update({"builder_source": golden_nets.source(net)} if callable(net) else {"net": net})
    with Fresh(net) as f:
        rec["loss"] = f.loss.name
        forward, startup = dump_program(f.main), dump_program(f.startup)
        clone = dump_program(f.main.clone(for_test=True), forward)
        pairs = fluid.backward.append_backward(f.loss)
        backward = dump_program(f.main, forward)
    rec.update(
        forward=forward,
        startup=startup,
        clone_for_test_before_backward=clone,
        append_backward={"params_grads": names(pairs), "program": backward},
        minimize={},
    )
    for key, optimizer in case["minimize"].items():
        with Fresh(net) as f:
            ops, pairs = resolve(optimizer, {}).minimize(f.loss)
            rec["minimize"][key] = {
                "optimizer": optimizer,
                "params_grads": names(pairs),
                "returned_ops": [o.type for o in ops or ()],
                "main": dump_program(f.main, backward),
                "startup": dump_program(f.startup, startup),
            }
    return rec


def without_all_vars(v):
    if isinstance(v, dict):
        return {k: without_all_vars(x) for k, x in v.items() if k != "all_vars"}
    return [without_all_vars(x) for x in v] if isinstance(v, list) else v


def main(wanted):
    count_control_variables()
    os.makedirs(FOLDER, exist_ok=True)
    cases, failed = golden_nets.cases(), 0
    for name in wanted or cases:
        try:
            rec = without_all_vars(record(name, cases[name]))
        except Exception as e:
            failed += 1
            print("%-28s %s: %s" % (name, type(e).__name__, str(e)[-600:]), flush=True)
            continue
        target = os.path.join(FOLDER, name + ".json")
        with open(target, "w") as f:
            json.dump(rec, f, separators=(",", ":"))
        print("%-28s %d bytes" % (name, os.path.getsize(target)), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
