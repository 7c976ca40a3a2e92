//! The choice of one GPU among those that a job fits.

use cohabit_types::Span;

use super::free_device::FreeDevice;
use super::jobs::Jobs;
use crate::interference::InterferenceContext;
use crate::placement::Outlooks;
use crate::{PendingJob, Shortage, ViewChange};

/// Chooses one of the devices that a job fits.
pub(crate) trait DeviceChooser: Send {
    /// The device for the newcomer; `devices` holds at least one.
    ///
    /// # Errors
    /// Why the job should rather wait.
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        devices: &[FreeDevice<'_>],
        jobs: &mut Jobs,
        outlooks: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage>;

    /// Jobs changed.
    fn learn(&mut self, changes: &[ViewChange]) {
        let _ = changes;
    }

    /// Whether the last choice would be the same if it were made again at once.
    fn is_settled(&self) -> bool {
        true
    }

    /// How many jobs wait for each device.
    fn set_backlog(&mut self, jobs_per_device: f64) {
        let _ = jobs_per_device;
    }

    /// Uses this knowledge of interference from now on, if it uses any.
    fn set_interference(&mut self, context: &InterferenceContext) {
        let _ = context;
    }
}

/// One of the devices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeviceChoice {
    /// Its index in the list of free devices.
    pub(crate) device: usize,
    /// The expected slowdown of the newcomer there, as a factor of at least 1; `None` where nothing
    /// predicted it.
    pub(crate) slowdown: Option<f64>,
    /// How much later the newcomer and its neighbors are done, in sum, than if it had a device of its own at
    /// once.
    pub(crate) delay: Span,
    /// For the job's history; may be empty.
    pub(crate) why: String,
}

impl DeviceChoice {
    /// A device about which nothing more is known.
    pub(crate) const fn new(device: usize) -> DeviceChoice {
        DeviceChoice { device, slowdown: None, delay: Span::ZERO, why: String::new() }
    }
}
