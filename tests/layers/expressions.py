"""Index and operator expressions on variables, for the recorder under Paddle 1.8.5 and for the test
(Python 3.8).
"""

import numpy as np

INDEX = """
x[0]                 x[-1]               x[3]                x[-4]               x[1, 2]             x[0, 0, 0]
x[-1, -1]            x[0, -1, 2]         x[0][1]             x[:, 1]             x[:, :, 2]          x[:, -1, :]
x[1:3]               x[1:]               x[:2]               x[:]                x[:, :]             x[-3:-1]
x[:, -2:]            x[:, :-1]           x[1:3, 2:4]         x[1:3, :, 2:4]      x[2:100]            x[-100:2]
x[1:3, 0]            x[0, 1:3]           x[1:2, 1:2, 1]      x[0, :, 1:]         x[:, 1:][0]         x[0:1]
x[::-1]              x[:, ::-1]          x[::-1, ::-1]       x[1:3, ::-1]        x[::-1, 1:3]        x[0, ::-1]
x[1:4:2]             x[:, 0:5:2]         x[1::2]             x[:4:3]             x[::2]              x[:, ::3]
x[3:0:-1]            x[:, 4:1:-2]        x[3::-1]            x[:1:-1]            x[-1:-3:-1]         x[1:3, 0:5:2]
x[0, 1:5:2]          x[1:4:2, 0]         x[0, 1, 0:5:2]      x[-1, 0:4:3]        x[1:2:2, -1]        x[1:3:2, ::-1]
x[i]                 x[i, 0]             x[0, i]             x[:, i]             x[i, j]             x[i, :, j]
x[-1, i]             x[i, -1]            x[i][j]             x[i, 1:3]           x[1:3, i]           x[k]
x[s:n]               x[:, s:n]           x[:, s:3]           x[:, 1:n]           x[s:]               x[:n]
x[:, :, s:]          x[:, :, :n]         x[s:n, 1:3]         x[s:n, s:n]         x[i, s:n]           x[s:n, 0]
x[s:n:2]             x[0:4:s]            x[0:4:i]            x[s:4:2, 1:3]       x[s:n, ::-1]        x[i, 0:5:2]
x[n - 1]             x[s:s + 1]          x[n - 2:n]          x[q]                x[q:3]              x[:, q:n]
x[sh[0] - 1]         x[0:sh[0]]          x[:, 1:sh[1]]       sh[0]               sh[-1]              sh[1:]
sh[0:2]              sh[i]               b[0]                b[-1]               b[1:]               b[:, 1]
b[:, 1:3]            b[:-1]              b[::-1]             b[i]                b[:, i]             b[s:n]
b[0:n, 0]            b[:, 0:4:2]         w[0]                w[:, 0:1]           (x * 2)[1]          x[i] + x[j]
x[np.int64(1)]       x[np.int32(0):np.int32(2)]              x[True]             x[False]            x[7]
x[-5]                x[0, 9]             x[4:2]              x[9:]               x[0:0]              x[1, 2, 3, 4]
x[1.5]               x["a"]              x[[0, 1]]           x[None]             x[...]              x[..., 0]
x[0, ...]            x[0, ..., 1]        x[1.5:]             x["a":"b"]          x[f]                x[f:2]
"""
OPERATOR = """
x == None            x != None           None == x           m == None           m != None           x < None
x == "a"             m == "a"            x == "1.5"          x == []             x == [1.0]          x == [1.0, 2.0]
x in []              x in [x]            x in [x2]           x in [x2, x]        x in [1.0]          x in [None]
x in ["a"]           x in (1, 2)         x not in [1.0]      m in [1, 2]         m in [None]         m in [m2]
x in {"a": x2}       x == np.float32(2)  m == np.int64(2)    m == 1.5            m == 2.0            x == True
x == np.ones(1)      x == np.ones(2)     x + None            x + "a"             x + [1.0]           x + np.ones(1)
x + np.ones(3)       x + np.float64(1.5)                     m + np.int32(1)     m + 1.5             m * 2.0
m / 2                m / 2.0             m ** 2              x ** 2              2 ** x              m // 2
m % 2                x > m               m > x               x if x else None    x or None           x and m
not x                None or x           bool(x == x2)       bool(m)             x if x == x2 else m
x < x2 < x2          x == x              -m                  1 - m               1 / x               3.0 / m
2.0 / u              2 ** u              2 / b               2 ** v              1 - v               v == 1
u == 1               u + 1               len(x)              len(u)              x2[i] == x[0]       x == x2[0]
m == m[1]            m > 1               x / 0.5             m - 1               x - np.float32(1)   2 > x
"""


def listed(table):
    """The expressions of a table: two spaces or more lie between them."""
    return [e.strip() for line in table.split("\n") for e in line.split("  ") if e.strip()]


def variables(fluid):
    """What the expressions name."""
    found = {
        "x": fluid.data("x", [4, 5, 6], "float32"), "x2": fluid.data("x2", [4, 5, 6], "float32"),
        "m": fluid.data("m", [4], "int64"), "m2": fluid.data("m2", [4], "int64"), "b": fluid.data("b", [None, 5], "float32"),
        "u": fluid.data("u", [None, 3, None], "float32"), "v": fluid.data("v", [None], "int64"),
        "f": fluid.data("f", [1], "float32"), "q": fluid.data("q", [1], "int64"), "np": np,
    }  # fmt: skip
    for name in INTEGERS:
        found[name] = fluid.data(name, [1], "int32")
    found["sh"] = fluid.layers.shape(found["x"])
    found["w"] = fluid.layers.create_parameter([3, 2], "float32", name="w")
    return found


INTEGERS = {"i": 2, "j": 1, "k": -1, "s": 1, "n": 3}


def feed():
    """The values of all that is fed."""
    x = np.arange(120, dtype="float32").reshape(4, 5, 6)
    found = {
        "x": x,
        "x2": np.where(x % 2 == 0, x, -x),
        "b": x[0, :3, :5],
        "m": np.array([0, 2, -3, 4]),
        "m2": np.arange(4),
    }
    found.update({n: np.array([v], "int32") for n, v in INTEGERS.items()})
    found.update(u=x[:2, :3, :4] + 1, v=np.array([1, 2, 3]))
    found.update(f=np.array([1.0], "float32"), q=np.array([1]), m2=np.arange(4))
    return found
