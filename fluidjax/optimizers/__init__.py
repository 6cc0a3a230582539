"""Optimizers, one family a module; :mod:`fluidjax.optimizer` gathers them under Fluid's names."""
