//! An actor in its process, whatever its type, and the code that the attribute writes for it.

use std::any::Any;
use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use cohabit_application_core::CallError;
use futures::future::LocalBoxFuture;

use crate::arguments::CallArguments;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::origin::{Origin, Registered};
use crate::returned::CallFuture;

/// The functions of an actor, as `#[cohabit::actor]` writes them.
pub struct RegisteredActor {
    /// The type, and its impl block.
    pub origin: Origin,
    /// Decodes arguments, and runs the constructor.
    pub construct: fn(&CallArguments, Context) -> Result<ConstructorFuture, CallError>,
    /// In the order of the impl block.
    pub methods: &'static [MethodEntry],
    /// Saves what is to be saved before the process ends.
    pub stopping: Option<StoppingFunction>,
}

/// A method of an actor.
pub struct MethodEntry {
    /// Its name.
    pub name: &'static str,
    /// Decodes arguments, and runs the method.
    pub run: fn(ActorInstance, &CallArguments) -> Result<CallFuture, CallError>,
}

/// A running constructor.
pub type ConstructorFuture = LocalBoxFuture<'static, Result<ActorInstance>>;

/// Saves what is to be saved.
pub type StoppingFunction = fn(ActorInstance) -> LocalBoxFuture<'static, Result<()>>;

/// An actor. The gate of the core sees to it that borrows never meet.
#[derive(Clone)]
pub struct ActorInstance {
    actor: Rc<dyn Any>,
    context: Rc<Context>,
}

/// An actor that is being read.
pub struct SharedActor<'a, A>(Ref<'a, A>);

/// An actor that is being changed.
pub struct ExclusiveActor<'a, A>(RefMut<'a, A>);

impl ActorInstance {
    /// What the process is.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// For a method with `&self`.
    ///
    /// # Panics
    /// If it is no `A`, which its entry in the registry rules out.
    #[must_use]
    pub fn shared<A: 'static>(&self) -> SharedActor<'_, A> {
        SharedActor(self.cell().borrow())
    }

    /// For a method with `&mut self`.
    ///
    /// # Panics
    /// As [`ActorInstance::shared`].
    #[must_use]
    pub fn exclusive<A: 'static>(&self) -> ExclusiveActor<'_, A> {
        ExclusiveActor(self.cell().borrow_mut())
    }

    fn cell<A: 'static>(&self) -> &RefCell<A> {
        self.actor.downcast_ref().expect("the entry of the actor's own type")
    }
}

impl<A> Deref for SharedActor<'_, A> {
    type Target = A;
    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A> Deref for ExclusiveActor<'_, A> {
    type Target = A;
    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A> DerefMut for ExclusiveActor<'_, A> {
    fn deref_mut(&mut self) -> &mut A {
        &mut self.0
    }
}

/// The end of a constructor that cannot fail.
///
/// # Errors
/// None.
pub fn constructed<A: 'static>(actor: A, context: Context) -> Result<ActorInstance> {
    Ok(ActorInstance { actor: Rc::new(RefCell::new(actor)), context: Rc::new(context) })
}

/// The end of a constructor.
///
/// # Errors
/// That of the constructor.
pub fn constructed_or_failed<A: 'static, E: Into<Error>>(
    result: Result<A, E>,
    context: Context,
) -> Result<ActorInstance> {
    constructed(result.map_err(Into::into)?, context)
}

impl Registered for RegisteredActor {
    const PLURAL: &'static str = "actors";

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl fmt::Debug for RegisteredActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}
