"""InferenceTranspiler: Fluid's name for the passes that make a program's predictions faster."""

from __future__ import annotations

from ..base.loc import warn
from ..devices.place import CPUPlace, CUDAPlace, Place
from ..errors import FluidTypeError
from ..graph.program import Program
from ..passes import Certificate, PassResult
from ..state.scope import Scope
from .apply import apply_in_place


class InferenceTranspiler:
    """Convert a program into an optimised inference program, in place.

        inference_program = program.clone(for_test=True)
        t = fluid.InferenceTranspiler()
        t.transpile(inference_program, fluid.CPUPlace())
        print(t.certificate)

    Folded weights get new names in the scope, so programs that use the old ones compute the same as
    before. `result` holds the last PassResult, `certificate` its folds with their measured errors
    and its refusals with their reasons.
    """

    def __init__(self) -> None:
        self.result: PassResult | None = None

    @property
    def certificate(self) -> Certificate | None:
        """What the last transpile folded and refused; None before one."""
        return self.result.certificates[0] if self.result is not None else None

    def transpile(self, program: Program, place: Place, scope: Scope | None = None) -> None:
        """Fold test-mode batch_norms into the ops before them.

        place: CPUPlace or CUDAPlace, as in Fluid; the result does not depend on it. scope: holds
        the parameters, default global_scope(). If a batch_norm cannot be folded, one warning gives
        the first reason.

        Raises FluidTypeError for arguments of other types.
        """
        if not isinstance(program, Program):
            raise FluidTypeError("program should be as Program type")
        if not isinstance(place, CPUPlace | CUDAPlace):
            raise FluidTypeError("place should be as CPUPlace/CUDAPlace type")
        if scope is not None and not isinstance(scope, Scope):
            raise FluidTypeError("scope should be as Scope type or None")
        self.fuse_batch_norm(program, place, scope)

    def fuse_batch_norm(self, program: Program, place: Place, scope: Scope | None = None) -> None:
        """The only stage of transpile: see passes.fuse_batch_norm."""
        self.result = apply_in_place(program, "fuse_batch_norm", scope=scope)
        refusals = self.result.refusals
        if refusals:
            more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
            warn(f"fuse_batch_norm left a batch_norm: {refusals[0]}{more}", RuntimeWarning)
