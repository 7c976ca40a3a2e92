//! The number of streaming multiprocessors of a GPU.
//!
//! The driver reports it for MIG instances only; for a whole GPU it reports the number of cores.

use nvml_wrapper::Device as Handle;
use nvml_wrapper::error::NvmlError;

use super::error::if_reported;

/// The number of streaming multiprocessors of a GPU with this compute capability, if it can be determined.
pub(super) fn multiprocessors(
    gpu: &Handle<'_>,
    capability: Option<(u32, u32)>,
) -> Result<Option<u32>, NvmlError> {
    let each = capability.and_then(cores_of_each);
    if let (Some(cores), Some(each)) = (if_reported(gpu.num_cores())?, each) {
        return Ok(of_cores(cores, each));
    }
    let counted = if_reported(gpu.attributes())?.map(|attributes| attributes.multiprocessor_count);
    Ok(counted.filter(|count| *count > 0))
}

/// FP32 cores of one multiprocessor, by compute capability.
fn cores_of_each(capability: (u32, u32)) -> Option<u32> {
    match capability {
        (3, _) => Some(192),
        (6, 0) | (7, _) | (8, 0) => Some(64),
        (5 | 6, _) | (8..=12, _) => Some(128),
        _ => None,
    }
}

fn of_cores(cores: u32, each: u32) -> Option<u32> {
    (cores > 0 && cores.is_multiple_of(each)).then_some(cores / each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_gpus_have_the_multiprocessors_of_their_data_sheets() {
        let gpus = [
            ("V100", 5120, (7, 0), 80),
            ("T4", 2560, (7, 5), 40),
            ("A100", 6912, (8, 0), 108),
            ("RTX 3090", 10_496, (8, 6), 82),
            ("RTX 4090", 16_384, (8, 9), 128),
            ("H100 SXM", 16_896, (9, 0), 132),
            ("P100", 3584, (6, 0), 56),
            ("GTX 1080", 2560, (6, 1), 20),
        ];
        for (name, cores, capability, multiprocessors) in gpus {
            let each = cores_of_each(capability).unwrap();
            assert_eq!(of_cores(cores, each), Some(multiprocessors), "{name}");
        }
    }

    #[test]
    fn unknown_architectures_and_numbers_that_do_not_divide_yield_none() {
        assert_eq!(cores_of_each((13, 0)), None);
        assert_eq!(of_cores(100, 128), None);
        assert_eq!(of_cores(0, 128), None);
    }
}
