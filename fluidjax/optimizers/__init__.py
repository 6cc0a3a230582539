"""Optimizers, one family in each module; :mod:`fluidjax.optimizer` gathers them under Fluid's
names.
"""
