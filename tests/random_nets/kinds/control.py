"""Control flow: branches, loops, step blocks, arrays."""

from __future__ import annotations

from ..draw import kind


def flag(d):
    """A bool of shape [1]: fed, or compared."""
    found = d.find("bool", where=lambda v: v.size == (1,), fresh=0.3)
    if found is not None:
        return str(found)
    if d.chance(0.5):
        return str(d.new([1], "bool", ["ints", 0, 2], open=False))
    return "L.less_than(%s, L.fill_constant([1], 'int64', %d))" % (
        d.new([1], "int64", ["ints", 0, 5], open=False),
        d.number(0, 5),
    )


def body(d, x):
    """An expression of x with the same shape."""
    y = d.find(x.dtype, where=lambda v: v.size == x.size, fresh=0.3)
    return d.one(
        "L.tanh(%s)" % x, "L.scale(%s, %s)" % (x, d.real(-2, 2)), "%s * %s" % (x, d.real(0.5, 2)), "L.relu(%s)" % x,
        "L.elementwise_mul(%s, %s)" % (x, y or x), "L.elementwise_add(%s, %s)" % (x, y or x),
    )  # fmt: skip


@kind(1.5)
def cond(d):
    x = d.floats(domain=(-5, 5))
    c = flag(d)
    if d.chance(0.25):
        return "L.cond(%s, lambda: [%s, %s], lambda: [%s, %s])" % (
            c,
            body(d, x),
            body(d, x),
            body(d, x),
            body(d, x),
        )
    if d.chance(0.2) and x.rank >= 2 and all(s > 0 for s in x.shape[1:]) and x.rank == 2:
        return "L.cond(%s, lambda: L.fc(%s, 2), lambda: L.fc(%s, 2, act='tanh'))" % (c, x, x)
    return "L.cond(%s, lambda: %s, lambda: %s)" % (c, body(d, x), body(d, x))


@kind(0.8)
def case(d):
    x = d.floats(domain=(-5, 5))
    pairs = ", ".join("(%s, lambda: %s)" % (flag(d), body(d, x)) for _ in range(d.number(1, 3)))
    return "L.case([%s]%s)" % (pairs, ", default=lambda: %s" % body(d, x) if d.chance(0.7) else "")


@kind(0.8)
def switch_case(d):
    x = d.floats(domain=(-5, 5))
    i = d.new([1], d.one("int32", "int64"), ["ints", 0, 4], open=False)
    fns = ["lambda: %s" % body(d, x) for _ in range(d.number(1, 3))]
    how = d.one(
        "[%s]" % ", ".join(fns),
        "{%s}" % ", ".join("%d: %s" % (2 * k, f) for k, f in enumerate(fns)),
    )
    return "L.switch_case(%s, %s%s)" % (
        i,
        how,
        ", default=lambda: %s" % body(d, x) if d.chance(0.7) else "",
    )


@kind(1)
def while_loop(d):
    x = d.floats(domain=(-5, 5), where=lambda v: all(s > 0 for s in v.shape))
    n = d.number(0, 3)
    step = (
        "x + %s" % body(d, x)
        if d.chance(0.4)
        else d.one("L.tanh(x)", "x * 0.5", "L.scale(x, 1.5, bias=0.1)")
    )
    return (
        "RESULT_i = L.fill_constant([1], 'int64', 0)\nRESULT_n = %s\nRESULT = L.while_loop(lambda"
        " i, x: L.less_than(i, RESULT_n), lambda i, x: [i + 1, %s], [RESULT_i, L.assign(%s)])"
        % (
            d.one(
                "L.fill_constant([1], 'int64', %d)" % n,
                str(d.new([1], "int64", ["ints", 0, 4], open=False)),
            ),
            step,
            x,
        )
    )


@kind(0.6)
def while_block(d):
    x = d.floats(domain=(-5, 5), where=lambda v: all(s > 0 for s in v.shape))
    return (
        "RESULT_i = L.fill_constant([1], 'int64', 0)\nRESULT_n = L.fill_constant([1], 'int64',"
        " %d)\nRESULT_a = L.array_write(%s, RESULT_i)\nRESULT_c = L.less_than(RESULT_i,"
        " RESULT_n)\nRESULT_w = L.While(RESULT_c)\nwith RESULT_w.block():\n    h ="
        " L.array_read(RESULT_a, RESULT_i)\n    h = %s\n    L.increment(RESULT_i)\n   "
        " L.array_write(h, RESULT_i, array=RESULT_a)\n    L.less_than(RESULT_i, RESULT_n,"
        " cond=RESULT_c)\nRESULT = [L.array_read(RESULT_a, RESULT_n), L.array_length(RESULT_a)]"
        % (
            d.number(1, 3),
            x,
            d.one("L.tanh(h)", "L.scale(h, 0.7, bias=0.2)", "L.elementwise_mul(h, %s)" % x),
        )
    )


@kind(0.6)
def arrays(d):
    x = d.floats(domain=(-5, 5))
    n = d.number(1, 3)
    lines = ["RESULT_a = L.create_array('%s')" % x.dtype]
    for i in range(n):
        lines.append(
            "L.array_write(%s, L.fill_constant([1], 'int64', %d), array=RESULT_a)" % (body(d, x), i)
        )
    lines.append(
        "RESULT = L.tensor_array_to_tensor(RESULT_a, axis=%d%s)"
        % (d.number(0, x.rank - 1), d.one("", ", use_stack=True"))
    )
    return "\n".join(lines)


@kind(0.8)
def static_rnn(d):
    t, n, w = d.number(1, 3), d.batch, d.number(1, 3)
    x = d.floats(shape=[t, n, w], open=False)
    boot = d.one(
        "init=%s" % d.floats(shape=[n, w], open=False),
        "shape=[-1, %d], batch_ref=%s, init_value=%s" % (w, x, d.real(-1, 1)),
    )
    new = d.one(
        "L.fc([w, m], %d, act='tanh')" % w,
        "L.elementwise_add(w, m)",
        "L.tanh(L.elementwise_mul(w, m))",
    )
    out = d.one(
        "rnn.step_output(new)",
        "rnn.output(new, L.scale(m, 2.0))",
        "rnn.step_output(L.scale(new, 0.5))",
    )
    return (
        "rnn = L.StaticRNN()\nwith rnn.step():\n    w = rnn.step_input(%s)\n    m ="
        " rnn.memory(%s)\n    new = %s\n    rnn.update_memory(m, new)\n    %s\nRESULT = rnn()"
        % (x, boot, new, out)
    )


@kind(0.8)
def switch(d):
    value = [d.real(-1, 1) for _ in range(3)]
    x = d.new([1], "float32", ["uniform", -1, 1], sg=True, open=False)
    # without one, what is not persistable may have no value, which is an error here
    default = d.chance(0.8)
    lines = [
        "RESULT = L.create_global_var([1], 0.0, 'float32', persistable=%s)"
        % (not default or d.one(True, False)),
        "with L.Switch() as switch:",
        "    with switch.case(L.less_than(%s, L.fill_constant([1], 'float32', -0.3))):" % x,
        "        L.assign(L.fill_constant([1], 'float32', %s), RESULT)" % value[0],
        "    with switch.case(L.less_than(%s, L.fill_constant([1], 'float32', 0.4))):" % x,
        "        L.assign(L.scale(%s, %s), RESULT)" % (x, value[1]),
    ]
    if default:
        lines += [
            "    with switch.default():",
            "        L.assign(L.fill_constant([1], 'float32', %s), RESULT)" % value[2],
        ]
    return "\n".join(lines)


@kind(0.6)
def if_else(d):
    n = d.number(1, 4)
    x = d.floats(rank=2, where=lambda v: v.shape[1] > 0, shape=[n, d.number(1, 3)])
    n = x.size[0]
    c = d.new([n, 1], "bool", ["ints", 0, 2], sg=True)
    return (
        "RESULT_i = L.IfElse(%s)\nwith RESULT_i.true_block():\n    y = RESULT_i.input(%s)\n   "
        " RESULT_i.output(L.scale(y, 2.0))\nwith RESULT_i.false_block():\n    y ="
        " RESULT_i.input(%s)\n    RESULT_i.output(L.tanh(y))\nRESULT = RESULT_i()" % (c, x, x)
    )
