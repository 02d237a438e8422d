"""Which values get memory (`memory`), which are computed by one kernel (`groups`), and of what kind it is (`kinds`)."""
