"""Records what was compiled and why, and caches it for the next process.

compilations.py has the report of one executable, reasons.py finds how an executable differs from
earlier ones, and recompiles.py warns about a program that is compiled for too many feeds. cache.py
keeps executables in the user's folder. kind.py names what one call of a step runs.
"""
