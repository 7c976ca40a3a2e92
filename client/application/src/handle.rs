//! What the handle of an actor wraps: calls, and its way through arguments and values.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cohabit_application_core::{ActorId, CallRequest, MethodAccess, OnRestart};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::Call;
use crate::call_state::{PreparedCall, PreparedTarget};
use crate::error::{Error, Result};
use crate::instance::RegisteredActor;
use crate::options::ActorOptions;
use crate::process::{ActorHold, MemberProcess};
use crate::registry::ActorRegistry;
use crate::values::{encode, note};

/// A type with `#[cohabit::actor]`.
pub trait RemoteActor: Sized + 'static {
    /// Its handle.
    type Handle;
    /// What its attribute says.
    const OPTIONS: ActorOptions;
    /// Its functions.
    fn entry() -> &'static RegisteredActor;
    /// A handle.
    fn handle(actor: ActorPointer<Self>) -> Self::Handle;
}

/// The handle of an actor, before it has the methods of its type.
pub struct ActorPointer<A> {
    hold: Arc<ActorHold>,
    kind: u32,
    first_method: u32,
    actor: PhantomData<fn() -> A>,
}

impl<A: RemoteActor> ActorPointer<A> {
    pub(crate) fn new(hold: Arc<ActorHold>) -> ActorPointer<A> {
        let registry = ActorRegistry::get();
        let kind = registry.kind_of(A::entry());
        ActorPointer { hold, kind, first_method: registry.first_method(kind), actor: PhantomData }
    }

    /// A call of the method with this index in its impl block.
    pub fn call<T, V: Serialize>(
        &self,
        index: u32,
        access: MethodAccess,
        on_restart: OnRestart,
        arguments: V,
    ) -> Call<T> {
        let what = || {
            let entry = A::entry();
            let method = entry.methods.get(index as usize).map_or("?", |method| method.name);
            format!("the arguments of {}::{method}", entry.origin.name)
        };
        let prepared = encode(&arguments, what).map_err(Error::Refused).map(|encoded| {
            let (method, carries) = (self.first_method + index, encoded.carries());
            let request = CallRequest { method, access, on_restart, arguments: encoded.bytes, carries };
            let target = PreparedTarget::Method { actor: Arc::clone(&self.hold), request };
            PreparedCall { target, holds: encoded.holds }
        });
        Call::new(prepared)
    }

    /// Stops the actor, and waits for the end of its process.
    ///
    /// # Errors
    /// If this process ends first.
    pub async fn stop(&self) -> Result<()> {
        self.hold.process().stop(self.hold.actor()).await
    }
}

/// The live actor with this name.
///
/// # Errors
/// [`Error::NotFound`] if there is none.
pub async fn find<A: RemoteActor>(name: &str) -> Result<A::Handle> {
    let hold = MemberProcess::current()?.find(name).await?;
    Ok(A::handle(ActorPointer::new(hold)))
}

impl<A> Clone for ActorPointer<A> {
    fn clone(&self) -> ActorPointer<A> {
        ActorPointer { hold: Arc::clone(&self.hold), actor: PhantomData, ..*self }
    }
}

impl<A> fmt::Debug for ActorPointer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hold.fmt(f)
    }
}

impl<A> Serialize for ActorPointer<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        note(&self.hold).map_err(S::Error::custom)?;
        (self.kind, self.hold.actor()).serialize(serializer)
    }
}

impl<'de, A: RemoteActor> Deserialize<'de> for ActorPointer<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ActorPointer<A>, D::Error> {
        let (kind, actor) = <(u32, ActorId)>::deserialize(deserializer)?;
        let registry = ActorRegistry::get();
        if registry.kind_of(A::entry()) != kind {
            let text = format!("this is no handle of an actor {}", A::entry().origin.name);
            return Err(D::Error::custom(text));
        }
        let process = MemberProcess::current().map_err(D::Error::custom)?;
        let hold = ActorHold::one_more(process, actor).ok_or_else(|| {
            D::Error::custom(format!(
                "this process holds no handle of actor {actor}: handles cannot be stored"
            ))
        })?;
        Ok(ActorPointer::new(hold))
    }
}
