//! The thread that owns the library and answers one question after the other.
//!
//! Samples of the performance monitor are kept from look to look and borrow the library, so both live on one
//! thread. That also keeps a driver that hangs, even when its library is opened, from taking its callers
//! along: they wait for a limited time.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use cohabit_types::{Device, DeviceId};
use nvml_wrapper::Nvml;

use super::look::{GpuScan, look};
use super::performance::Performance;
use super::xid::{Listeners, XidWatch, listen};
use super::{GpuError, NoGpus, discovery, library};

/// A driver that answers later than this hangs: the first look at a GPU may take seconds, where nothing keeps
/// the driver awake.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for the end of what still goes on in the library when it is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// All GPUs of this machine.
///
/// Dropping it closes the library, so that the next one that is opened sees the GPUs as they are then.
#[derive(Debug)]
pub struct NvmlSession {
    session: Sender<DriverRequest>,
}

/// A question, and where the answer goes.
enum DriverRequest {
    Devices(Sender<Vec<Result<Device, GpuError>>>),
    GpuScan(DeviceId, Sender<Result<GpuScan, GpuError>>),
    Xids(Sender<Result<XidWatch, GpuError>>),
    /// Dropped once the library is closed.
    Close(Sender<()>),
}

impl NvmlSession {
    /// Opens the library: this one, or the one by its usual name.
    ///
    /// # Errors
    /// Why there is no GPU to speak of, and what to do about it.
    pub fn open(library: Option<&Path>) -> Result<NvmlSession, NoGpus> {
        let ((session, questions), (opener, opened)) = (channel(), channel());
        let library = library.map(Path::to_owned);
        let work = move || match library::open(library.as_deref()) {
            Ok(nvml) => {
                // Who gave up waiting asks nothing, and the library is closed again.
                _ = opener.send(Ok(()));
                drop(serve(Arc::new(nvml), &questions));
            }
            Err(refusal) => _ = opener.send(Err(refusal)),
        };
        let started = thread::Builder::new().name("nvml".into()).spawn(work);
        started.map_err(|why| NoGpus::NoThread { why })?;
        match opened.recv_timeout(ANSWER_TIMEOUT) {
            Ok(opened) => opened.map(|()| NvmlSession { session }),
            Err(RecvTimeoutError::Timeout) => Err(NoGpus::Silent { waited: ANSWER_TIMEOUT }),
            Err(RecvTimeoutError::Disconnected) => {
                Err(NoGpus::Failed { why: "its library failed when it was opened".into() })
            }
        }
    }

    /// All GPUs that say what they are, with their condition: `sharing` as MPS may be used on each (`mps`).
    #[must_use]
    pub fn devices(&self) -> Vec<Result<Device, GpuError>> {
        self.ask(DriverRequest::Devices).unwrap_or_else(|error| vec![Err(error)])
    }

    /// Looks at a GPU. Means over time begin with the last look.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn look(&self, device: &DeviceId) -> Result<GpuScan, GpuError> {
        self.ask(|answer| DriverRequest::GpuScan(device.clone(), answer)).flatten()
    }

    /// Begins to listen for critical errors of all GPUs.
    ///
    /// # Errors
    /// Where the driver has no such events.
    pub fn xids(&self) -> Result<XidWatch, GpuError> {
        self.ask(DriverRequest::Xids).flatten()
    }

    fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> DriverRequest) -> Result<T, GpuError> {
        let (answer, answered) = channel();
        // If the session is gone, so is the place for the answer.
        _ = self.session.send(question(answer));
        answered.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let limit = ANSWER_TIMEOUT.as_secs();
                GpuError::Other(format!(
                    "the NVIDIA driver did not answer within {limit} s: look at dmesg for NVRM errors"
                ))
            }
            RecvTimeoutError::Disconnected => {
                GpuError::Closed("NVIDIA's library failed in use: open it anew".into())
            }
        })
    }
}

impl Drop for NvmlSession {
    fn drop(&mut self) {
        let (closed, closing) = channel();
        _ = self.session.send(DriverRequest::Close(closed));
        // A driver that hangs keeps its library; nothing can be done about that.
        _ = closing.recv_timeout(CLOSE_TIMEOUT);
    }
}

/// Answers until the library is to be closed. When this returns, it is; the result says so to whoever waits
/// for it.
fn serve(nvml: Arc<Nvml>, questions: &Receiver<DriverRequest>) -> Option<Sender<()>> {
    let mut performance = Performance::new(&nvml);
    let mut listeners: Vec<Listeners> = Vec::new();
    for question in questions {
        // Who gave up waiting does not hear the answer.
        match question {
            DriverRequest::Devices(answer) => _ = answer.send(discovery::devices(&nvml)),
            DriverRequest::GpuScan(device, answer) => _ = answer.send(look(&nvml, &device, &mut performance)),
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
