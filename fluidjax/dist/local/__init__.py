"""A job in one process: its transpiled programs, run message by message; the oracle of the rewrites
for a mesh.
"""
