"""Running a step: planned, compiled, called.

``Executor.run`` goes one way: bind -> plan -> call -> show.

Bind. The argument becomes a ``Runnable`` (runnable.py): the program, the ranks that it runs on, and
the number of steps. For each program an executor keeps one record: the number of steps taken, and
the compiled steps by ranks, version and fetches.

Plan. A ``StepPlan`` (plan.py) is all that is decided before anything is compiled: it checks the
feed (feeds/). A step that cannot be traced as planned gets another plan (adapting.py): exact sizes,
feeds as constants, or parts (partition/). ``Compiled`` (compiled.py) is the plan's jitted body,
with an executable for each form of a feed (building.py, executables.py).

Call. calling.py has the ways to run: a call of an executable, a startup program op by op, a program
in parts. A first call is compiled before it runs, and SIGINT waits while it runs. Later calls run
in C: ``list.extend(map(step, ...))`` has stored the new state before Python looks for signals. If
nobody waits for results, fed NumPy arrays are copied, because JAX on the CPU may read them later
than the call returns. A run that only has to call is remembered (prepared.py): the executor then
skips bind and plan, and calls the same executable.

Show. Fetches become NumPy arrays or tensors (feeds/fetching.py).

xla_cpu/policy.py chooses XLA's options. job.py holds what a process knows of its job.
"""
