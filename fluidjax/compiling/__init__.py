"""What was compiled, why, and where it is kept for the next process.

compilations.py has the report of one executable, reasons.py how it differs from what was compiled
before, and recompiles.py the warning about a program that is compiled for too many feeds. cache.py
keeps executables in the user's folder. kind.py names what one call of a step runs.
"""
