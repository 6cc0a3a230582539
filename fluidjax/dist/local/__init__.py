"""A job in one process: its transpiled programs, run message by message; the oracle of the rewrites
for a mesh.

job.py needs only the transpiled programs: it reads the owners of parameters from the programs
themselves. A trainer's block 0 is divided at its messages (segments.py); a segment is a ``Step``
whose reads are its state and whose results are its fetches. A trainer is a generator that yields
messages (messages.py, tables.py), a pserver answers (server.py), and arrivals.py decides the order.
A job is thus deterministic, can be stepped, and cannot hang: if no party can continue, that is an
error.
"""
