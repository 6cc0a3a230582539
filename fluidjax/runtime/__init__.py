"""Plans a step, compiles it and calls it.

``Executor.run`` has four stages: bind -> plan -> call -> show.

Bind. The argument becomes a ``Runnable`` (runnable.py): the program, the ranks that it runs on, and
the number of steps. For each program an executor keeps one record: the number of steps taken, and
the compiled steps by ranks, version and fetches.

Plan. A ``StepPlan`` (plan.py) holds every decision that is made before compilation. It also checks
the feed (feeds/). A step that cannot be traced as planned gets another plan (adapting.py): exact
sizes, feeds as constants, or parts (partition/). ``Compiled`` (compiled.py) is the plan's jitted
body, with an executable for each form of a feed (building.py, executables.py).

Call. calling.py runs a step in one of three ways: it calls an executable, runs a startup program op
by op, or runs a program in segments. A first call is compiled before it runs, and SIGINT is held
back while it runs. Later calls run in C: ``list.extend(map(step, ...))`` stores the new state
before Python looks for signals. If the caller does not wait for results, fed NumPy arrays are
copied, because JAX on the CPU may read them after the call returns. prepared.py remembers a run
that only has to call: the executor then skips bind and plan, and calls the same executable.

Show. Fetches become NumPy arrays or tensors (feeds/fetching.py).

xla_cpu/policy.py chooses XLA's options. job.py holds what a process knows about its job.
"""
