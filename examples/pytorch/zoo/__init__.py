"""Training workloads for experiments with sharing a GPU: models of various kinds, trained on random tensors."""
