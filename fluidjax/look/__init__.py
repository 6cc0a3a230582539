"""Shows programs: HTML that needs no network, for notebooks and as pages of their own; pictures as
SVG.

Everything here makes text from frozen values. Further facts about an op (its formula, how it is
run) come from its declaration.
"""
