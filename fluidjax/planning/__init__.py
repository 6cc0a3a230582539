"""The planner: what a job needs on 8 to 4,096 devices, told from its program before any device is
there. ``fluid.plan``.
"""

from .devices import DEVICES as DEVICES
from .devices import Device as Device
from .figures import Row as Row
from .links import LINKS as LINKS
from .links import Link as Link
from .links import Links as Links
from .planner import plan as plan
from .report import Plan as Plan
