//! The device files through which programs reach the GPUs of this host.
//!
//! ```text
//! /dev/nvidia0, …              major 195, the minor number that the driver reports for each GPU
//! /dev/nvidiactl               major 195, minor 255: everybody needs it, and it reaches no GPU
//! /dev/nvidia-modeset          major 195, minor 254: the same
//! /dev/dri/renderD128, …       of nvidia-drm; sysfs names them for each PCI address
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cohabit_types::DeviceId;

/// The major number of the driver's own device files.
const NVIDIA_MAJOR: u32 = 195;

/// The last minor number of a GPU; those above are the driver's own.
const LAST_GPU: u32 = 253;

/// The vendor that PCI devices of NVIDIA name.
const NVIDIA_VENDOR: &str = "0x10de";

/// The number of a character device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

/// Character devices with one major number and successive minor numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRange {
    /// The driver.
    pub major: u32,
    /// The first minor number.
    pub first: u32,
    /// The last minor number, included.
    pub last: u32,
}

/// The device files of the GPUs of this host. The default is a host without GPUs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct GpuDeviceFiles {
    /// Everything that reaches a GPU.
    gpus: Vec<DeviceRange>,
    /// What reaches each GPU.
    of: BTreeMap<DeviceId, Vec<DeviceNumber>>,
}

impl GpuDeviceFiles {
    /// Completes what the driver reports of each GPU, its minor number and its PCI address, with what sysfs
    /// (the tree at `sysfs`) says of its files for graphics. Blocks.
    pub(crate) fn read(
        reported: impl Iterator<Item = (DeviceId, u32, String)>,
        sysfs: &Path,
    ) -> GpuDeviceFiles {
        let graphics = graphics_files(&sysfs.join("bus/pci/devices"));
        let of = reported.map(|(id, minor, address)| {
            let own = graphics.get(&address_in_sysfs(&address)).cloned().unwrap_or_default();
            let main = DeviceNumber { major: NVIDIA_MAJOR, minor };
            (id, std::iter::once(main).chain(own).collect())
        });
        let all = DeviceRange { major: NVIDIA_MAJOR, first: 0, last: LAST_GPU };
        let graphics = graphics.values().flatten();
        let graphics = graphics.map(|it| DeviceRange { major: it.major, first: it.minor, last: it.minor });
        GpuDeviceFiles { of: of.collect(), gpus: std::iter::once(all).chain(graphics).collect() }
    }

    /// Everything that reaches a GPU, except the given ones. GPUs that appear later are included.
    #[must_use]
    pub fn closed_to(&self, given: &[DeviceId]) -> Vec<DeviceRange> {
        let open = given.iter().filter_map(|id| self.of.get(id)).flatten();
        open.fold(self.gpus.clone(), |closed, open| {
            closed.into_iter().flat_map(|range| range.without(*open)).collect()
        })
    }
}

impl DeviceRange {
    /// What is left of it without this device.
    fn without(self, open: DeviceNumber) -> Vec<DeviceRange> {
        if open.major != self.major || !(self.first..=self.last).contains(&open.minor) {
            return vec![self];
        }
        let before = (open.minor > self.first).then(|| DeviceRange { last: open.minor - 1, ..self });
        let after = (open.minor < self.last).then(|| DeviceRange { first: open.minor + 1, ..self });
        before.into_iter().chain(after).collect()
    }
}

/// The files for graphics of NVIDIA's devices at each PCI address. A host without a file system for devices,
/// or without nvidia-drm, has none.
fn graphics_files(devices: &Path) -> BTreeMap<String, BTreeSet<DeviceNumber>> {
    let folders = fs::read_dir(devices).into_iter().flatten().flatten();
    let of_nvidia = folders.filter(|folder| {
        fs::read_to_string(folder.path().join("vendor")).is_ok_and(|text| text.trim() == NVIDIA_VENDOR)
    });
    let files = of_nvidia.map(|folder| {
        let nodes = fs::read_dir(folder.path().join("drm")).into_iter().flatten().flatten();
        let numbers = nodes.filter_map(|node| number(&fs::read_to_string(node.path().join("dev")).ok()?));
        (folder.file_name().to_string_lossy().into_owned(), numbers.collect())
    });
    files.collect()
}

/// The number in a file `dev` of sysfs: `226:128`.
fn number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// The form of a PCI address in sysfs, `0000:0f:00.0`, from that of the driver, `00000000:0F:00.0`.
fn address_in_sysfs(address: &str) -> String {
    let address = address.to_ascii_lowercase();
    match address.split_once(':') {
        Some((domain, rest)) => format!("{:0>4}:{rest}", domain.trim_start_matches('0')),
        None => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> DeviceId {
        DeviceId(name.into())
    }

    fn range(major: u32, first: u32, last: u32) -> DeviceRange {
        DeviceRange { major, first, last }
    }

    /// A host with two GPUs of NVIDIA, one of which serves graphics too, and a device of another vendor.
    fn host() -> (tempfile::TempDir, GpuDeviceFiles) {
        let sysfs = tempfile::tempdir().unwrap();
        let devices = sysfs.path().join("bus/pci/devices");
        let nodes = [
            ("0000:0f:00.0", "0x10de", Some(("card1", "226:1"))),
            ("0000:0f:00.0", "0x10de", Some(("renderD129", "226:129"))),
            ("0000:1b:00.0", "0x10de", None),
            ("0000:00:02.0", "0x8086", Some(("renderD128", "226:128"))),
        ];
        for (address, vendor, node) in nodes {
            let folder = devices.join(address);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
            if let Some((name, number)) = node {
                fs::create_dir_all(folder.join("drm").join(name)).unwrap();
                fs::write(folder.join("drm").join(name).join("dev"), format!("{number}\n")).unwrap();
            }
        }
        let gpus = [("GPU-a", 0, "00000000:0F:00.0"), ("GPU-b", 1, "00000000:1B:00.0")];
        let gpus = gpus.map(|(name, minor, address)| (id(name), minor, address.to_owned()));
        let files = GpuDeviceFiles::read(gpus.into_iter(), sysfs.path());
        (sysfs, files)
    }

    #[test]
    fn a_rank_reaches_its_own_gpus_and_the_drivers_files_only() {
        let (_sysfs, files) = host();
        let graphics = [range(226, 1, 1), range(226, 129, 129)];
        let closed = |first: &[DeviceRange]| [first, &graphics].concat();
        assert_eq!(files.closed_to(&[]), closed(&[range(195, 0, 253)]));
        assert_eq!(files.closed_to(&[id("GPU-b")]), closed(&[range(195, 0, 0), range(195, 2, 253)]));
        assert_eq!(files.closed_to(&[id("GPU-a")]), [range(195, 1, 253)]);
        assert_eq!(files.closed_to(&[id("GPU-a"), id("GPU-b")]), [range(195, 2, 253)]);
    }

    #[test]
    fn a_host_without_gpus_closes_nothing() {
        assert_eq!(GpuDeviceFiles::default().closed_to(&[]), []);
    }

    #[test]
    fn addresses_of_the_driver_are_found_in_sysfs() {
        assert_eq!(address_in_sysfs("00000000:0F:00.0"), "0000:0f:00.0");
        assert_eq!(address_in_sysfs("00010000:0F:00.0"), "10000:0f:00.0");
    }
}
