"""The processes of a job: their roles, and how they meet, are watched, and end together.

env.py reads Paddle's variables into a frozen ``JobEnv``; described.py reads one from a transpiled
program. Every process keeps one TCP connection (link.py) to the job's hub (hub.py): one thread in
the launcher, or else in trainer 0. Both ends first prove that they know the job's secret
(secret.py). The hub compares the descriptions of all processes (handshake.py, no sockets), and only
then lets them call ``jax.distributed``, whose failures cannot be caught by ``except``.

Afterwards the connections detect failures: the kernel closes one when its process ends, and the hub
notifies the others. Their link threads print the reason and end the process, because its main
thread may be inside a collective. Programs are compared by hash over the same connections, and as
texts if hashes differ (compare_programs.py).

In jobs with pservers, trainers take turns (``Job.turn``): before each step, and at its end, a
trainer reports to the others and receives their requests. The launcher (launch.py, children.py)
owns the hub and the processes, so it knows how each one ended.
"""
