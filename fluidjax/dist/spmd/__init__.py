"""Rewrites of a program for the devices of a mesh, and how the result runs there.

data_parallel.py scales the loss gradient and sums every completed gradient (summing.py).
shard_optimizer.py has optimizer ops run on shards. Collective ops use the ring that is bound while
a step is traced (ops/ring.py); without one they refuse to run, because the result would be silently
wrong. Small gradients share one message, and large ones have their own.

On a mesh, the step of one rank is traced under ``jax.shard_map``. A value that is equal on all
ranks is one replicated array; one that differs has a leading dimension of ranks (``PerRank``). The
scope shows the first rank's value, or the whole value of shards, so saving and loading do not
depend on devices.

A parameter-server job on a mesh (pserver.py) is the program before transpile, with rank k in the
role of pserver k. updates.py reads how each parameter is updated; shard_buckets.py places each
rank's blocks with equal updates side by side, so that all ranks run one op; block_partition.py
(sync) and block_partition_async.py write the program. Buckets need no branch over the ranks, and
one fused update of many small parameters is faster than many.

Tables (tables.py) are looked up by ``c_table_lookup`` and updated by the ranks that hold the
rows; the startup program makes them there. Geo-SGD (geo.py) adds an exchange: a counter, a
snapshot of every parameter, and all-reduces in a ``conditional_block``.

A test program on one device takes copies of a mesh's values; the state stays on the mesh. JAX on
the CPU deadlocks if more than 32 steps with collectives are in flight, so a mesh of CPU devices
waits after every 16.
"""
