//! A fake NVML.
