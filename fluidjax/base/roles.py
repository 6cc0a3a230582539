"""Fluid's op roles: what part of a training program an op belongs to (attribute ``op_role``)."""

from __future__ import annotations

import enum


class OpRole(enum.IntFlag):
    """Bits of the ``op_role`` attribute."""

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256
    NotSpecified = 4096


OP_ROLE = "op_role"
OP_ROLE_VAR = "op_role_var"
OP_NAMESCOPE = "op_namescope"
