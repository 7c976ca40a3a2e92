//! Data sheets of the GPUs that are known by name.
//!
//! Traces and tables name a GPU and nothing more. The speed only serves to estimate how long synthetic
//! workloads compute; measured ones bring their own.

use cohabit_types::Bytes;

/// A GPU's data sheet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuModel {
    /// Its usual name.
    pub name: &'static str,
    /// Its memory.
    pub memory: Bytes,
    /// Peak floating-point operations per second of its fp32 units.
    pub peak: f64,
    /// Peak bandwidth of its memory, in bytes per second.
    pub bandwidth: f64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// fp32 units in all multiprocessors.
    pub cuda_cores: u32,
    /// Tensor cores in all multiprocessors.
    pub tensor_cores: u32,
    /// Clock of its memory, in MHz.
    pub memory_clock: u32,
}

/// The fraction of the peak that training reaches: convolutions and large matrix products reach half of it
/// or somewhat more. (ResNet-50 on a V100: 380 images/s x 24.6e9 operations = 9.3e12 of 15.7e12.)
const TRAINING_EFFICIENCY: f64 = 0.5;

/// The known GPUs. A K80 counts as one of the two GPUs on its board.
pub const GPU_MODELS: [GpuModel; 8] = [
    gpu("K80", 12, 4.4e12, 240.0, (13, 2_496, 0, 2_505)),
    gpu("P100", 16, 10.6e12, 732.0, (56, 3_584, 0, 715)),
    gpu("V100", 16, 15.7e12, 900.0, (80, 5_120, 640, 877)),
    gpu("T4", 16, 8.1e12, 320.0, (40, 2_560, 320, 5_001)),
    gpu("A10", 24, 31.2e12, 600.0, (72, 9_216, 288, 6_251)),
    gpu("A100", 80, 19.5e12, 2_039.0, (108, 6_912, 432, 1_593)),
    gpu("H100", 80, 67.0e12, 3_350.0, (132, 16_896, 528, 2_619)),
    gpu("H200", 141, 67.0e12, 4_800.0, (132, 16_896, 528, 3_201)),
];

/// Multiprocessors, CUDA cores, tensor cores, memory clock in MHz.
type Units = (u32, u32, u32, u32);

const fn gpu(
    name: &'static str,
    gibibytes: u64,
    peak: f64,
    gigabytes_a_second: f64,
    units: Units,
) -> GpuModel {
    let (multiprocessors, cuda_cores, tensor_cores, memory_clock) = units;
    let (memory, bandwidth) = (Bytes(gibibytes << 30), gigabytes_a_second * 1e9);
    GpuModel { name, memory, peak, bandwidth, multiprocessors, cuda_cores, tensor_cores, memory_clock }
}

impl GpuModel {
    /// Stands for a GPU that is not known.
    pub const FALLBACK: GpuModel = GPU_MODELS[2];

    /// The GPU with this name, in any case.
    #[must_use]
    pub fn by_name(name: &str) -> Option<GpuModel> {
        GPU_MODELS.into_iter().find(|model| model.name.eq_ignore_ascii_case(name))
    }

    /// The GPU whose name is one of the words of a driver's longer name; `Tesla V100-SXM2-32GB` is a V100
    /// with that much memory.
    #[must_use]
    pub fn within(name: &str) -> Option<GpuModel> {
        let words = || name.split(|letter: char| !letter.is_ascii_alphanumeric());
        let model = words().find_map(GpuModel::by_name)?;
        let named_memory =
            words().find_map(|word| word.to_lowercase().strip_suffix("gb")?.parse::<u64>().ok());
        Some(GpuModel {
            memory: named_memory.map_or(model.memory, |gibibytes| Bytes(gibibytes << 30)),
            ..model
        })
    }

    /// Floating-point operations per second in training.
    #[must_use]
    pub fn sustained(&self) -> f64 {
        self.peak * TRAINING_EFFICIENCY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_name_contains_the_model_and_may_contain_the_memory() {
        let found = |name| GpuModel::within(name).map(|model| (model.name, model.memory.0 >> 30));
        assert_eq!(found("NVIDIA H200"), Some(("H200", 141)));
        assert_eq!(found("Tesla V100-SXM2-32GB"), Some(("V100", 32)));
        assert_eq!(found("nvidia a100-sxm4-80gb"), Some(("A100", 80)));
        assert_eq!(found("k80"), Some(("K80", 12)));
        assert_eq!(found("A1000"), None);
    }
}
