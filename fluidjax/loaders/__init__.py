"""How batches get to a program: readers and their decorators, loaders, and where a reader stands."""
