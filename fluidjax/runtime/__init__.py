"""Running a step: compiled steps, the state between them, what is fed and fetched, where all of it
lies.

``Executor.run`` makes a ``Runnable`` of what it is given: the program, the ranks that it runs on,
and the number of steps. It checks the feed (feeding.py), binds the state, calls the jitted step
and hands the results out (fetching.py). For each program it keeps one record: the number of steps
taken, and the compiled steps by ranks, version and fetch list. A run that only has to call is
kept as ``Prepared`` (prepared.py).

State. A variable's value is behind one door, its ``Storage`` (storage.py): the variable holds it
itself, or the buffers of a program's state do. A look-up reads the value where it is; a write of
the same shape goes there; any other write gives every variable its own array back. A jitted call
costs more than a microsecond for each array that it returns, so small arrays may be packed into
one flat array per dtype (state_buffers.py) if the calls would be noticed beside the step.
shard_layout.py describes how a sharded variable is laid out across devices.

Safety. State is donated, and neither Ctrl-C nor an error may lose it. A first call is compiled
before it runs, and SIGINT waits while it runs. Later calls run in C: ``list.extend(map(step,
...))`` has stored the new state before Python looks for signals. Threads that write the same
variables take turns (turns.py). If nobody waits for results, fed NumPy arrays are copied, because
JAX on the CPU may read them later than the call returns.

Compiling. A step has one executable for each shape of its feed; bucketing.py and padding.py keep
the number of shapes small for ragged batches. compile_cache.py keeps executables in the user's
folder. What XLA is told is the policy's (xla_cpu/policy.py).

A compiled step that took too much to trace as it is runs in another way (adapting.py): with exact
sizes, with feeds as constants, in segments (cut.py). placement.py knows the placements: one
device, a mesh of devices at once, or several ranks in turn on one device.
"""
