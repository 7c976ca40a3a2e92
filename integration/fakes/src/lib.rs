//! A made-up world of GPUs that a fake NVML, a fake MPS and a fake CUDA client share: one folder, which tests write
//! and read.
