"""fluid.layer_helper_base: LayerHelper's base class in Fluid, which is part of LayerHelper here."""

from .layer_helper import LayerHelper as LayerHelperBase

__all__ = ["LayerHelperBase"]
