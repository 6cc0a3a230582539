"""Every op at extreme inputs, at ties and at kinks: the cases, one module a family
(tests/ops/README.md).
"""

import importlib
import os

FAMILIES = sorted(
    name[:-3]
    for name in os.listdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "families"))
    if name.endswith(".py") and name != "__init__.py"
)


def cases_of(family):
    return importlib.import_module(__name__ + ".families." + family).CASES
