//! How a rank names its GPUs in `CUDA_VISIBLE_DEVICES`: by numbers, which every program understands
//! (DeepSpeed and vLLM read nothing else), or by UUIDs, which never name another GPU.
//!
//! CUDA numbers the GPUs that a process can reach, here in PCI order. A process whose device files of other
//! GPUs are closed reaches its own alone, numbered from 0; so does a client of MPS, whose daemon sees one
//! GPU. Any other process reaches all GPUs of the host. Their numbers are known only if each GPU answers and
//! none is partitioned by MIG.

use std::collections::BTreeMap;

use cohabit_types::{Device, DeviceId, DeviceKind, Mig};
use cohabit_worker_core::GpuAccess;

use crate::devices::DeviceIds;

/// The numbers of this host's GPUs.
#[derive(Debug, Clone)]
pub(crate) struct GpuNumbers {
    form: DeviceIds,
    /// In PCI order.
    numbers: BTreeMap<DeviceId, usize>,
    /// Whether CUDA numbers them so.
    are_certain: bool,
    /// Whether ranks reach the device files of no GPUs but their own.
    are_others_closed: bool,
}

impl GpuNumbers {
    /// The numbers of the GPUs among these devices, of which `do_all_answer` says whether the driver reports
    /// every one.
    pub(crate) fn new(
        devices: &[Device],
        do_all_answer: bool,
        are_others_closed: bool,
        form: DeviceIds,
    ) -> GpuNumbers {
        let mut gpus: Vec<_> = devices
            .iter()
            .filter(|device| device.kind == DeviceKind::Gpu)
            .filter_map(|device| Some((&device.gpu.as_ref()?.pci_address, device)))
            .collect();
        gpus.sort_by_key(|(address, _)| *address);
        let are_distinct = gpus.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_partitioned = |device: &Device| device.gpu.as_ref().is_some_and(|gpu| gpu.mig == Mig::On);
        let has_partitions = gpus.iter().any(|(_, device)| is_partitioned(device));
        let numbers = gpus.iter().enumerate().map(|(number, (_, device))| (device.id.clone(), number));
        GpuNumbers {
            form,
            numbers: numbers.collect(),
            are_certain: do_all_answer && are_distinct && !has_partitions,
            are_others_closed,
        }
    }

    /// The value of `CUDA_VISIBLE_DEVICES` for a rank with these GPUs.
    pub(crate) fn visible(&self, gpus: &[&DeviceId], access: GpuAccess) -> String {
        let by_number = match (self.form, access) {
            (DeviceIds::Uuid, _) => None,
            (DeviceIds::Auto | DeviceIds::Index, GpuAccess::Mps(_)) => Some(vec![0]),
            (DeviceIds::Auto | DeviceIds::Index, _) if self.are_others_closed => self.own_numbers(gpus),
            (DeviceIds::Auto, _) if !self.are_certain => None,
            (DeviceIds::Auto | DeviceIds::Index, _) => self.host_numbers(gpus),
        };
        let names: Vec<String> = match by_number {
            Some(numbers) => numbers.iter().map(ToString::to_string).collect(),
            None => gpus.iter().map(ToString::to_string).collect(),
        };
        names.join(",")
    }

    /// Among all GPUs of the host.
    fn host_numbers(&self, gpus: &[&DeviceId]) -> Option<Vec<usize>> {
        gpus.iter().map(|gpu| self.numbers.get(*gpu).copied()).collect()
    }

    /// Among the rank's own.
    fn own_numbers(&self, gpus: &[&DeviceId]) -> Option<Vec<usize>> {
        let numbers = self.host_numbers(gpus)?;
        let before = |number: &usize| numbers.iter().filter(|other| *other < number).count();
        Some(numbers.iter().map(before).collect())
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Bytes, GpuProperties};
    use cohabit_worker_core::MpsLimits;

    use super::*;

    const CLIENT: GpuAccess = GpuAccess::Mps(MpsLimits { memory: Bytes(1 << 30), percentage: None });

    fn gpu(id: &str, address: &str) -> Device {
        let properties = GpuProperties { pci_address: address.into(), ..GpuProperties::default() };
        let device = Device::new(DeviceId(id.into()), DeviceKind::Gpu, "H200", None);
        Device { gpu: Some(properties), ..device }
    }

    /// Three GPUs, which the driver does not list in PCI order.
    fn three() -> Vec<Device> {
        vec![
            gpu("GPU-c", "00000000:C1:00.0"),
            gpu("GPU-a", "00000000:0A:00.0"),
            gpu("GPU-b", "00000000:3B:00.0"),
        ]
    }

    fn visible(numbers: &GpuNumbers, gpus: &[&str], access: GpuAccess) -> String {
        let ids: Vec<DeviceId> = gpus.iter().map(|id| DeviceId((*id).into())).collect();
        numbers.visible(&ids.iter().collect::<Vec<_>>(), access)
    }

    #[test]
    fn a_rank_with_whole_gpus_gets_their_numbers_in_pci_order() {
        let numbers = GpuNumbers::new(&three(), true, false, DeviceIds::Auto);
        assert_eq!(visible(&numbers, &["GPU-c", "GPU-b"], GpuAccess::Exclusive), "2,1");
        assert_eq!(visible(&numbers, &["GPU-b"], GpuAccess::TimeSliced(Bytes(1))), "1");
        assert_eq!(visible(&numbers, &[], GpuAccess::None), "");
    }

    #[test]
    fn a_rank_that_reaches_only_its_own_gpus_gets_numbers_from_0() {
        let numbers = GpuNumbers::new(&three(), false, true, DeviceIds::Auto);
        assert_eq!(visible(&numbers, &["GPU-c", "GPU-b"], GpuAccess::Exclusive), "1,0");
    }

    #[test]
    fn a_client_of_mps_sees_its_gpu_as_0() {
        for form in [DeviceIds::Auto, DeviceIds::Index] {
            assert_eq!(visible(&GpuNumbers::new(&three(), true, false, form), &["GPU-c"], CLIENT), "0");
        }
    }

    #[test]
    fn where_numbers_could_name_another_gpu_a_rank_gets_uuids() {
        let mut partitioned = three();
        partitioned[1].gpu.as_mut().unwrap().mig = Mig::On;
        let mut same = three();
        same[1].gpu.as_mut().unwrap().pci_address.clone_from(&three()[2].gpu.as_ref().unwrap().pci_address);
        for (devices, do_all_answer) in [(partitioned, true), (same, true), (three(), false)] {
            let numbers = GpuNumbers::new(&devices, do_all_answer, false, DeviceIds::Auto);
            assert_eq!(visible(&numbers, &["GPU-c"], GpuAccess::Exclusive), "GPU-c");
        }
    }

    #[test]
    fn an_operator_decides_otherwise() {
        let uuids = GpuNumbers::new(&three(), true, true, DeviceIds::Uuid);
        assert_eq!(visible(&uuids, &["GPU-c", "GPU-a"], GpuAccess::Exclusive), "GPU-c,GPU-a");
        assert_eq!(visible(&uuids, &["GPU-c"], CLIENT), "GPU-c");
        let numbers = GpuNumbers::new(&three(), false, false, DeviceIds::Index);
        assert_eq!(visible(&numbers, &["GPU-c"], GpuAccess::Exclusive), "2");
    }
}
