//! The thread that owns the library and answers one request after the other.
//!
//! Samples of the performance monitor are kept from scan to scan and borrow the library, so both live on one
//! thread. The thread also protects callers from a driver that hangs, even while its library is opened: they
//! wait for a limited time.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use cohabit_types::{Device, DeviceId};
use nvml_wrapper::Nvml;

use super::error::GpuError;
use super::library::GpusUnavailable;
use super::performance::Performance;
use super::scan::{GpuScan, scan};
use super::xid::{Listeners, XidWatch, listen};
use super::{discovery, library};
use crate::device_files::GpuDeviceFiles;

/// A driver that has not answered by then hangs. The first scan of a GPU may take seconds where nothing keeps
/// the driver initialised.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long closing waits for a request that is being answered.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Access to all GPUs of this host.
///
/// Dropping it closes the library, so that the next session sees the GPUs as they are then.
#[derive(Debug)]
pub struct NvmlSession {
    session: Sender<DriverRequest>,
}

/// A request, and the channel for its answer.
enum DriverRequest {
    Devices(Sender<Vec<Result<Device, GpuError>>>),
    DeviceFiles(Sender<Result<GpuDeviceFiles, GpuError>>),
    GpuScan(DeviceId, Sender<Result<GpuScan, GpuError>>),
    PersistenceMode(DeviceId, Sender<Option<bool>>),
    Xids(Sender<Result<XidWatch, GpuError>>),
    /// Dropped once the library is closed.
    Close(Sender<()>),
}

impl NvmlSession {
    /// Opens this library, or the one with the default name.
    ///
    /// # Errors
    /// Why no GPU is available, and what to do.
    pub fn open(library: Option<&Path>) -> Result<NvmlSession, GpusUnavailable> {
        let ((session, requests), (opener, opened)) = (channel(), channel());
        let library = library.map(Path::to_owned);
        let work = move || match library::open(library.as_deref()) {
            Ok(nvml) => {
                // A caller that gave up waiting sends no request, so the library is closed again.
                _ = opener.send(Ok(()));
                drop(serve(Arc::new(nvml), &requests));
            }
            Err(refusal) => _ = opener.send(Err(refusal)),
        };
        let started = thread::Builder::new().name("nvml".into()).spawn(work);
        started.map_err(|why| GpusUnavailable::NoThread { why })?;
        match opened.recv_timeout(ANSWER_TIMEOUT) {
            Ok(opened) => opened.map(|()| NvmlSession { session }),
            Err(RecvTimeoutError::Timeout) => Err(GpusUnavailable::Silent { waited: ANSWER_TIMEOUT }),
            Err(RecvTimeoutError::Disconnected) => {
                Err(GpusUnavailable::Failed { why: "its library failed while it was opened".into() })
            }
        }
    }

    /// All GPUs with their properties and condition, which says how each can be shared. An error for each GPU
    /// that cannot be queried.
    #[must_use]
    pub fn devices(&self) -> Vec<Result<Device, GpuError>> {
        self.ask(DriverRequest::Devices).unwrap_or_else(|error| vec![Err(error)])
    }

    /// The device files of all GPUs that answer.
    ///
    /// # Errors
    /// When the driver does not say which files are those of a GPU.
    pub fn device_files(&self) -> Result<GpuDeviceFiles, GpuError> {
        self.ask(DriverRequest::DeviceFiles).flatten()
    }

    /// Scans a GPU. Averages cover the time since the last scan.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn scan(&self, device: &DeviceId) -> Result<GpuScan, GpuError> {
        self.ask(|answer| DriverRequest::GpuScan(device.clone(), answer)).flatten()
    }

    /// Whether the driver keeps this GPU initialised while no program uses it; `None` where it does not say.
    #[must_use]
    pub fn persistence_mode(&self, device: &DeviceId) -> Option<bool> {
        self.ask(|answer| DriverRequest::PersistenceMode(device.clone(), answer)).ok().flatten()
    }

    /// Starts listening for critical errors of all GPUs.
    ///
    /// # Errors
    /// When the driver has no such events.
    pub fn xids(&self) -> Result<XidWatch, GpuError> {
        self.ask(DriverRequest::Xids).flatten()
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> DriverRequest) -> Result<T, GpuError> {
        let (answer, answered) = channel();
        // If the thread is gone, the answer channel is closed too.
        _ = self.session.send(request(answer));
        answered.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let limit = ANSWER_TIMEOUT.as_secs();
                GpuError::Other(format!(
                    "the NVIDIA driver did not answer within {limit} s: look for NVRM errors in dmesg"
                ))
            }
            RecvTimeoutError::Disconnected => GpuError::Closed("NVIDIA's library failed: reopen it".into()),
        })
    }
}

impl Drop for NvmlSession {
    fn drop(&mut self) {
        let (closed, closing) = channel();
        _ = self.session.send(DriverRequest::Close(closed));
        // A driver that hangs keeps its library open; nothing can be done about that.
        _ = closing.recv_timeout(CLOSE_TIMEOUT);
    }
}

/// Answers requests until the library is to be closed, and closes it. Dropping the result tells the closing
/// session so.
fn serve(nvml: Arc<Nvml>, requests: &Receiver<DriverRequest>) -> Option<Sender<()>> {
    let mut performance = Performance::new(&nvml);
    let mut listeners: Vec<Listeners> = Vec::new();
    for request in requests {
        // A caller that gave up waiting does not receive the answer.
        match request {
            DriverRequest::Devices(answer) => _ = answer.send(discovery::devices(&nvml)),
            DriverRequest::DeviceFiles(answer) => _ = answer.send(discovery::device_files(&nvml)),
            DriverRequest::PersistenceMode(device, answer) => {
                let gpu = nvml.device_by_uuid(device.as_str());
                _ = answer.send(gpu.and_then(|gpu| gpu.is_in_persistent_mode()).ok());
            }
            DriverRequest::GpuScan(device, answer) => _ = answer.send(scan(&nvml, &device, &mut performance)),
            DriverRequest::Xids(answer) => {
                let listening = listen(&nvml).map(|(watch, new)| {
                    listeners.push(new);
                    watch
                });
                _ = answer.send(listening);
            }
            DriverRequest::Close(closed) => return Some(closed),
        }
    }
    None
}
