"""Modules that every room may import and that do not depend on programs: dtypes, flags, op roles,
the user's line, interrupts.
"""
