"""Which part of a model lies on which card: layers, tensors, heads, adapters."""
