"""fluid.layer_helper_base: what Fluid has under LayerHelper is one class here."""

from .layer_helper import LayerHelper as LayerHelperBase

__all__ = ["LayerHelperBase"]
