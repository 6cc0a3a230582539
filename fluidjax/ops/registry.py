"""The names that declare a family of ops and look up op types, from

- attributes.py: annotations and Paddle's attribute types; definition.py: declarations as values;
- catalog.py: all op types by name; declare.py: ``@op``; derivative.py: ``@grad_of`` and gradients
  by jax.vjp;
- further.py: gradients of gradient ops that declare none, made at the first look-up;
- traits.py: properties of ops besides their computation; control_interface.py: ops that are not
  functions of arrays.
"""

from __future__ import annotations

from ..base.dtypes import VarType
from ..ir.desc import BlockRef
from .attributes import (
    HINTS,
    REQUIRED,
    Array,
    Attr,
    Bools,
    Float64,
    Float64s,
    Floats,
    Int64,
    Ints,
    Longs,
    Scalar,
    Scalars,
    Size,
    Sizes,
    Strs,
)
from .catalog import REGISTRY, attr_type, control, having, lookup, register, traits
from .declare import control_op, op, parse_slots, signature
from .definition import GRAD, GradDef, OpDef, Reuse, Slot, canonical
from .derivative import add_grad, grad_of, grad_reuses, pullback
from .further import further, further_grad, inputs_of
from .ragged import Ragged
from .selected import SelectedRows

__all__ = [
    "GRAD", "HINTS", "REGISTRY", "REQUIRED", "Array", "Attr", "BlockRef", "Bools", "Float64", "Float64s", "Floats", "GradDef",
    "Int64", "Ints", "Longs", "OpDef", "Ragged", "Reuse", "Scalar", "Scalars", "SelectedRows", "Size", "Sizes",
    "Slot", "Strs", "VarType", "add_grad",
    "attr_type", "canonical", "control", "control_op", "further_grad", "grad_of", "grad_reuses", "having", "inputs_of", "lookup", "op",
    "parse_slots", "pullback", "register", "signature", "traits",
]  # fmt: skip

REGISTRY.made_by(further)
