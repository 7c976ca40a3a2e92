//! The name of a GPU in findings.

use cohabit_client::types::Device;

/// Model and id: the GPUs of a machine are often of one model.
pub(super) fn device_name(device: &Device) -> String {
    format!("{} {}", device.model, device.id)
}
