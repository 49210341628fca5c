"""The rewrites of `canonicalize`, by family. A rule never leads to something worse, moves constants to the right once,
and holds bit for bit on every input, NaN, infinities and signed zeros included."""
