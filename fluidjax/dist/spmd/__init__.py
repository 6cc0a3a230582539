"""Rewrites of a program for the devices of a mesh, and how the result runs there.

data_parallel.py scales the loss gradient and sums every completed gradient (summing.py).
shard_optimizer.py has optimizer ops run on shards. Collective ops talk over the ring that is
bound while a step is traced (ops/ring.py); without one they refuse to run, because a sum over
nobody would be silently wrong. Small gradients are joined into one message and large ones left
alone.

On a mesh, the step of one rank is traced under ``jax.shard_map``. What is the same on all ranks
is one replicated array; what differs travels with a leading dimension of ranks (``PerRank``). The
scope shows the first rank's value, or the whole that shards make up, so saving and loading know
nothing of devices.

A parameter-server job on a mesh (pserver.py) is the program before transpile, in which rank k
does what pserver k does. updates.py reads how each parameter is updated; shard_buckets.py lays
the blocks of equal updates that each rank owns side by side, so that all ranks run one op;
block_partition.py (sync) and block_partition_async.py write the program. Buckets need no branch
over the ranks, and one fused update of many small parameters is faster than many.

Tables (tables.py) are looked up by ``c_table_lookup`` and updated by the ranks that hold the
rows; the startup program makes them there. Geo-SGD (geo.py) adds an exchange: a counter, a
snapshot of every parameter, and all-reduces in a ``conditional_block``.

A test program that runs on one device takes copies of what a mesh holds; the state stays on the
mesh. JAX on the CPU deadlocks when more than 32 steps with collectives are under way, so a mesh
of CPU devices waits after every 16.
"""
