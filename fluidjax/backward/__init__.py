"""append_backward and gradients: explicit gradient ops, in Fluid's order and with Fluid's names.

The gradient of variable ``x`` is ``x@GRAD``. If several ops contribute, each writes
``x@GRAD@RENAME@block0@k`` and a ``sum`` op adds them up before the first reader. An unwanted
gradient is ``@EMPTY@``, and ops that would write only such gradients are left out.

The modules, in the order in which they work: path.py finds the ops that gradients flow through;
rules.py writes the gradient ops of one op as drafts, from its declaration (``grad``, ``reuse``, or
a function, ``write_grad``); summing.py names contributions and adds them up; pruning.py leaves out
unwanted ops; differentiate.py turns drafts into ops and variables, also those of blocks;
parameters.py and targets.py are ``append_backward`` and ``gradients``.

A gradient op is defined in one of three ways. ``@op(grad="X Y")`` derives it as ``jax.vjp`` of the
forward op at the named inputs. ``@grad_of`` gives a rule by hand if Paddle's gradient op does not
read the forward inputs (``relu_grad`` reads only Out). A row of ops/grad.py makes it an ordinary op
(the gradient of ``scale`` is ``scale``). Gradient ops that declare no gradient are differentiated
by ``jax.vjp`` (ops/further.py).

If gradients are differentiated, ``x@GRAD`` has two meanings: a value that an earlier call computed,
and the gradient of x in this call. So names that a call makes carry a mark while ops are drafts
(draft.py), and lose it when the ops are appended. 1.8.5 distinguishes the two by the roles of ops,
and confuses them in third derivatives.

A gradient that nothing computes is zero: an op gets None for it if it can (slots with
``gradient``), else ``fill_zeros_like`` makes it.

An op with a block requests the gradient ops of that block while it writes its own
(``names.inside()``). The gradient block is a new block whose ``forward`` is the block that it
differentiates. It reads the forward block's variables from Fluid's step scope: ops/step_scopes.py
keeps a dict of only those variables, so a program without gradients keeps nothing. The gradient
block runs as ops and is not derived by ``jax.vjp``, so ``stop_gradient`` and clips within it take
effect.

``while`` keeps the variables of each iteration in the same way, stacked, and ``while_grad`` reads
them in reverse order. The gradient block reads variables from around the loop with their values at
the start of the iteration, so gradients are those of the unrolled loop. 1.8.5 reads their values
after the last iteration.

ir/gradients.py finds the forward op of a gradient op by the names that they share. The verifier
refuses a program in which another op has replaced the forward op, and a pass may not change one
without the other (passes/pairs.py).
"""

from .draft import forward_name as forward_name
from .draft import grad_name as grad_name
from .parameters import append_backward as append_backward
from .targets import as_list as _as_list  # noqa: F401
from .targets import calc_gradient as calc_gradient
from .targets import gradients as gradients


def _append_grad_suffix_(name: str | bytes) -> str:
    """The name of a variable's gradient."""
    return grad_name(name.decode() if isinstance(name, bytes) else name)


def _strip_grad_suffix_(name: str | bytes) -> str:
    """The name of the variable whose gradient has this name; any other name is returned
    unchanged.
    """
    return forward_name(name.decode() if isinstance(name, bytes) else name)
