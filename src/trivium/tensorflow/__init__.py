"""Trivium as a compiler for TensorFlow: `trivium.tensorflow.function(f)` is a `tf.function` whose graph runs as machine
code from Trivium. Tensors are passed without a copy; variables are read before and written after a run. Gradients work,
because the graph of a gradient is traced and compiled like any other."""

from trivium.tensorflow.function import Function, function

__all__ = ["Function", "function"]
