"""The rewrites of `canonicalize`, by family. A rule never makes a program worse, moves constants to the right only
once, and holds bit for bit on every input, including NaN, infinities and signed zeros."""
