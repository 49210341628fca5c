"""GPUs: all kinds share the emission of LLVM IR from kernels; a dialect implements what differs between them."""
