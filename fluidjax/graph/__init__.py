"""Fluid's mutable handles over the frozen descs of ir/: programs, blocks, ops, variables."""
