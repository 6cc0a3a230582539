"""What Paddle 1.8.5 prints for the scripts of tests/data/scripts/zoo: run with its Python, writes recorded.json there."""

import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "scripts", "zoo")
TOLD = ("Pass", "End pass", "saved", "kpis", "step", "batch", "beams", "detections", "table", "files", "\tdata")
ARGUMENTS = {"image_classification": ["--model_save_dir", "FOLDER"], "ctr": ["FOLDER"], "seq2seq": [], "ssd": [], "bert": []}


def main():
    found = {}
    for name, arguments in ARGUMENTS.items():
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, name + ".py"] + [folder if word == "FOLDER" else word for word in arguments]
            env = dict(os.environ, PIPE_PYTHON=sys.executable, CPU_NUM="1", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
            text = subprocess.run(words, cwd=FOLDER, env=env, check=True, stdout=subprocess.PIPE).stdout.decode()
        found[name] = [line for line in text.splitlines() if line.startswith(TOLD)]
    with open(os.path.join(FOLDER, "recorded.json"), "w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
