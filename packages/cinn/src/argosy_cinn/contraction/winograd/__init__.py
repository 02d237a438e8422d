"""Convolutions of 3 x 3 windows by minimal filtering: which ones and in what chunks (`plan`), the numbers and their
error (`transforms`), images to factors (`tiles`), a chunk from image to result (`chunk`), gradients of weights
(`weights`)."""
