"""What the examples of some pages leave out because every script has it, and which tests run those
of other pages.
"""

NET = """
import numpy as np
import fluidjax as fluid
from fluidjax import layers

main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    h3 = layers.fc(x, 4, act="tanh")
    h6 = layers.fc(h3, 4, act="tanh")
    h9 = layers.fc(h6, 4, act="tanh")
    out = layers.fc(h9, 1)
    loss = layers.mean(layers.square_error_cost(out, y))
    without = main.clone()
    fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(startup)
array = np.ones((2, 4), "float32")
feed = {"x": array, "y": array[:, :1]}
"""

BEFORE = {
    "jax-functions": "",
    "jax-functions-reference": "",
    "checkpoints": NET
    + """
train = lambda: iter([(array[0], array[0, :1])] * 64)
feeder = fluid.DataFeeder([x, y], fluid.CPUPlace(), main)
""",
    "long-jobs": NET
    + """
train = lambda: iter([(array[0], array[0, :1])] * 64)
feeder = fluid.DataFeeder([x, y], fluid.CPUPlace(), main)
""",
    "datasets": NET
    + """
import gzip
from pathlib import Path

Path("make_slots.py").write_text("import sys; sys.stdout.write(sys.stdin.read())")
Path("part-0.txt").write_text("2 7 9 3 .1 .2 .3 1 0\\n" * 3)
Path("part-1.txt.gz").write_bytes(gzip.compress(b"1 5 3 .1 .2 .3 1 1\\n" * 3))
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    ids, dense = fluid.data("ids", [None, 1], "int64", lod_level=1), fluid.data("dense", [None, 3])
    label = fluid.data("label", [None, 1], "int64")
    loss = layers.mean(layers.cross_entropy(layers.fc(dense, 2, act="softmax"), label))
    fluid.optimizer.SGD(0.1).minimize(loss)
exe.run(startup)
""",
    "differences": "",
    "export": NET + 'fluid.io.save_inference_model("inference_model", ["x"], [out], exe, main)\n',
    "fleet": "",
    "inference-transpiler": "",
    "lod": NET
    + """
main = fluid.Program()
with fluid.program_guard(main, startup):
    tags = layers.cast(fluid.data("words", [None, 1], "int64", lod_level=1), "float32")
ids = np.arange(5)[:, None]
""",
    "looking": NET,
    "memory": NET
    + """
import jax

before, optimize = main, fluid.program_guard(without, startup)
optimize.__enter__()
""",
    "memory-optimize": "",
    "planning": "",
    "planning-reference": "",
    "porting": "",
    "progress": "",
    "profiler": NET
    + """
import fluidjax.paddle

fluidjax.paddle.install()
""",
    "pserver": NET
    + """
batch_0 = batch_1 = feed
batches = [(batch_0, batch_1)]
""",
    "quantization": NET
    + """
import fluidjax.paddle

fluidjax.paddle.install()
place, scope, test = fluid.CPUPlace(), fluid.global_scope(), without.clone(for_test=True)
fluid.io.save_inference_model("model", ["x"], [out], exe, without)
samples = lambda: iter([[row] for row in np.random.default_rng(0).standard_normal((100, 4), dtype=np.float32)])
""",
    "saved-models": NET
    + """
import jax
import fluidjax.paddle

fluidjax.paddle.install()
for folder in ("model", "folder"):
    fluid.io.save_inference_model(folder, ["x"], [out], exe, main)
feed = {"x": array}
""",
    "service": "",
    "serving": NET
    + """
import fluidjax.paddle

fluidjax.paddle.install()
for folder in ("model", "folder"):
    fluid.io.save_inference_model(folder, ["x"], [out], exe, main)
feed = {"x": array}
""",
    "sizes": "",
    "sparse": NET
    + """
from jax.sharding import Mesh
import jax
from fluidjax.dist.spmd.sharded_table import Split, lookup, make, update
from fluidjax.ops.selected import SelectedRows

ids, model = fluid.data("ids", [None], "int64"), layers.mean
height, width, mesh = 10, 2, Mesh(np.array(jax.devices()[:4]), ("x",))
initial_rows = lambda rows: np.ones((len(rows), 2), "float32")
""",
    "transpiler": NET
    + """
guard = fluid.program_guard(main, startup)
guard.__enter__()
""",
}

# page -> the test that runs its examples
ELSEWHERE = {
    "README": "tests/test_readme.py",
    "adding-ops": "tests/ops/test_new_op.py",
    "adding-passes": "tests/passes/test_new_pass.py",
    "architecture": "tests/ops/test_new_op.py",
    "control-flow": "tests/lower/test_control.py",
    "data-parallel": "tests/dist/test_data_parallel.py",
    "errors": "tests/test_document_code.py",
    "errors-reference": "tests/test_document_code.py",
    "flags": "tests/test_document_code.py",
    "own-passes": "tests/passes/test_base.py",
    "passes": "tests/passes/test_base.py",
    "tutorial": "tests/test_document_code.py",
}
