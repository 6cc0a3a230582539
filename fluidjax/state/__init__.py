"""The variables between two steps: where each value is, and whose turn it is to change it.

A scope (scope.py) has variables by name. A variable's value is behind one door, its ``Storage``
(storage.py): the variable holds it itself, or the buffers of a program's state do (buffers.py). A
look-up reads the value where it is; a write of the same shape goes there; any other write gives
every variable its own array back.

A jitted call costs more than a microsecond for each array that it returns, so small arrays may be
packed into one flat array per dtype (buffers.py) if the calls would be noticed beside the step.

State is donated to steps, and neither Ctrl-C nor an error may lose it: the newest state is always
in ``StateBuffers.cell``. Threads that write the same variables take turns (turns.py). shapes.py
says what shapes a variable's value may have when a step begins.
"""
