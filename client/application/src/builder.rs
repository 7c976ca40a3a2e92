//! Creates an actor in a process of its own.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use cohabit_application_core::{ActorSpec, Lifetime};
use cohabit_types::{GpuRequest, Share};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::handle::{ActorPointer, RemoteActor};
use crate::options::ActorOptions;
use crate::process::MemberProcess;
use crate::registry::ActorRegistry;
use crate::values::{EncodedValue, encode};

/// Describes an actor that is to be created. What is not set is as its attribute says.
#[must_use = "an actor is created by .start()"]
pub struct ActorBuilder<A> {
    arguments: Result<EncodedValue>,
    options: Result<ActorOptions>,
    name: Option<String>,
    lifetime: Lifetime,
    actor: PhantomData<fn() -> A>,
}

impl<A: RemoteActor> ActorBuilder<A> {
    /// An actor with these arguments of its constructor, a tuple.
    #[doc(hidden)]
    pub fn new<V: Serialize>(arguments: V) -> ActorBuilder<A> {
        let what = format!("the arguments of {}::new", A::entry().name);
        ActorBuilder {
            arguments: encode(&arguments, &what).map_err(Error::Refused),
            options: Ok(A::OPTIONS),
            name: None,
            lifetime: Lifetime::Held,
            actor: PhantomData,
        }
    }

    /// A name of 1 to 128 bytes, by which other processes of the application find it as long as it lives. Its
    /// job is named so, too.
    pub fn name(self, name: impl Into<String>) -> ActorBuilder<A> {
        ActorBuilder { name: Some(name.into()), ..self }
    }

    /// It lives until it is stopped, and the application as long as it does. It needs a name.
    pub fn detached(self) -> ActorBuilder<A> {
        ActorBuilder { lifetime: Lifetime::Detached, ..self }
    }

    /// A share of a GPU (0.5), whole GPUs (1, 2), or none (0).
    pub fn gpus(self, gpus: f64) -> ActorBuilder<A> {
        let share = GpuRequest::try_from(gpus).map_err(Error::Refused).and_then(|request| match request {
            GpuRequest::Part(Share(share)) => Ok(share),
            GpuRequest::Whole(count) => count
                .checked_mul(Share::WHOLE.0)
                .ok_or_else(|| Error::Refused(format!("{gpus} GPUs are more than any node has: claim less"))),
        });
        self.set(share, |options, share| options.gpus = share)
    }

    /// Memory on each GPU, such as `8G`.
    pub fn gpu_memory(self, memory: &str) -> ActorBuilder<A> {
        self.set(bytes(memory), |options, memory| options.gpu_memory = Some(memory))
    }

    /// Processor cores; 0 claims none.
    pub fn cpus(self, cpus: u32) -> ActorBuilder<A> {
        self.set(Ok(cpus), |options, cpus| options.cpus = cpus)
    }

    /// Host memory, such as `2G`.
    pub fn memory(self, memory: &str) -> ActorBuilder<A> {
        self.set(bytes(memory), |options, memory| options.memory = memory)
    }

    /// How often its process may be started again after it ended.
    pub fn restarts(self, restarts: u32) -> ActorBuilder<A> {
        self.set(Ok(restarts), |options, restarts| options.restarts = restarts)
    }

    /// How many `&self` methods run beside each other; 1 for one after another.
    pub fn concurrency(self, concurrency: u32) -> ActorBuilder<A> {
        self.set(Ok(concurrency), |options, concurrency| options.concurrency = concurrency)
    }

    /// It shares a GPU only where its limits are enforced.
    pub fn enforced(self) -> ActorBuilder<A> {
        self.set(Ok(true), |options, enforced| options.enforced = enforced)
    }

    /// Nobody else may use its GPU.
    pub fn exclusive(self) -> ActorBuilder<A> {
        self.set(Ok(true), |options, exclusive| options.exclusive = exclusive)
    }

    /// Creates it: returns when the application knows it. Its process starts then, and calls wait for it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it can never run, or its name is taken.
    pub async fn start(self) -> Result<A::Handle> {
        let ActorBuilder { arguments, options, name, lifetime, actor: _ } = self;
        let (arguments, options, process) = (arguments?, options?, MemberProcess::current()?);
        options.check().map_err(Error::Refused)?;
        let mut spec = ActorSpec {
            kind: ActorRegistry::get().kind_of(A::entry()),
            name,
            lifetime,
            restarts: 0,
            concurrency: 1,
            gpus: Share(0),
            claims: Bytes::new(),
            carries: arguments.carries(),
            arguments: arguments.bytes,
        };
        options.describe(&mut spec);
        let hold = process.create(spec, arguments.holds).await?;
        Ok(A::handle(ActorPointer::new(hold)))
    }

    fn set<V>(mut self, value: Result<V>, set: impl FnOnce(&mut ActorOptions, V)) -> ActorBuilder<A> {
        match (&mut self.options, value) {
            (Ok(options), Ok(value)) => set(options, value),
            (Ok(_), Err(error)) => self.options = Err(error),
            (Err(_), _) => {}
        }
        self
    }
}

fn bytes(text: &str) -> Result<u64> {
    text.parse::<cohabit_types::Bytes>()
        .map(|bytes| bytes.0)
        .map_err(|error| Error::Refused(error.to_string()))
}

impl<A> fmt::Debug for ActorBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
