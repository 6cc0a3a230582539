"""Runs programs that cannot be traced as one step, as compiled segments with ops between them that
the host runs.

cuts.py divides a program at the ops that cannot be traced in their place, segments.py compiles one
segment, and run.py runs the segments in order and drives the loops. The scope changes only at the
end. explain.py reports how each op with sizes that depend on data is run (``program.explain()``).
"""
