"""GeoSgdTranspiler, under Fluid's module name; geo.py writes the programs."""

from __future__ import annotations

from .distribute_transpiler import DistributeTranspiler


class GeoSgdTranspiler(DistributeTranspiler):
    """Geo-SGD: trainers update by themselves and exchange their changes every
    geo_sgd_need_push_nums batches.

        config = fluid.DistributeTranspilerConfig()
        config.sync_mode, config.geo_sgd_mode = False, True
        t = fluid.transpiler.GeoSgdTranspiler(config)
        t.transpile(0, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=2)

    The pservers add the deltas to their parameters. Methods and errors are those of
    DistributeTranspiler.
    """

    _geo = True
