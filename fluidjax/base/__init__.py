"""What everything may use and which knows nothing of programs: dtypes, flags, op roles, lines of
the user, interrupts.
"""
