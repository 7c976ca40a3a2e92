//! Critical errors (Xid) that the driver reports.
//!
//! Each GPU is listened to on a thread of its own: when its event comes, a GPU that fell off the bus may not
//! say any more which one it is.

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

use super::GpuError;
use super::discovery::GpuLabel;
use super::trouble::{is_unknown_here, trouble};

/// The driver cannot be interrupted while it waits, so it waits no longer than this.
const WAIT_SLICE: Duration = Duration::from_millis(250);
/// The driver's own number for an error that it does not know.
const UNKNOWN: u64 = 999;

/// A critical error that the driver reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// Of which GPU.
    pub device: DeviceId,
    /// Its number.
    pub code: u64,
}

/// Waits for critical errors, until the library that it came from is closed.
#[derive(Debug)]
pub struct XidWatch {
    heard: Receiver<Result<Xid, GpuError>>,
    stop: StopFlag,
}

/// Tells listeners to end.
#[derive(Debug, Default, Clone)]
struct StopFlag(Arc<AtomicBool>);

/// Those who listen for one watch; they end when this is dropped.
pub(super) struct Listeners {
    stop: StopFlag,
    threads: Vec<JoinHandle<()>>,
}

/// One GPU to listen to.
struct Listener {
    nvml: Arc<Nvml>,
    index: u32,
    device: DeviceId,
    stop: StopFlag,
    heard: Sender<Result<Xid, GpuError>>,
}

impl XidWatch {
    /// The next error, if one comes in this time.
    ///
    /// # Errors
    /// When a GPU is not listened to any more: [`GpuError::Lost`] if it is lost. Others may still be heard.
    /// Without any, and once the library is closed, each call is [`GpuError::Closed`] at once.
    pub fn next(&self, patience: Duration) -> Result<Option<Xid>, GpuError> {
        match self.heard.recv_timeout(patience) {
            Ok(heard) => heard.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(GpuError::Closed("no GPU is listened to any more: open the library anew".into()))
            }
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
            // A listener that panicked has nothing more to say.
            _ = thread.join();
        }
    }
}

/// Begins to listen to all GPUs that have such events. One that does not answer keeps no other from being
/// heard.
pub(super) fn listen(nvml: &Arc<Nvml>) -> Result<(XidWatch, Listeners), GpuError> {
    let (sender, heard) = channel();
    let mut listeners = Listeners { stop: StopFlag::default(), threads: Vec::new() };
    let mut why_not = GpuError::Other("no GPU reports critical errors".into());
    for index in 0..nvml.device_count().map_err(|error| trouble(&"the NVIDIA driver", &error))? {
        let device = match can_be_heard(nvml, index) {
            Ok(Some(device)) => device,
            Ok(None) => continue,
            Err(error) => {
                why_not = trouble(&GpuLabel { index, id: None }, &error);
                continue;
            }
        };
        let (nvml, stop, heard) = (Arc::clone(nvml), listeners.stop.clone(), sender.clone());
        let listener = Listener { nvml, index, device, stop, heard };
        let thread = thread::Builder::new()
            .name(format!("xid-{index}"))
            .spawn(move || listener.run())
            .map_err(|error| GpuError::Other(format!("no thread to listen to GPU {index} ({error})")))?;
        listeners.threads.push(thread);
    }
    if listeners.threads.is_empty() {
        return Err(why_not);
    }
    Ok((XidWatch { heard, stop: listeners.stop.clone() }, listeners))
}

/// Which GPU this is, if it has such events.
fn can_be_heard(nvml: &Nvml, index: u32) -> Result<Option<DeviceId>, NvmlError> {
    // A set of events panics when it goes if the library cannot free it.
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
        let Listener { nvml, index, device, stop, heard } = self;
        let end = |error: NvmlError| {
            // Nobody may be there to hear it.
            _ = heard.send(Err(trouble(&GpuLabel { index, id: Some(&device) }, &error)));
        };
        let events = match events(&nvml, &device) {
            Ok(events) => events,
            Err(error) => return end(error),
        };
        while !stop.0.load(Ordering::Relaxed) {
            match wait(&events) {
                Ok(None) => {}
                Ok(Some(code)) => _ = heard.send(Ok(Xid { device: device.clone(), code })),
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

/// The number of the next error, if one comes soon.
fn wait(events: &EventSet<'_>) -> Result<Option<u64>, NvmlError> {
    let breath = u32::try_from(WAIT_SLICE.as_millis()).unwrap_or(u32::MAX);
    match events.wait(breath) {
        Ok(event) => Ok(event.event_data.map(|xid| match xid {
            XidError::Value(code) => code,
            XidError::Unknown => UNKNOWN,
        })),
        Err(NvmlError::Timeout) => Ok(None),
        Err(error) => Err(error),
    }
}
