"""A job in one process: its transpiled programs, run message by message; the oracle of the rewrites
for a mesh.

job.py runs transpiled programs, and nothing but them: it reads from the programs themselves where
parameters live. A trainer's block 0 is divided where it talks (segments.py); a segment is a
``Step`` whose reads are its state and whose results are its fetches. A trainer is a generator
that yields messages (messages.py, tables.py), a pserver answers (server.py), and arrivals.py says
in what order. So a job is deterministic, can be stepped, and cannot hang: if nobody can go on,
that is an error.
"""
