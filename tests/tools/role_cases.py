"""Role makers as Paddle 1.8.5 and fluidjax are asked; with Paddle it records
tests/data/roles_1.8.5.json.

    python3.8 tests/tools/role_cases.py
"""

import json
import os

WORKERS = dict(PADDLE_TRAINER_ENDPOINTS="a:1,b:2,c:3", PADDLE_TRAINER_ID="2")
BOTH = dict(
    PADDLE_PSERVERS_IP_PORT_LIST="s:1,t:2",
    PADDLE_TRAINERS_NUM="4",
    TRAINING_ROLE="TRAINER",
    PADDLE_TRAINER_ID="3",
)
SERVER = dict(BOTH, TRAINING_ROLE="PSERVER", POD_IP="t", PADDLE_PORT="2")
KEYS = set(WORKERS) | set(SERVER) | {"PADDLE_TRAINING_ROLE"}
CASES = {
    "workers": (WORKERS, lambda r: r.PaddleCloudRoleMaker(is_collective=True)),
    "workers, first": (
        dict(WORKERS, PADDLE_TRAINER_ID="0"),
        lambda r: r.PaddleCloudRoleMaker(True),
    ),
    "workers, nothing set": ({}, lambda r: r.PaddleCloudRoleMaker(True)),
    "workers, role": (
        dict(WORKERS, PADDLE_TRAINING_ROLE="PSERVER"),
        lambda r: r.PaddleCloudRoleMaker(True),
    ),
    "a trainer": (BOTH, lambda r: r.PaddleCloudRoleMaker()),
    "a server": (SERVER, lambda r: r.PaddleCloudRoleMaker()),
    "nothing set": ({}, lambda r: r.PaddleCloudRoleMaker()),
    "another role": (dict(BOTH, TRAINING_ROLE="X"), lambda r: r.PaddleCloudRoleMaker()),
    "a server that is not listed": (
        dict(SERVER, PADDLE_PORT="3"),
        lambda r: r.PaddleCloudRoleMaker(),
    ),
    "an id that is no number": (
        dict(BOTH, PADDLE_TRAINER_ID="x"),
        lambda r: r.PaddleCloudRoleMaker(),
    ),
    "user's worker": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 2, ["s:1"])),
    "user's server": ({}, lambda r: r.UserDefinedRoleMaker(1, r.Role.SERVER, 2, ["s:1", "t:1"])),
    "user's, no servers": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 2, [])),
    "user's, one string": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 2, "s:1")),
    "user's, twice": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 2, ["s:1", "s:1"])),
    "user's, numbers": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 2, [1])),
    "user's, role": ({}, lambda r: r.UserDefinedRoleMaker(0, 7, 2, ["s:1"])),
    "user's, below": ({}, lambda r: r.UserDefinedRoleMaker(-1, r.Role.WORKER, 2, ["s:1"])),
    "user's, beyond": ({}, lambda r: r.UserDefinedRoleMaker(1, r.Role.SERVER, 2, ["s:1"])),
    "user's, no workers": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 0, ["s:1"])),
    "user's, half a worker": ({}, lambda r: r.UserDefinedRoleMaker(0, r.Role.WORKER, 0.5, ["s:1"])),
    "collective": ({}, lambda r: r.UserDefinedCollectiveRoleMaker(1, ["a:1", "b:2"])),
    "collective, beyond": ({}, lambda r: r.UserDefinedCollectiveRoleMaker(2, ["a:1", "b:2"])),
    "collective, none": ({}, lambda r: r.UserDefinedCollectiveRoleMaker(0, None)),
}


def told(roles, name):
    """what a role maker says of itself, or the kind of what it raises"""
    env, make = CASES[name]
    old = {k: os.environ.pop(k, None) for k in KEYS}
    os.environ.update(env)
    try:
        role = make(roles)
        role.generate_role()
        found = [
            role.is_worker(),
            role.is_first_worker(),
            role.worker_num(),
            role.worker_index(),
            role.get_trainer_endpoints(),
            role.get_pserver_endpoints(),
        ]
        return found + (
            [role.is_server(), role.server_index()] if role.get_pserver_endpoints() else []
        )
    except Exception as e:
        return "TypeError" if isinstance(e, TypeError) else "error"
    finally:
        for k, v in old.items():
            os.environ.pop(k, None)
            if v is not None:
                os.environ[k] = v


if __name__ == "__main__":
    from paddle.fluid.incubate.fleet.base import role_maker

    path = os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "data", "roles_1.8.5.json"
    )
    with open(path, "w") as f:
        json.dump({name: told(role_maker, name) for name in sorted(CASES)}, f, indent=0)
        f.write("\n")
