"""``python torch_convolution.py CASES``: CPU ms of torch's output, input's and filter's gradient,
on one thread, as JSON.

CASES: JSON, for each case the shapes of the input and of the filter, stride, padding and groups.
"""

import json
import sys

import torch
from clock import milliseconds

torch.set_num_threads(1)


def measured(x_shape, w_shape, stride, pad, groups):
    x, w = torch.randn(x_shape), torch.randn(w_shape)
    forward = torch.nn.functional.conv2d
    dy = torch.randn_like(forward(x, w, None, stride, pad, 1, groups))

    def gradient(input_too, filter_too):
        mask = [input_too, filter_too, False]
        one = [1, 1]
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [pad] * 2, one, False, [0, 0], groups, mask
        )

    runs = (
        lambda: forward(x, w, None, stride, pad, 1, groups),
        lambda: gradient(True, False),
        lambda: gradient(False, True),
    )
    with torch.no_grad():
        return [milliseconds(run) for run in runs]


print(json.dumps([measured(*case) for case in json.loads(sys.argv[1])]))
