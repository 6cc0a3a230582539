"""Devices, and the placement of values on them.

place.py has Fluid's places (``CPUPlace``, ``CUDAPlace``) and finds JAX's devices for them.
placement.py describes where a program runs, and moves arrays there: one device, a mesh of devices,
or several ranks in turn on one device. shard_layout.py describes how a sharded variable is laid out
across devices. platforms.py has the figures measured for each kind of device. forked.py refuses
processes that lost JAX's threads in a fork.

Nothing here depends on programs, scopes or steps.
"""
