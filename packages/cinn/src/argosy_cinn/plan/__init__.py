"""From simplified programs to steps in an order, with every value's place in memory."""
