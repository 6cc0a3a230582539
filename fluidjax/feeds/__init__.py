"""What goes into a step and comes out of it.

feeding.py checks feeds by name, dtype, shape and range. Sequences are padded, so that ragged
batches make few shapes: bucketing.py does it, padding.py decides how much, and ragged_shards.py
handles them on a mesh. stacking.py joins the feeds of several steps for one scan. fetching.py hands
results out as NumPy arrays or as tensors.
"""
