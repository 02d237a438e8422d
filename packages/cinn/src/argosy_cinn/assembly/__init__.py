"""From plans to machine code and what an executable needs beside it."""
