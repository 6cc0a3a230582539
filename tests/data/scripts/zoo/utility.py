"""What the scripts here share: arguments, and first values that do not depend on a random generator of the framework."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import distutils.util

import numpy as np
import six

import paddle.fluid as fluid


def add_arguments(name, type, default, help, parser):
    type = distutils.util.strtobool if type == bool else type
    parser.add_argument("--" + name, default=default, type=type, help=help + ' Default: %(default)s.')


def print_arguments(args):
    for arg, value in sorted(six.iteritems(vars(args))):
        print("%s: %s" % (arg, value))


def set_parameters(program, place, scale=1.0):
    """Give each parameter values that its name order and shape alone decide."""
    rng = np.random.RandomState(7)
    for var in sorted(program.global_block().all_parameters(), key=lambda p: p.name):
        shape = [int(n) for n in var.shape]
        if len(shape) == 1:
            value = np.full(shape, 0.01, 'float32') if not _is_scale(var.name) else np.ones(shape, 'float32')
        else:
            value = rng.uniform(-1, 1, shape) * scale * np.sqrt(3.0 / np.prod(shape[1:]))
        fluid.global_scope().find_var(var.name).get_tensor().set(value.astype('float32'), place)


def _is_scale(name):
    return name.endswith('scale') or (name.startswith(('batch_norm', 'layer_norm')) and '.w_' in name) or name.endswith('variance')
