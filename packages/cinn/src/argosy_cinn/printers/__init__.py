"""Printers of generated code: the LLVM IR text builder (`llvm`, `instructions`, `types`)."""
