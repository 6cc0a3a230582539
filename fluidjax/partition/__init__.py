"""Programs that cannot be traced as one step, run in parts: compiled segments, and ops that the
host runs between them.

cuts.py divides a program at the ops that cannot be traced where they stand, segments.py compiles
one part, and run.py runs the parts in order and drives the loops. The scope changes at the end
alone. explain.py says for every op whose sizes depend on data which way it takes
(``program.explain()``).
"""
