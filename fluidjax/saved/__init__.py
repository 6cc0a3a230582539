"""Saved programs and values, in Paddle's own formats and as safetensors. fluid.io re-exports what
users call.
"""
