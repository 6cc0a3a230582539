"""What is tuned for XLA's CPU backend.

The rest of the package imports `policy` alone, and runs the same without it
(FLAGS_xla_cpu_tuning=0).
"""
