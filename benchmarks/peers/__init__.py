"""Nets on fluidjax and beside it: each side is a process in its own environment, driven by
benchmarks/beside.py.

The modules here run on Python 3.8 too, for Paddle 1.8.5, and are imported by path: they are not part
of the package benchmarks where a peer runs them.
"""
