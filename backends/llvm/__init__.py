"""What LLVM emits, for any device."""
