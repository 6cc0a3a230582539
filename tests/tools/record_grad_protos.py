"""Record what every grad maker of Paddle 1.8.5 builds (runs on the real Paddle 1.8.5).

    python3.8 tests/tools/record_grad_protos.py [OUTPUT.json]

Each op gets a desc with every slot filled (two variables in a duplicable slot) and its default
attributes; the grad maker's answer is written as slots. The format is described in the file's
"_format" entry.
"""

import json
import os
import sys

import paddle.fluid as fluid
from paddle.fluid import core
from paddle.fluid.proto import framework_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "..", "data", "grad_protos_1.8.5.json")
FORMAT = (
    "{op: [grad op, ...]}; [] where the maker makes nothing. inputs/outputs: the slots that got"
    " variables, sorted. wiring {slot: [origin]}: only where the slot's name is not its origin; an"
    " origin is a slot of the forward op, its gradient SLOT@GRAD, SLOT#1 for one variable of a"
    " duplicable slot, or @EMPTY@; under wiring of an op X_grad an input 'X@GRAD' is that slot of"
    " X_grad itself, an output 'X@GRAD' is the gradient of its slot X. attrs: those that are not"
    " copied from the forward op unchanged. empty: slots present without a variable. _with_attrs:"
    ' {op: {"attr=value": grad ops}} where that value changes the slots. _without_optional: the'
    " same with the dispensable inputs and outputs left out, where it differs in more than those"
    " slots being gone. kept_empty: output slots that hold @EMPTY@ (not nothing) if all gradients"
    " are unwanted; dropped: the grad op vanishes then."
)
DUMMY = {
    "FLOAT": 1.0,
    "STRING": "s",
    "BOOLEAN": True,
    "LONG": 1,
    "INTS": [1],
    "FLOATS": [1.0],
    "STRINGS": ["s"],
    "BOOLEANS": [True],
    "LONGS": [1],
}
GIVEN = {"functor_list": ["elementwise_add", "scale"]}  # of attributes that must make sense
STRING_VALUES = {"pooltype": ["SUM", "MAX"], "mode": ["NONE", "TEST"], "data_layout": ["NHWC"]}
ROLE_KEYS = {"op_callstack", "op_role", "op_role_var", "op_namescope", "op_device"}


class Case:
    """A forward op desc whose variables remember their slots: v3_0 is variable 0 of slot number 3."""

    def __init__(self, kind, slots_in, slots_out, attrs):
        self.kind, self.ins, self.outs = kind, slots_in, slots_out
        self.slots, self.origin = {}, {}
        self.program = fluid.Program()
        self.block = self.program.desc.block(0)
        self.desc = self.block.append_op()
        self.desc.set_type(kind)
        for put, slots in ((self.desc.set_input, slots_in), (self.desc.set_output, slots_out)):
            for slot, count in slots:
                put(slot, self.names(slot, count))
        for key, value in attrs.items():
            self.desc._set_attr(key, value)

    def names(self, slot, count):
        number = len(self.slots)
        names = ["v%d_%d" % (number, i) for i in range(count)]
        for i, name in enumerate(names):
            origin = slot if count == 1 else "%s#%d" % (slot, i)
            self.origin[name] = origin
            self.origin[name + "@GRAD"] = slot + "@GRAD" if count == 1 else "%s@GRAD#%d" % (slot, i)
            self.block.var(name.encode())
        self.slots[slot] = names
        return names

    def origins(self, names):
        """the slots that these variables come from; a slot's full list is one entry"""
        for suffix in ("", "@GRAD"):
            for slot, full in self.slots.items():
                if len(full) > 1 and list(names) == [n + suffix for n in full]:
                    return [slot + suffix]
        return [self.origin.get(n, n) for n in names]

    def grads(self, unwanted=()):
        return core.get_grad_op_desc(self.desc, set(unwanted), [])[0]

    def all_grads(self):
        return [n + "@GRAD" for names in self.slots.values() for n in names]


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def changed_attrs(desc, forward):
    """attributes that the grad op does not simply copy"""
    own = {n: plain(desc.attr(n)) for n in desc.attr_names() if n not in ROLE_KEYS}
    base = {n: plain(forward.attr(n)) for n in forward.attr_names() if n not in ROLE_KEYS}
    changed = {n: v for n, v in sorted(own.items()) if n not in base or base[n] != v}
    missing = sorted(n for n in base if n not in own)
    if own == {} and base:
        return {"attrs": "none"}
    return dict(
        {"attrs": changed} if changed else {}, **({"attrs_missing": missing} if missing else {})
    )


def describe(case, desc):
    rec = {"type": desc.type(), "inputs": [], "outputs": []}
    wiring, empty = {}, []
    for part, names, args in (
        ("inputs", desc.input_names(), desc.input),
        ("outputs", desc.output_names(), desc.output),
    ):
        for slot in sorted(names):
            if not args(slot):
                empty.append(slot)
                continue
            rec[part].append(slot)
            origin = case.origins(args(slot))
            if origin != [slot]:
                wiring[slot] = origin
    if wiring:
        rec["wiring"] = wiring
    if empty:
        rec["empty"] = empty
    rec.update(changed_attrs(desc, case.desc))
    return rec


def unwanted(case, recs):
    """what is left of each grad op if no gradient at all is wanted"""
    try:
        left = {d.type(): d for d in case.grads(case.all_grads())}
    except Exception as e:
        recs[0]["unwanted_error"] = first_line(e)
        return
    for rec in recs:
        d = left.get(rec["type"])
        if d is None:
            rec["dropped"] = True
            continue
        kept = sorted(s for s in d.output_names() if d.output(s))
        if kept:
            rec["kept_empty"] = kept


def first_line(e):
    lines = [s.strip() for s in str(e).splitlines() if s.strip()]
    hits = [s for s in lines if "Error:" in s or "not " in s]
    return (hits or lines or [type(e).__name__])[-1].split(" at (/")[0][:200]


def attributes(kind, proto):
    """defaults of the op, with a dummy for each attribute that has none"""
    try:
        filled = dict(core.get_op_attrs_default_value(kind.encode()))
    except Exception:
        filled = {}
    for attr in proto.attrs:
        if attr.name in ROLE_KEYS or attr.generated or attr.name in filled:
            continue
        name = framework_pb2.AttrType.Name(attr.type)
        if name in ("BLOCK", "BLOCKS"):
            raise ValueError("needs a sub-block")
        filled[attr.name] = GIVEN.get(attr.name) or (len(filled) if name == "INT" else DUMMY[name])
    return filled


def slots(proto, optional, many):
    """(inputs, outputs) with a variable count each; absent optional inputs stay as empty slots, as
    append_op leaves them
    """
    count = lambda s: many if s.duplicable else 1
    ins = [(s.name, count(s) if optional or not s.dispensable else 0) for s in proto.inputs]
    outs = [(s.name, count(s)) for s in proto.outputs if optional or not s.dispensable]
    return ins, outs


def full_case(kind, proto, attrs):
    """two variables in a duplicable slot, one where the maker refuses two"""
    for many in (2, 1):
        try:
            case = Case(kind, *slots(proto, True, many), attrs=attrs)
            case.grads()
            second_order(case, {}, {}, strict=True)
            return case
        except Exception:
            continue
    return case


def grad_list(case):
    recs = [describe(case, d) for d in case.grads()]
    if recs:
        unwanted(case, recs)
    return recs


def slots_of(rec, gone):
    """the part of a record that does not speak of the slots in `gone`"""
    keep = lambda part: [s for s in rec[part] if s not in gone]
    wiring = {k: v for k, v in rec.get("wiring", {}).items() if k not in gone}
    return rec["type"], keep("inputs"), keep("outputs"), wiring, rec.get("attrs")


def without_optional(kind, proto, attrs, full):
    """the record with optional slots left out, if it is not just the full record minus those slots"""
    optional = [s.name for s in list(proto.inputs) + list(proto.outputs) if s.dispensable]
    if not optional:
        return None
    try:
        recs = grad_list(Case(kind, *slots(proto, False, 2), attrs=attrs))
    except Exception as e:
        return {"error": first_line(e)}
    gone = set(optional) | {s + "@GRAD" for s in optional}
    strip = lambda rs: [slots_of(r, gone) for r in rs]
    return None if strip(full) == strip(recs) else recs


def variants(attrs):
    """(text, attributes) with one attribute turned over; a maker that looks at attributes shows
    itself then
    """
    for key, value in sorted(attrs.items()):
        for other in [not value] if isinstance(value, bool) else STRING_VALUES.get(key, ()):
            yield "%s=%s" % (key, json.dumps(other)), dict(attrs, **{key: other})


def with_attrs(kind, proto, attrs):
    """{"use_global_stats=true": grad ops} of the attributes that change the grad ops' slots"""
    table, view = {}, lambda recs: [slots_of(r, ()) for r in recs]
    for text, changed in variants(attrs):
        try:
            recs = grad_list(Case(kind, *slots(proto, True, 1), attrs=changed))
            plain = grad_list(Case(kind, *slots(proto, True, 1), attrs=attrs))
        except Exception:
            continue  # the maker refuses this combination
        if view(recs) != view(plain):
            table[text] = recs
    return table


def of_desc(desc):
    """a grad op's own case: its slots are known only from the desc that the forward op's maker
    built
    """
    count = lambda names, args: [(s, len(args(s))) for s in names if args(s)]
    attrs = {n: desc.attr(n) for n in desc.attr_names() if n not in ROLE_KEYS}
    # to set an empty list asks for a proto, which grad ops lack
    attrs = {n: v for n, v in attrs.items() if v != []}
    return Case(
        desc.type(),
        count(desc.input_names(), desc.input),
        count(desc.output_names(), desc.output),
        attrs,
    )


def second_order(case, table, skipped, strict=False, depth=0):
    """the grads of the grads of `case`, under the grad ops' own names"""
    for desc in case.grads():
        kind = desc.type()
        if kind in table or not kind.endswith("_grad") or not core.has_grad_op_maker(kind):
            continue
        try:
            grad = of_desc(desc)
            table[kind] = grad_list(grad)
            if depth < 3 and table[kind]:
                second_order(grad, table, skipped, strict, depth + 1)
        except Exception as e:
            if strict:
                raise
            skipped[kind] = first_line(e)


def one(kind, proto):
    table, skipped = {}, {}
    try:
        attrs = attributes(kind, proto)
        case = full_case(kind, proto, attrs)
        table[kind] = grad_list(case)
        variant = without_optional(kind, proto, attrs, table[kind])
        if variant is not None:
            table[kind + " without_optional"] = variant
        changed = with_attrs(kind, proto, attrs)
        if changed:
            table[kind + " with_attrs"] = changed
        second_order(case, table, skipped)
    except Exception as e:
        skipped[kind] = first_line(e)
    return table, skipped


def forked(kind, proto):
    """one() in a child, because a maker may crash natively"""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        with os.fdopen(w, "w") as f:
            json.dump(one(kind, proto), f)
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else ({}, {kind: "native crash"})


def main(path):
    holder = fluid.framework.OpProtoHolder.instance()
    table, skipped, none = {}, {}, []
    for kind, proto in sorted(holder.op_proto_map.items()):
        if not core.has_grad_op_maker(kind):
            none.append(kind)
            continue
        found, missed = forked(kind, proto)
        for k, v in found.items():
            table.setdefault(k, v)
        skipped.update(missed)
    skipped = {k: v for k, v in skipped.items() if k not in table}
    write(path, table, skipped, none)
    print(
        "%d entries, %d skipped, %d ops without a grad maker"
        % (len(table), len(skipped), len(none))
    )


def write(path, table, skipped, none):
    """one op a line, so that a diff shows which op changed"""
    merged = {}
    for k in sorted(table):
        op, _, variant = k.partition(" ")
        merged.setdefault(op, {})["full" if not variant else variant] = table[k]
    rows = {"_format": FORMAT, "_skipped": skipped, "_without_maker": none}
    for variant in ("without_optional", "with_attrs"):
        rows["_" + variant] = {k: v[variant] for k, v in merged.items() if variant in v}
    rows.update({k: v["full"] for k, v in merged.items()})
    dump = lambda v: json.dumps(v, separators=(",", ":"))
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join("%s:%s" % (dump(k), dump(v)) for k, v in rows.items()) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else TARGET)
