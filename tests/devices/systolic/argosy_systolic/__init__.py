"""A simulated device with a matrix unit of 16 x 16 cells: a plug-in of form ``nest`` with instructions of its own."""
