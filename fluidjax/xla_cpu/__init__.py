"""Tuning for XLA's CPU backend.

The rest of the package imports only `policy`, and computes the same with the tuning switched off
(FLAGS_xla_cpu_tuning=0).
"""
