//! Variables that keep frameworks from taking the memory of the whole GPU at their start. JAX takes three
//! quarters of the GPU, and TensorFlow nearly all of it, whatever limit a rank has.

use std::collections::BTreeMap;

use cohabit_types::Bytes;

/// Variables by which a user decides how JAX takes memory.
const OF_JAX: [&str; 3] =
    ["XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_CLIENT_MEM_FRACTION"];

/// The same for TensorFlow.
const OF_TENSORFLOW: [&str; 2] = ["TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR"];

/// Memory of a CUDA context, which a framework does not count.
const CONTEXT: Bytes = Bytes(512 << 20);

/// The variables for a process that may take this much of a GPU with `total` memory; none of a framework for
/// which the user has set one.
pub(crate) fn framework_memory(
    limit: Bytes,
    total: Option<Bytes>,
    set_by_user: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_free = |names: &[&str]| names.iter().all(|name| !set_by_user.contains_key(*name));
    let mut variables = BTreeMap::new();
    if let Some(total) = total.filter(|total| *total > limit && is_free(&OF_JAX)) {
        variables.insert(OF_JAX[0].to_owned(), format!("{:.3}", fraction(limit, total)));
    }
    if is_free(&OF_TENSORFLOW) {
        variables.insert(OF_TENSORFLOW[0].to_owned(), "true".to_owned());
    }
    variables
}

/// The part of all memory that JAX takes at once: nine tenths of what the limit leaves beside the context.
fn fraction(limit: Bytes, total: Bytes) -> f64 {
    let usable = limit.0.saturating_sub(CONTEXT.0).max(limit.0 / 2);
    (usable as f64 * 0.9 / total.0 as f64).max(0.001)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn variables(limit: u64, user: &[&str]) -> BTreeMap<String, String> {
        let set_by_user = user.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        framework_memory(Bytes(limit), Some(Bytes(80 * GIB)), &set_by_user)
    }

    #[test]
    fn jax_takes_less_than_the_limit_and_tensorflow_what_it_needs() {
        let variables = variables(20 * GIB, &[]);
        assert_eq!(variables["XLA_PYTHON_CLIENT_MEM_FRACTION"], "0.219");
        assert_eq!(variables["TF_FORCE_GPU_ALLOW_GROWTH"], "true");
        let tiny = self::variables(256 << 20, &[]);
        assert_eq!(tiny["XLA_PYTHON_CLIENT_MEM_FRACTION"], "0.001");
    }

    #[test]
    fn what_the_user_has_set_is_left_alone() {
        for name in OF_JAX {
            assert!(!variables(20 * GIB, &[name]).contains_key(OF_JAX[0]), "{name}");
        }
        assert!(!variables(20 * GIB, &["TF_GPU_ALLOCATOR"]).contains_key(OF_TENSORFLOW[0]));
    }

    #[test]
    fn a_gpu_of_unknown_memory_says_nothing_to_jax() {
        assert!(!framework_memory(Bytes(GIB), None, &BTreeMap::new()).contains_key(OF_JAX[0]));
    }
}
