"""The CPU backend: kernels and schedules to LLVM IR, machine code in this process, and its execution."""
