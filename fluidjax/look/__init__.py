"""Programs to look at: HTML that needs no network, for notebooks and as pages of their own;
pictures as SVG.

Everything here makes text out of frozen values. What is shown of an op beside its own text (its
formula, who runs it) is what its declaration says.
"""
