"""The planner: the cost of a job on 8 to 4,096 devices, computed from its program without any
device. ``fluid.plan``.

One rank's step is traced on types for each number of samples (local.py), and its operations are
counted from the equations that tracing left (work.py). For each number of ranks the passes of
dist/spmd/ write the program that a rank runs, and its declarations say what a device holds
(ranks.py). Of that program only the collectives are traced, under ``jax.shard_map`` on a
``jax.sharding.AbstractMesh``, so messages come from the same code as in a run. Equal collectives of
equal values count once, as in XLA (messages.py). Tests compare with the compiled step's text
(hlo.py).
"""

from .devices import DEVICES as DEVICES
from .devices import Device as Device
from .figures import Row as Row
from .links import LINKS as LINKS
from .links import Link as Link
from .links import Links as Links
from .planner import plan as plan
from .report import Plan as Plan
