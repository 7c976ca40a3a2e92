//! One method of an actor, or its constructor: what it is called with, and how it is called.

use syn::spanned::Spanned;
use syn::{Error, ImplItemFn, Receiver, ReceiverKind, Result};

use crate::function::{FunctionKind, RemoteFunction};

/// A function that other processes call by way of a handle, or the constructor.
pub(crate) struct Method {
    pub(crate) function: RemoteFunction,
    pub(crate) access: Access,
    pub(crate) is_retried: bool,
}

/// What it does with the actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It makes the actor.
    Constructor,
    /// `&self`.
    Shared,
    /// `&mut self`.
    Exclusive,
}

impl Method {
    pub(crate) fn read(function: &ImplItemFn, access: Access, is_retried: bool) -> Result<Method> {
        let kind = match access {
            Access::Constructor => FunctionKind::Constructor,
            Access::Shared | Access::Exclusive => FunctionKind::Method,
        };
        let function = RemoteFunction::read(&function.attrs, &function.vis, &function.sig, kind)?;
        Ok(Method { function, access, is_retried })
    }
}

/// What the receiver of a method allows.
pub(crate) fn access_of(receiver: &Receiver) -> Result<Access> {
    let stays = "an actor stays in its process: take `&self` or `&mut self`";
    match &receiver.kind {
        ReceiverKind::Reference(_, _, Some(_)) => Ok(Access::Exclusive),
        ReceiverKind::Reference(_, _, None) => Ok(Access::Shared),
        ReceiverKind::Value => Err(Error::new(receiver.span(), format!("`self` is taken by value; {stays}"))),
        _ => Err(Error::new(receiver.span(), format!("`self` has a type here; {stays}"))),
    }
}
