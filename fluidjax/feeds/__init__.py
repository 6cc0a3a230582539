"""Values that go into a step and come out of it.

feeding.py checks feeds by name, dtype, shape and range. Sequences are padded, so that ragged
batches have few shapes: bucketing.py pads, padding.py decides how much, and ragged_shards.py
handles them on a mesh. stacking.py stacks the feeds of several steps for one scan. fetching.py
returns results as NumPy arrays or as tensors.
"""
