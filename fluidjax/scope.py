"""Scopes under the name that scripts import; state/scope.py has them."""

from .state.scope import Scope, ScopeVar, global_scope, scope_guard

__all__ = [
    "Scope",
    "ScopeVar",
    "global_scope",
    "scope_guard",
]
