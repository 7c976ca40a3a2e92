//! The convention of traffic: who sends whom how many bytes in one iteration, how fast, and what that takes.
//!
//! The mapper, CLWP/NLWP and, through the mapper, the simulator and the lab share it. Traffic is directed.
//! Links are full duplex, so a device sends and receives at the same time, and the slower of the two counts.
//! A pipeline edge carries activations forward and as many bytes of gradients back. A link of a ring carries
//! bytes one way only: the device that sends over the network may receive from its own server, and then full
//! duplex saves it nothing.

/// Bytes that one vertex of a job's graph sends another in one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Flow {
    /// The vertex that sends.
    pub(crate) from: u32,
    /// The vertex that receives.
    pub(crate) to: u32,
    pub(crate) bytes: f64,
}

/// An amount for each direction, in bytes or in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Directions {
    pub(crate) sent: f64,
    pub(crate) received: f64,
}

impl Directions {
    /// The larger of the two: seconds until both are done, because they run at the same time.
    pub(crate) const fn larger(self) -> f64 {
        self.sent.max(self.received)
    }
}

/// The bandwidths of one device, in bytes per second each way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkRates {
    /// Its equal part of its server's network card.
    pub(crate) share: f64,
    /// To the other devices of its server.
    pub(crate) interconnect: f64,
}

impl LinkRates {
    /// Those of a device on a server with this network card, number of devices and interconnect. A bandwidth
    /// that is not a positive number carries nothing.
    pub(crate) fn of(network: f64, devices: u32, interconnect: f64) -> LinkRates {
        let rate = |bytes_per_second: f64| if bytes_per_second > 0.0 { bytes_per_second } else { 0.0 };
        LinkRates { share: rate(network) / f64::from(devices.max(1)), interconnect: rate(interconnect) }
    }

    /// To a device of another server: bytes that leave pass the interconnect too.
    pub(crate) const fn outside(self) -> f64 {
        self.share.min(self.interconnect)
    }
}

/// Seconds to send bytes at this rate; no bytes take no time, even without a link.
pub(crate) fn transfer_seconds(bytes: f64, rate: f64) -> f64 {
    if bytes > 0.0 { bytes / rate } else { 0.0 }
}
