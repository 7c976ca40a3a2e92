//! Servers as the mapper sees them, and the parts of them that a job gets.
//!
//! Only what the cost of an iteration depends on: how many devices, how fast they compute and communicate.
//! Which devices are meant is decided when a mapping becomes a placement.

use std::sync::Arc;

use super::traffic::LinkRates;

/// A server as the mapper sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Devices that no job uses.
    pub free: u32,
    /// All its devices.
    pub devices: u32,
    /// Bandwidth of its whole network card, in bytes per second each way.
    pub network: f64,
    /// Bandwidth of one device to the others of the server, in bytes per second each way.
    pub interconnect: f64,
    /// The model of its devices.
    pub model: Arc<str>,
}

/// Devices of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The server's index in the list.
    pub(crate) server: usize,
    /// How many of its devices.
    pub(crate) count: u32,
}

/// Everything that distinguishes a device for the mapper: on devices of one class, an iteration costs the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeviceClass {
    /// The bits of a non-negative number, whose order is that of the numbers.
    share: u64,
    interconnect: u64,
    pub(super) model: Arc<str>,
}

impl DeviceClass {
    pub(super) fn of(server: &Server) -> DeviceClass {
        let rates = LinkRates::of(server.network, server.devices, server.interconnect);
        DeviceClass {
            share: rates.share.to_bits(),
            interconnect: rates.interconnect.to_bits(),
            model: server.model.clone(),
        }
    }

    pub(super) const fn rates(&self) -> LinkRates {
        LinkRates { share: f64::from_bits(self.share), interconnect: f64::from_bits(self.interconnect) }
    }
}

/// Whether two servers are of one class; cheaper than to make their classes.
pub(super) fn alike(one: &Server, other: &Server) -> bool {
    one.devices == other.devices
        && one.network.to_bits() == other.network.to_bits()
        && one.interconnect.to_bits() == other.interconnect.to_bits()
        && same_model(&one.model, &other.model)
}

/// Whether two names are equal; servers mostly share one string.
pub(super) fn same_model(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}
