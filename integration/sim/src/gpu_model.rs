//! GPUs that are known by name: how much memory they have and how fast they train.
//!
//! The speed only serves to estimate how long made-up workloads compute; measured ones bring their own.

use cohabit_proto::Bytes;

/// A make of GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuModel {
    /// As people call it.
    pub name: &'static str,
    /// Its memory.
    pub memory: Bytes,
    /// Floating-point operations in a second at best: the peak of its fp32 units in its data sheet.
    pub peak: f64,
}

/// How much of the peak training reaches: convolutions and large products of matrices run at half of it or
/// somewhat more. (ResNet-50 on a V100: 380 images/s x 24.6e9 operations = 9.3e12 of 15.7e12.)
const REACHED: f64 = 0.5;

/// Those that are known. A K80 counts as one of the two GPUs on its board.
pub const GPU_MODELS: [GpuModel; 8] = [
    gpu("K80", 12, 4.4e12),
    gpu("P100", 16, 10.6e12),
    gpu("V100", 16, 15.7e12),
    gpu("T4", 16, 8.1e12),
    gpu("A10", 24, 31.2e12),
    gpu("A100", 80, 19.5e12),
    gpu("H100", 80, 67.0e12),
    gpu("H200", 141, 67.0e12),
];

/// What a GPU that nobody knows is taken for.
pub(crate) const USUAL: GpuModel = GPU_MODELS[2];

const fn gpu(name: &'static str, gibibytes: u64, peak: f64) -> GpuModel {
    GpuModel { name, memory: Bytes(gibibytes << 30), peak }
}

impl GpuModel {
    /// By its name, in whatever case.
    #[must_use]
    pub fn by_name(name: &str) -> Option<GpuModel> {
        GPU_MODELS.into_iter().find(|model| model.name.eq_ignore_ascii_case(name))
    }

    /// Floating-point operations in a second of training.
    #[must_use]
    pub fn sustained(&self) -> f64 {
        self.peak * REACHED
    }
}
