"""What ``fluid.profiler`` is made of.

While a profile is on, executors run steps op by op (timed.py) and record how long each took
(events.py). report.py writes the table and the trace, costs.py finds the most expensive lines of a
script (``Program.profile``). watching.py shows a training as it goes (``fluid.watch``). ranges.py
names ranges of a script in a trace of jax.profiler.
"""
