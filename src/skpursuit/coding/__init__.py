"""Many signals over one dictionary: the batched coder and the update of atoms."""
