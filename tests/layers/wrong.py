"""Calls of the layers with one argument of another kind, made from those of cases.py.

Importable on Python 3.8 with nothing but NumPy.
"""

import ast

try:
    from . import cases
except ImportError:
    import cases

KINDS = {
    "array": "np.ones((2, 2), 'float32')",
    "int": "3",
    "float": "1.5",
    "str": "'x'",
    "None": "None",
    "list": "[1, 2]",
    "floats": "[1.5, 2.5]",
    "arrays": "[np.ones(2, 'float32')]",
    "var": "f(2, 3)",
    "ivar": "i(2, 3)",
    "bool": "True",
}
ROOTS = ("L", "N", "I", "fluid")


def name_of(node):
    """("L", "conv2d") for the function of a call L.conv2d(...), None for others"""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in ROOTS and parts:
        return ".".join([node.id, *parts[::-1]])
    return None


def arguments():
    """("L.conv2d|2", put): every argument that a case gives, once; put(kind) is the case's code
    with another in its place
    """
    seen = set()
    for expression in cases.CASES.values():
        tree = ast.parse(expression, mode="eval")
        for call in ast.walk(tree):
            name = isinstance(call, ast.Call) and name_of(call.func)
            if not name:
                continue
            for at in range(len(call.args) + len(call.keywords)):
                positional = at < len(call.args)
                key = f"{name}|{at if positional else call.keywords[at - len(call.args)].arg}"
                if key not in seen:
                    seen.add(key)
                    yield key, _putter(tree, call, at)


def _putter(tree, call, at):
    def put(kind):
        new = ast.parse(KINDS[kind], mode="eval").body
        where, slot = (
            (call.args, at)
            if at < len(call.args)
            else (call.keywords[at - len(call.args)], "value")
        )
        old = where[slot] if isinstance(where, list) else where.value
        try:
            if isinstance(where, list):
                where[slot] = new
            else:
                where.value = new
            return compile(ast.fix_missing_locations(tree), "case", "eval")
        finally:
            if isinstance(where, list):
                where[slot] = old
            else:
                where.value = old

    return put
