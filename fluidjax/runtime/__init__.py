"""Running a step: compiled steps, the state between them, what is fed and fetched, where all of it
lies.
"""
