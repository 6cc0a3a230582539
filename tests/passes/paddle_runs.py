"""Run by Paddle 1.8.5's Python: a saved model on saved inputs. Argument: a folder with ``model`` and
``x.npy``; what it fetches goes into ``found.npz``.
"""

import os
import sys

import numpy as np
import paddle.fluid as fluid

folder = sys.argv[1]
exe = fluid.Executor(fluid.CPUPlace())
program, feeds, fetches = fluid.io.load_inference_model(os.path.join(folder, "model"), exe)
x = np.load(os.path.join(folder, "x.npy"))
found = exe.run(program, feed={feeds[0]: x}, fetch_list=fetches)
np.savez(os.path.join(folder, "found.npz"), **{f"out_{i}": v for i, v in enumerate(found)})
