"""Scopes under the name that scripts import; runtime/scope.py has them."""

from .runtime.scope import Scope, ScopeVar, global_scope, scope_guard

__all__ = [
    "Scope",
    "ScopeVar",
    "global_scope",
    "scope_guard",
]
