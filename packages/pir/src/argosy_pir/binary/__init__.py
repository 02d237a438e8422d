"""Parts of the binary form: numbers, tables, and the program's body. ``argosy_pir.serialization`` is its
face."""
