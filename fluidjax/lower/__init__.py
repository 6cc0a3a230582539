"""A program's desc as a pure function: ``Step(desc, fetches)`` is ``(state, feed, key) -> (state,
fetches)``.

step.py keeps the ops that a fetch, a persistable variable or a side effect needs, and runs them
in order over an environment of names (env.py). Nothing goes in or out but state, feed, key and
fetches, so ``jax.jit`` with donation, ``lax.scan``, ``vmap`` and ``grad`` apply. functional.py
hands the step out as ``fluid.init_fn`` and ``fluid.step_fn``.

The module for XLA does not depend on names. The updates of an optimizer, which Paddle orders by the
parameters' names, run in the order in which the net uses the parameters (order.py). Two orders
still depend on names: that of feeds, and that of the sum in a clip by the global norm, as in
Paddle.

Gradients. pairing.py compares versioned names: a name and how often it has been written. If a
gradient op sees exactly the values that its forward op saw, the forward op runs through
``jax.vjp`` once and the gradient op calls that pullback. ``step_fn(..., literal=True)`` turns
this off; tests compare both forms, because only the literal one catches a rewrite that overwrote
a variable too early.

``xla_cpu.policy.choose`` adapts two choices to the compiler: how ops are lowered (``Target``), and
in what order and groups a step runs them (``Schedule``).

Ragged and sparse values. rows.py and origins.py handle padded rows, by the traits of each op;
selected.py handles sparse gradients.

Unknown values. sizes.py finds the values that decide shapes. An op that cannot be traced raises
``NotOneStep``; runtime/adapting.py then runs the step in another way, as a last resort in parts
(partition/). The same functions run control ops in all ways. uncompiled.py runs startup programs op
by op.

Errors that an op detects only when the step runs (checks.py) are recorded in one word, int64 [2], a
variable of the environment: control ops carry it through blocks like any other. The step itself
selects between new and old state, so nothing is copied and donation stays possible.

Ranks. divergence.py follows which persistable variables come to differ between ranks; lockstep.py
runs all ranks in one trace, op by op, for batches of unequal parts and for more places than
devices.

Files may contain anything. Circular blocks, or blocks nested more than 100 deep, are refused
(ir/walk.py), and ops/unfilled.py refuses ops with missing slots or attributes before anything reads
them. cases.py replaces a chain of cases that only assign constants by one look-up, so the number of
ops does not depend on the number of cases.

The facts known before a loop runs decide how it is lowered (ops/loop_course.py): the ops that its
condition and array indices depend on are evaluated on NumPy integers. With an exact number of
iterations, or a bound if gradients are needed, it becomes a ``lax.scan``; otherwise a
``lax.while_loop``.
"""
