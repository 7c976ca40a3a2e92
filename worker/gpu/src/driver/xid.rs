//! Critical errors (Xid) that the driver reports.
//!
//! Each GPU has a listener thread of its own: when an event arrives, a GPU that fell off the bus may not be
//! able to tell its UUID any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cohabit_types::DeviceId;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{EventSet, Nvml};

use super::discovery::GpuLabel;
use super::error::GpuError;
use super::error::{gpu_error, is_unknown_here};

/// A wait in the driver cannot be interrupted, so each wait is this short.
const WAIT_SLICE: Duration = Duration::from_millis(250);
/// The driver's own code for an unknown error.
const UNKNOWN: u64 = 999;

/// A critical error that the driver reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// The GPU.
    pub device: DeviceId,
    /// The Xid code.
    pub code: u64,
}

/// Receives critical errors until the library that it came from is closed.
#[derive(Debug)]
pub struct XidWatch {
    errors: Receiver<Result<Xid, GpuError>>,
    stop: StopFlag,
}

/// Tells listeners to end.
#[derive(Debug, Default, Clone)]
struct StopFlag(Arc<AtomicBool>);

/// The listener threads of one watch. They end when this is dropped.
pub(super) struct Listeners {
    stop: StopFlag,
    threads: Vec<JoinHandle<()>>,
}

/// The listener of one GPU.
struct Listener {
    nvml: Arc<Nvml>,
    index: u32,
    device: DeviceId,
    stop: StopFlag,
    errors: Sender<Result<Xid, GpuError>>,
}

impl XidWatch {
    /// The next error, if one arrives within `timeout`.
    ///
    /// # Errors
    /// When the listener of a GPU has ended: [`GpuError::Lost`] if the GPU is lost. Listeners of other GPUs
    /// go on. When no listener is left, or the library is closed, each call returns [`GpuError::Closed`] at
    /// once.
    pub fn next(&self, timeout: Duration) -> Result<Option<Xid>, GpuError> {
        match self.errors.recv_timeout(timeout) {
            Ok(error) => error.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(GpuError::Closed(
                "critical errors of GPUs are no longer received: reopen the library".into(),
            )),
        }
    }
}

impl Drop for XidWatch {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A listener that panicked has ended, too.
            _ = thread.join();
        }
    }
}

/// Starts a listener for each GPU that has such events. A GPU that does not answer does not prevent listening
/// to the others.
pub(super) fn listen(nvml: &Arc<Nvml>) -> Result<(XidWatch, Listeners), GpuError> {
    let (sender, errors) = channel();
    let mut listeners = Listeners { stop: StopFlag::default(), threads: Vec::new() };
    let mut why_not = GpuError::Other("no GPU reports critical errors".into());
    for index in 0..nvml.device_count().map_err(|error| gpu_error(&"the NVIDIA driver", &error))? {
        let device = match listenable_device(nvml, index) {
            Ok(Some(device)) => device,
            Ok(None) => continue,
            Err(error) => {
                why_not = gpu_error(&GpuLabel { index, id: None }, &error);
                continue;
            }
        };
        let (nvml, stop, errors) = (Arc::clone(nvml), listeners.stop.clone(), sender.clone());
        let listener = Listener { nvml, index, device, stop, errors };
        let thread = thread::Builder::new()
            .name(format!("xid-{index}"))
            .spawn(move || listener.run())
            .map_err(|error| {
                GpuError::Other(format!("no thread can be started to listen to GPU {index} ({error})"))
            })?;
        listeners.threads.push(thread);
    }
    if listeners.threads.is_empty() {
        return Err(why_not);
    }
    Ok((XidWatch { errors, stop: listeners.stop.clone() }, listeners))
}

/// The id of this GPU, if it has such events.
fn listenable_device(nvml: &Nvml, index: u32) -> Result<Option<DeviceId>, NvmlError> {
    // The destructor of an event set panics if the library lacks this function.
    if nvml.lib().nvmlEventSetFree.is_err() {
        return Ok(None);
    }
    let gpu = nvml.device_by_index(index)?;
    match gpu.supported_event_types() {
        Ok(events) if events.contains(EventTypes::CRITICAL_XID_ERROR) => {
            Ok(Some(DeviceId(gpu.uuid()?.into())))
        }
        Ok(_) => Ok(None),
        Err(error) if is_unknown_here(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Listener {
    fn run(self) {
        let Listener { nvml, index, device, stop, errors } = self;
        let end = |error: NvmlError| {
            // The watch may have been dropped.
            _ = errors.send(Err(gpu_error(&GpuLabel { index, id: Some(&device) }, &error)));
        };
        let events = match events(&nvml, &device) {
            Ok(events) => events,
            Err(error) => return end(error),
        };
        while !stop.0.load(Ordering::Relaxed) {
            match wait(&events) {
                Ok(None) => {}
                Ok(Some(code)) => _ = errors.send(Ok(Xid { device: device.clone(), code })),
                Err(error) => return end(error),
            }
        }
    }
}

fn events<'nvml>(nvml: &'nvml Nvml, device: &DeviceId) -> Result<EventSet<'nvml>, NvmlError> {
    let gpu = nvml.device_by_uuid(device.as_str())?;
    let events = nvml.create_event_set()?;
    gpu.register_events(EventTypes::CRITICAL_XID_ERROR, events).map_err(|error| error.error)
}

/// The code of the next error, if one arrives soon.
fn wait(events: &EventSet<'_>) -> Result<Option<u64>, NvmlError> {
    let millis = u32::try_from(WAIT_SLICE.as_millis()).unwrap_or(u32::MAX);
    match events.wait(millis) {
        Ok(event) => Ok(event.event_data.map(|xid| match xid {
            XidError::Value(code) => code,
            XidError::Unknown => UNKNOWN,
        })),
        Err(NvmlError::Timeout) => Ok(None),
        Err(error) => Err(error),
    }
}
