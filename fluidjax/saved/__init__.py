"""Saved programs and values, in Paddle's own formats and as safetensors. fluid.io re-exports the
functions for users.

stream.py reads and writes Paddle's tensors, pickled.py Paddle's dicts of arrays, files.py writes
all or nothing, values.py compares strictly by name.

pickles.py interprets the few opcodes of plain values instead of giving ``pickle.Unpickler`` a
``find_class`` of its own. That would make names safe, but not the machine below them, which no hook
reaches. Nine bytes (``LONG_BINPUT`` 10^8) make the unpickler's memo take more than a gigabyte;
hashing a key that is a tuple nested a million deep overflows the C stack; hashing a key of a few
hundred bytes whose tuples double takes seconds.
"""
