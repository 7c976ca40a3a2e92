//! How GPUs are connected.

use std::ffi::c_uint;

use cohabit_fakes::{FakeGpu, Topology};
use nvml_wrapper_sys::bindings::*;

use crate::device::pci;
use crate::library::{Code, gpu, tell, world};

/// The number of NVLinks of a Hopper GPU.
const LINKS: usize = 18;

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTopologyCommonAncestor(
    device: nvmlDevice_t,
    other: nvmlDevice_t,
    place: *mut nvmlGpuTopologyLevel_t,
) -> Code {
    tell("nvmlDeviceGetTopologyCommonAncestor", device, place, |from| {
        let to = gpu("nvmlDeviceGetTopologyCommonAncestor", other)?;
        Ok(match from.peers.get(&to.uuid).copied().unwrap_or_default() {
            Topology::Internal => nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL,
            Topology::Single => nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
            Topology::Multiple => nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE,
            Topology::HostBridge => nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE,
            Topology::Node => nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE,
            Topology::NvLinks(_) | Topology::System => nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkState(
    device: nvmlDevice_t,
    link: c_uint,
    place: *mut nvmlEnableState_t,
) -> Code {
    tell("nvmlDeviceGetNvLinkState", device, place, |gpu| {
        Ok(match end_of(gpu, link)? {
            Some(_) => nvmlEnableState_enum_NVML_FEATURE_ENABLED,
            None => nvmlEnableState_enum_NVML_FEATURE_DISABLED,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
    device: nvmlDevice_t,
    link: c_uint,
    place: *mut nvmlPciInfo_t,
) -> Code {
    tell("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, place, |from| {
        let uuid = end_of(from, link)?.ok_or(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)?;
        let to = world()?.gpu(&uuid).ok_or(nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
        pci(&to.pci)
    })
}

/// The GPU at the other end of this link. Links are numbered peer by peer.
fn end_of(gpu: &FakeGpu, link: c_uint) -> Result<Option<String>, Code> {
    if link as usize >= LINKS {
        return Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    let ends = gpu.peers.iter().flat_map(|(uuid, way)| {
        let links = if let Topology::NvLinks(links) = way { *links } else { 0 };
        std::iter::repeat_n(uuid, links as usize)
    });
    Ok(ends.take(LINKS).nth(link as usize).cloned())
}
