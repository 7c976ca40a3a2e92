//! What a job keeps from others, in thousandths of a GPU.

use cohabit_types::{Bytes, Demand, Share};

/// One GPU.
pub const GPU: u64 = Share::WHOLE.0 as u64;

/// What a job would hold: of each of its devices its part, or the whole where nobody may join.
#[must_use]
pub const fn wanted(demand: &Demand) -> u64 {
    match demand.may_have_neighbors() {
        true => demand.total_milli(),
        false => demand.total_devices() as u64 * GPU,
    }
}

/// What it holds of one device: the larger part of its compute and of the memory that jobs may use.
#[must_use]
pub fn held_of_device(demand: &Demand, share: Share, usable_memory: Option<Bytes>) -> u64 {
    if !demand.may_have_neighbors() {
        return GPU;
    }
    let part_of_memory =
        demand.gpu_memory.zip(usable_memory).map_or(0, |(claimed, usable)| part(claimed.0, usable.0));
    u64::from(share.0).max(part_of_memory).min(GPU)
}

/// What a job with cores and host memory keeps of a node: the larger part, as so many of its devices.
#[must_use]
pub fn held_of_host(cpus: [u32; 2], memory: [Bytes; 2], devices: usize) -> u64 {
    let [cpus, all_cpus] = cpus.map(u64::from);
    let [memory, all_memory] = memory.map(|it| it.0);
    part(cpus, all_cpus).max(part(memory, all_memory)).min(GPU) * devices as u64
}

/// A part in thousandths, rounded up.
fn part(amount: u64, of: u64) -> u64 {
    (u128::from(amount) * u128::from(GPU)).div_ceil(u128::from(of.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use cohabit_types::{GpuRequest, Sharing};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn third(memory: Option<u64>) -> Demand {
        Demand {
            gpus: GpuRequest::Part(Share(300)),
            gpu_memory: memory.map(Bytes),
            sharing: Sharing::Shared,
            ..Demand::default()
        }
    }

    #[test]
    fn the_larger_part_counts_and_one_without_a_figure_counts_a_whole_gpu() {
        let usable = Some(Bytes(80 * GIB));
        let held = |demand: Demand| held_of_device(&demand, Share(300), usable);
        assert_eq!(held(third(Some(40 * GIB))), 500);
        assert_eq!(held(third(Some(8 * GIB))), 300);
        assert_eq!(held(third(None)), 1_000);
        assert_eq!((wanted(&third(Some(GIB))), wanted(&third(None))), (300, 1_000));
    }

    #[test]
    fn cores_and_host_memory_count_as_devices_of_their_node() {
        // 32 of 64 cores of a node with 8 GPUs: 4 GPUs.
        let half_of_the_cores = held_of_host([32, 64], [Bytes(0), Bytes(512 * GIB)], 8);
        let most_of_the_memory = held_of_host([1, 64], [Bytes(384 * GIB), Bytes(512 * GIB)], 8);
        assert_eq!((half_of_the_cores, most_of_the_memory), (4_000, 6_000));
    }
}
