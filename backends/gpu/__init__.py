"""GPUs: one walk from kernels to LLVM for all of them, in the words of a dialect for each kind of device."""
