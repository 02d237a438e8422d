"""A program of its own: a module of LLVM's text, from the standard input, as SPIR-V on the standard output.

LLVM's SPIR-V generator (22 at least) keeps the numbers of a function's blocks in a table that lives as long as the
process: a later function at the same address gets them again, whatever else has them by then. It also ends the process
at what it has no SPIR-V for. So each module has a process, which needs nothing but llvmlite.
"""

import sys

import llvmlite.binding as llvm


def main() -> None:
    """Emit one module. Raises RuntimeError where LLVM refuses it, or has no SPIR-V generator."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(sys.stdin.read())
    module.verify()
    machine = llvm.Target.from_triple(module.triple).create_target_machine(opt=0)  # the device's compiler optimises
    sys.stdout.buffer.write(machine.emit_object(module))


if __name__ == "__main__":
    main()
