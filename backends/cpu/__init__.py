"""The CPU backend: it compiles kernels and schedules to LLVM IR and machine code, and runs that in this process."""
