"""A zoo of training workloads: models of many kinds on made-up tensors, to see how they share a GPU."""
