"""The op samples, one module a family; a family's name is that of the module in fluidjax/ops that
computes it.
"""

import importlib
import pkgutil

FAMILIES = sorted(m.name for m in pkgutil.iter_modules(__path__))


def samples_of(family):
    return importlib.import_module(__name__ + "." + family).SAMPLES


def all_samples(families=None):
    """(family, index in its module, sample) of every sample"""
    return [
        (family, i, s) for family in families or FAMILIES for i, s in enumerate(samples_of(family))
    ]
