"""Which devices there are, and how values lie on them.

place.py has Fluid's places (``CPUPlace``, ``CUDAPlace``) and finds JAX's devices for them.
placement.py says where a program runs, and brings arrays there: on one device, on a mesh of devices
at once, or for several ranks in turn on one device. shard_layout.py describes how a sharded
variable is laid out across devices. platforms.py holds what was measured of a kind of device.
forked.py refuses processes that have lost JAX's threads by a fork.

Nothing here knows programs, scopes or steps.
"""
