"""Programs that are not one traced step, run in parts: compiled segments, and ops that the host
runs between them.

cuts.py divides a program at the ops that cannot be traced where they stand, segments.py compiles
one part, and run.py goes through them and drives loops. The scope changes at the end alone.
explain.py says of every op whose sizes depend on data which way it goes (``program.explain()``).
"""
