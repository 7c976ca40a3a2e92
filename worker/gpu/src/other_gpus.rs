//! GPUs of this host that Cohabit cannot use, because they are not NVIDIA's.

use std::fmt;
use std::fs;
use std::path::Path;

const PCI_DEVICES: &str = "/sys/bus/pci/devices";

/// A GPU of another vendor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherGpu {
    /// `0000:03:00.0`.
    pub pci_address: String,
    /// `AMD` or `Intel`.
    pub vendor: &'static str,
}

impl fmt::Display for OtherGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} GPU at {}", self.vendor, self.pci_address)
    }
}

/// The GPUs of AMD and Intel on this host, in the order of their addresses. Blocks.
#[must_use]
pub fn other_gpus() -> Vec<OtherGpu> {
    other_gpus_in(Path::new(PCI_DEVICES))
}

fn other_gpus_in(devices: &Path) -> Vec<OtherGpu> {
    let read = |device: &Path, file: &str| fs::read_to_string(device.join(file)).unwrap_or_default();
    let gpu = |device: &Path| {
        // PCI class 03: display controllers; 12: accelerators.
        let class = read(device, "class");
        let is_gpu = class.starts_with("0x03") || class.starts_with("0x12");
        let vendor = match read(device, "vendor").trim() {
            "0x1002" => "AMD",
            "0x8086" => "Intel",
            _ => return None,
        };
        is_gpu.then_some(OtherGpu { pci_address: device.file_name()?.to_string_lossy().into_owned(), vendor })
    };
    let entries = fs::read_dir(devices).into_iter().flatten().flatten();
    let mut found: Vec<OtherGpu> = entries.filter_map(|entry| gpu(&entry.path())).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_other_vendors_are_found_and_other_devices_are_not() {
        let devices = tempfile::tempdir().unwrap();
        for (address, class, vendor) in [
            ("0000:c3:00.0", "0x038000", "0x1002"),
            ("0000:00:02.0", "0x030000", "0x8086"),
            ("0000:3b:00.0", "0x030200", "0x10de"),
            ("0000:00:1f.0", "0x060100", "0x8086"),
        ] {
            let device = devices.path().join(address);
            fs::create_dir(&device).unwrap();
            fs::write(device.join("class"), format!("{class}\n")).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
        }
        let found: Vec<String> = other_gpus_in(devices.path()).iter().map(OtherGpu::to_string).collect();
        assert_eq!(found, ["the Intel GPU at 0000:00:02.0", "the AMD GPU at 0000:c3:00.0"]);
        assert_eq!(other_gpus_in(Path::new("/no/such/folder")), []);
    }
}
