"""What Paddle 1.8.5 prints for the scripts of tests/data/scripts/zoo: run with its Python, writes recorded.json there.

With names of scripts only those are run anew.
"""

import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "scripts", "zoo")
TOLD = ("Pass", "End pass", "saved", "kpis", "step", "batch", "beams", "detections", "table", "files", "\tdata")
ARGUMENTS = {
    "image_classification": ["--model_save_dir", "FOLDER"], "ctr": ["FOLDER"], "seq2seq": [], "ssd": [], "bert": [], "bert_fleet": [],
}  # fmt: skip
ENVIRONMENT = {"CPU_NUM": "1", "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:6170", "PADDLE_TRAINER_ID": "0"}  # one worker
# The CPU build has no op that joins workers (gen_nccl_id), which one worker does not need either.
ALONE = """
import runpy, sys
sys.path.insert(0, ".")
import paddle.fluid.incubate.fleet.collective as collective
collective.CollectiveOptimizer._transpile = lambda self, startup_program, main_program: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def main():
    path = os.path.join(FOLDER, "recorded.json")
    found = {}
    if sys.argv[1:]:
        with open(path) as file:
            found = json.load(file)
    for name in sys.argv[1:] or ARGUMENTS:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-c", ALONE, name + ".py"] + [folder if word == "FOLDER" else word for word in ARGUMENTS[name]]
            env = dict(os.environ, PIPE_PYTHON=sys.executable, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **ENVIRONMENT)
            text = subprocess.run(words, cwd=FOLDER, env=env, check=True, stdout=subprocess.PIPE).stdout.decode()
        found[name] = [line for line in text.splitlines() if line.startswith(TOLD)]
    with open(path, "w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
