//! What the handle of an actor wraps: calls, and its way through arguments and values.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cohabit_application_core::{ActorId, CallRequest, HeldId, MethodAccess, OnRestart};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::Call;
use crate::call_state::{PreparedCall, PreparedTarget};
use crate::error::{Error, Result};
use crate::instance::RegisteredActor;
use crate::options::ActorOptions;
use crate::process::{Hold, MemberProcess};
use crate::registry::ActorRegistry;
use crate::values::{EncodedArguments, encode_arguments, note};

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
    hold: Arc<Hold>,
    id: ActorId,
    kind: u32,
    first_method: u32,
    actor: PhantomData<fn() -> A>,
}

impl<A: RemoteActor> ActorPointer<A> {
    pub(crate) fn new(hold: Arc<Hold>, id: ActorId) -> ActorPointer<A> {
        let registry = ActorRegistry::get();
        let kind = registry.kind_of(A::entry());
        ActorPointer { hold, id, kind, first_method: registry.first_method(kind), actor: PhantomData }
    }

    /// That of an actor of which the process holds one handle.
    pub(crate) fn held(process: &Arc<MemberProcess>, id: ActorId) -> ActorPointer<A> {
        ActorPointer::new(Hold::held_already(process, HeldId::Actor(id)), id)
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
        let encoded = encode_arguments(&arguments, what).map_err(Error::Refused);
        let prepared = encoded.map(|EncodedArguments { value, needs }| {
            let method = self.first_method + index;
            let request = CallRequest { method, access, on_restart, arguments: value.bytes, needs };
            let target = PreparedTarget::Method { hold: Arc::clone(&self.hold), actor: self.id, request };
            PreparedCall { target, holds: value.holds }
        });
        Call::new(prepared)
    }

    /// Stops the actor, and waits for the end of its process.
    ///
    /// # Errors
    /// If this process ends first.
    pub async fn stop(&self) -> Result<()> {
        self.hold.process().stop(self.id).await
    }
}

/// The live actor with this name.
///
/// # Errors
/// [`Error::NotFound`] if there is none.
pub async fn find<A: RemoteActor>(name: &str) -> Result<A::Handle> {
    let process = MemberProcess::current()?;
    let actor = process.find(name).await?;
    Ok(A::handle(ActorPointer::held(process, actor)))
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
        (self.kind, self.id).serialize(serializer)
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
        let hold = Hold::one_more(process, HeldId::Actor(actor)).ok_or_else(|| {
            D::Error::custom(format!(
                "this process holds no handle of actor {actor}: handles cannot be stored"
            ))
        })?;
        Ok(ActorPointer::new(hold, actor))
    }
}
