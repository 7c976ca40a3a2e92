//! Creates an actor in a process of its own.

use std::fmt;
use std::marker::PhantomData;

use cohabit_application_core::{ActorSpec, Lifetime};
use serde::Serialize;

use crate::claim_setters::claim_setters;
use crate::described_actor::{DescribedActor, create_actors};
use crate::error::{Error, Result};
use crate::handle::{ActorPointer, RemoteActor};
use crate::options::{ActorOptions, Claims};
use crate::process::MemberProcess;
use crate::registry::ActorRegistry;
use crate::values::{EncodedArguments, encode_arguments};

/// Describes an actor that is to be created. What is not set is as its attribute says.
#[must_use = "an actor is created by .start()"]
pub struct ActorBuilder<A> {
    arguments: Result<EncodedArguments>,
    options: Result<ActorOptions>,
    name: Option<String>,
    lifetime: Lifetime,
    actor: PhantomData<fn() -> A>,
}

impl<A: RemoteActor> ActorBuilder<A> {
    /// An actor with these arguments of its constructor, a tuple.
    #[doc(hidden)]
    pub fn new<V: Serialize>(arguments: V) -> ActorBuilder<A> {
        let what = || format!("the arguments of {}::new", A::entry().origin.name);
        ActorBuilder {
            arguments: encode_arguments(&arguments, what).map_err(Error::Refused),
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

    /// How often its process may be started again after it ended.
    pub fn restarts(self, restarts: u32) -> ActorBuilder<A> {
        self.set(Ok(restarts), |options, restarts| options.restarts = restarts)
    }

    /// How many `&self` methods run beside each other; 1 for one after another.
    pub fn concurrency(self, concurrency: u32) -> ActorBuilder<A> {
        self.set(Ok(concurrency), |options, concurrency| options.concurrency = concurrency)
    }

    claim_setters!();

    /// Creates it: waits until the values of references in its arguments are known, and returns when the
    /// application knows it. Its process starts then, and calls wait for it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it can never run, or its name is taken; [`Error::Dependency`] if the call of a
    /// reference in its arguments failed.
    pub async fn start(self) -> Result<A::Handle> {
        let process = MemberProcess::current()?;
        let described = self.describe()?;
        let (lifetime, options) = (described.lifetime, described.options);
        let actors = create_actors(process, lifetime, &options, vec![described]).await?;
        Ok(A::handle(ActorPointer::held(process, actors[0])))
    }

    pub(crate) fn describe(self) -> Result<DescribedActor> {
        let ActorBuilder { arguments, options, name, lifetime, actor: _ } = self;
        let (EncodedArguments { value, needs }, options) = (arguments?, options?);
        let spec = ActorSpec {
            kind: ActorRegistry::get().kind_of(A::entry()),
            name,
            concurrency: options.concurrency,
            arguments: value.bytes,
            needs,
        };
        Ok(DescribedActor { spec, options, lifetime, holds: value.holds })
    }

    fn claim<V>(self, value: Result<V>, set: impl FnOnce(&mut Claims, V)) -> ActorBuilder<A> {
        self.set(value, |options, value| set(&mut options.claims, value))
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

impl<A> fmt::Debug for ActorBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
