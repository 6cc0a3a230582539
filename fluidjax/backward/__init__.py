"""append_backward and gradients: explicit gradient ops, in the order and under the names that Fluid
gives them.

The gradient of variable ``x`` is ``x@GRAD``. If several ops contribute, each writes
``x@GRAD@RENAME@block0@k`` and a ``sum`` op adds them up before the first reader. A gradient that
nobody wants is ``@EMPTY@``, and ops that would only write such gradients are left out.

The modules, in the order of their work: path.py finds the ops that gradients flow through;
rules.py writes the gradient ops of one op as drafts, from its declaration (``grad``, ``reuse``,
or a function, ``write_grad``); summing.py names contributions and adds them up; pruning.py leaves
out what nobody wants; differentiate.py turns drafts into ops and variables, also those of blocks;
parameters.py and targets.py are ``append_backward`` and ``gradients``.

A gradient op comes about in one of three ways. ``@op(grad="X Y")`` derives it: it means
``jax.vjp`` of the forward op at the inputs that it names. ``@grad_of`` gives a rule by hand if
Paddle's gradient op does not see the forward inputs (``relu_grad`` sees only Out). A row of
ops/grad.py says that it is an ordinary op (the gradient of ``scale`` is ``scale``). Gradient ops
that declare no gradient are differentiated by ``jax.vjp`` (ops/further.py).

Once gradients are differentiated, ``x@GRAD`` means two things: a value that an earlier call
computed, and what flows to x in this one. So names that a call makes carry a mark while ops are
drafts (draft.py), and lose it when they are appended. 1.8.5 tells the two apart by the roles of
ops, and mixes them up in third derivatives.

A gradient that nothing computes is zero: an op gets None for it if it can (slots with
``gradient``), else ``fill_zeros_like`` makes it.

An op with a block asks for the gradient ops of that block while it writes its own
(``names.inside()``). The gradient block is a new block whose ``forward`` is the one that it
differentiates. What it reads of the forward block travels in Fluid's step scope:
ops/step_scopes.py keeps a dict of just those variables, so a program without gradients keeps
nothing. The block runs as it stands and is not derived by ``jax.vjp``, so ``stop_gradient`` and
clips within it hold.

``while`` keeps what each iteration left in the same way, stacked, and ``while_grad`` goes through
it backwards. What the gradient block reads of the variables around the loop is what they were
when the iteration began, so gradients are those of the unrolled loop; 1.8.5 reads what the last
iteration left there.

ir/gradients.py finds the forward op of a gradient op by the names that they share. The verifier
refuses a program in which another op has taken the forward op's place, and a pass may not change
one without the other (passes/pairs.py).
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
    """The name of the variable whose gradient has this name; what is no gradient's name stays."""
    return forward_name(name.decode() if isinstance(name, bytes) else name)
