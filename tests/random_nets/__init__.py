"""Random nets, drawn with the real Paddle 1.8.5 and built again here: programs, values, gradients,
LoDs and state compared.

`python -m tests.random_nets --help` says how to run them; `docs/testing.md` what they are. A net is
a script: lines of source that name `fluid`, `L` (its layers), `I` (its initializers), `P`
(ParamAttr), `N` (its nets) and `np`, so what differs can be read and tried.
"""
