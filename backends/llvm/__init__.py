"""LLVM code emission, for any device."""
