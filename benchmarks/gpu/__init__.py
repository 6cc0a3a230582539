"""What is tested and measured on a machine with an NVIDIA GPU, in one go: ``bash
benchmarks/gpu/run.sh``.

`__main__` conducts: it starts the cases, each in a process of its own, and gives the card to one of
them at a time. `worker` runs a case; `cases` lists them. What is found goes to a file of JSON lines
as it comes (`records`), of which `page` makes docs/gpu.md.
"""
