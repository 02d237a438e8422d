"""Starting the ranks of a job: ``python -m argosy.distributed.launch [options] script [arguments]``.

In the order of a run: ``arguments`` reads the command, ``mpiexec`` builds the one that starts the processes, ``job``
watches them, ``worker`` is what each of them is, ``parent`` lets none of them outlive who started it.
"""
