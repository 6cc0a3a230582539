"""A program's desc as a pure function: ``Step(desc, fetches)`` is ``(state, feed, key) -> (state,
fetches)``.

step.py keeps the ops that a fetch, a persistable variable or a side effect needs, and runs them
in order over an environment of names (env.py). Nothing goes in or out but state, feed, key and
fetches, so ``jax.jit`` with donation, ``lax.scan``, ``vmap`` and ``grad`` apply. functional.py
hands the step out as ``fluid.init_fn`` and ``fluid.step_fn``.

Names decide nothing about the module that XLA gets. The updates of an optimizer, which Paddle
orders by the parameters' names, run in the order in which the net uses the parameters (order.py).
Two things still go by name: feeds, and the order in which a clip by the global norm adds up,
which is Paddle's.

Gradients. pairing.py compares versioned names: a name and how often it has been written. If a
gradient op sees exactly the values that its forward op saw, the forward op runs through
``jax.vjp`` once and the gradient op calls that pullback. ``step_fn(..., literal=True)`` turns
this off; tests compare both forms, because only the literal one catches a rewrite that overwrote
a variable too early.

How ops are lowered (``Target``), and in what order and groups a step runs them (``Schedule``),
suits the compiler: ``xla_cpu.policy.choose`` says both.

Ragged and sparse values. rows.py and lengths.py say what becomes of padded rows, by the traits of
each op; selected.py does so for sparse gradients.

What a step cannot know. sizes.py finds the values that decide shapes. What cannot be traced
raises ``NotOneStep`` with the op; runtime/adapting.py then runs the step in another way, last of
all in parts (partition/). Control ops are run by the same functions in both ways. uncompiled.py
runs startup programs op by op.

What an op objects to only when the step runs (checks.py) goes into one word, int64 [2], that is a
variable of the environment: control ops carry it through blocks as they do others. The step
itself chooses between new and old state, so nothing is copied and donation stays.

Ranks. divergence.py follows which persistable variables come to differ between ranks; lockstep.py
runs all ranks in one trace, op by op, for batches of unequal parts and for more places than
devices.

Files may hold anything. Blocks that go in a circle or lie more than 100 deep are no program
(ir/walk.py), and ops/unfilled.py refuses ops that lack what they need before anything looks at them.
cases.py makes one look-up of a chain of cases that only assign constants, so the number of ops
does not depend on the number of cases.

How a loop runs follows from what is known before it runs (ops/loop_course.py): the ops that its
condition and the indices of arrays follow from are carried out on NumPy integers. An exact number
of iterations, or a bound where gradients are asked for, makes a ``lax.scan``; else it is a
``lax.while_loop``.
"""
