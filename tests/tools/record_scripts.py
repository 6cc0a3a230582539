"""What Paddle 1.8.5 prints for the scripts of tests/data/scripts/zoo: run with its Python, writes
recorded.json there.

With names of scripts only those are run anew. Those of JOBS are run as jobs of two trainers and two
pservers, process by process.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "data", "scripts", "zoo"))
TOLD = (
    "Pass",
    "End pass",
    "saved",
    "kpis",
    "step",
    "batch",
    "beams",
    "detections",
    "table",
    "files",
    "\tdata",
)
ARGUMENTS = {
    "image_classification": ["--model_save_dir", "FOLDER"], "ctr": ["FOLDER"], "seq2seq": [], "ssd": [], "bert": [], "bert_fleet": [],
    "image_classification_dist": ["--model_save_dir", "FOLDER"], "word2vec": [], "yolo": [], "gan": [], "transformer": [],
    "recommender": ["FOLDER"], "ernie": [], "srl": [], "deepfm": [],
    "decoder": [], "policy": [], "metric": [],
}  # fmt: skip
JOBS = {"ctr_fleet": ["FOLDER"]}
DEVICES = {"image_classification_dist": "2"}  # its workers are devices where it is one process
# one worker
ENVIRONMENT = {
    "CPU_NUM": "1",
    "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:6170",
    "PADDLE_TRAINER_ID": "0",
}
# The CPU build has no op that joins workers (gen_nccl_id), which one worker does not need either.
ALONE = """
import os, runpy, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import paddle.fluid.incubate.fleet.collective as collective
collective.CollectiveOptimizer._transpile = lambda self, startup_program, main_program: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def lines(text):
    return [line for line in text.decode().splitlines() if line.startswith(TOLD)]


def words(name, folder):
    return [os.path.join(FOLDER, name + ".py")] + [
        folder if word == "FOLDER" else word for word in ARGUMENTS.get(name, JOBS.get(name))
    ]


def job(name, folder, env):
    """What the two trainers print. 1.8.5's pservers wait for ever, so they are ended."""
    ends = ["127.0.0.1:%d" % port for port in free_ports(4)]
    env = dict(
        env,
        PADDLE_TRAINERS_NUM="2",
        PADDLE_TRAINER_ENDPOINTS=",".join(ends[:2]),
        PADDLE_PSERVERS_IP_PORT_LIST=",".join(ends[2:]),
    )

    def start(role, **more):
        command = [sys.executable] + words(name, folder)
        return subprocess.Popen(
            command, cwd=folder, env=dict(env, TRAINING_ROLE=role, **more), stdout=subprocess.PIPE
        )

    servers = [
        start("PSERVER", POD_IP="127.0.0.1", PADDLE_PORT=end.split(":")[1]) for end in ends[2:]
    ]
    trainers = [
        start("TRAINER", PADDLE_TRAINER_ID=str(k), PADDLE_CURRENT_ENDPOINT=ends[k])
        for k in range(2)
    ]
    try:
        return [lines(t.communicate(timeout=100)[0]) for t in trainers]
    finally:
        for one in servers + trainers:
            if one.poll() is None:
                one.kill()
            one.wait()


def main():
    path = os.path.join(FOLDER, "recorded.json")
    found = {}
    if sys.argv[1:]:
        with open(path) as file:
            found = json.load(file)
    for name in sys.argv[1:] or list(ARGUMENTS) + list(JOBS):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(
                os.environ,
                PIPE_PYTHON=sys.executable,
                OMP_NUM_THREADS="1",
                PYTHONDONTWRITEBYTECODE="1",
                **ENVIRONMENT,
            )
            if name in JOBS:
                found[name] = job(name, folder, env)
                continue
            env["CPU_NUM"] = DEVICES.get(name, "1")
            command = [sys.executable, "-c", ALONE] + words(name, folder)
            found[name] = lines(
                subprocess.run(
                    command, cwd=folder, env=env, check=True, stdout=subprocess.PIPE
                ).stdout
            )
    with open(path, "w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
