"""On a GPU, against the CPU beside it: `bash benchmarks/gpu/run.sh` runs these, and rehearses them
with the CPU in the GPU's place.
"""
