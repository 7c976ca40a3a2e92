//! Names for addresses.
//!
//! An entry lives as long as its actor takes messages, restarts included. What is handed out is a clone:
//! never a guard of the map, so nothing can be held over an await. The registry never starts or stops an
//! actor.

use crate::Address;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

/// Names → addresses; cheap to clone, all clones show the same names.
#[derive(Clone, Default)]
pub struct Registry(Arc<DashMap<String, Box<dyn AnyAddress>>>);

impl Registry {
    /// Gives the address a name until its actor is gone. Must be called within the runtime.
    ///
    /// # Errors
    /// [`RegistryError::Taken`] while another actor has the name.
    pub fn register<M: Send + 'static>(&self, name: &str, address: &Address<M>) -> Result<(), RegistryError> {
        match self.0.entry(name.to_string()) {
            Entry::Occupied(entry) if !entry.get().is_gone() => {
                return Err(RegistryError::Taken { name: name.to_string() });
            }
            Entry::Occupied(mut entry) => drop(entry.insert(Box::new(address.clone()))),
            Entry::Vacant(entry) => drop(entry.insert(Box::new(address.clone()))),
        }
        self.remove_when_gone(name.to_string(), address.clone());
        Ok(())
    }

    /// The address of that name.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`], or [`RegistryError::OtherType`] if the actor does not take `M`.
    pub fn lookup<M: Send + 'static>(&self, name: &str) -> Result<Address<M>, RegistryError> {
        let entry = self.0.get(name).filter(|entry| !entry.is_gone());
        let entry = entry.ok_or_else(|| RegistryError::Unknown { name: name.to_string() })?;
        let address = entry.as_any().downcast_ref::<Address<M>>().cloned();
        address.ok_or_else(|| RegistryError::OtherType { name: name.to_string(), asked: type_name::<M>() })
    }

    /// The names of all actors that are there, sorted.
    pub fn names(&self) -> Vec<String> {
        let present = self.0.iter().filter(|entry| !entry.value().is_gone());
        let mut names: Vec<String> = present.map(|entry| entry.key().clone()).collect();
        names.sort();
        names
    }

    /// How many entries the map holds, those of actors that are gone included.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.0.len()
    }

    fn remove_when_gone<M: Send + 'static>(&self, name: String, address: Address<M>) {
        let entries = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            address.closed().await;
            if let Some(entries) = entries.upgrade() {
                // By then the name may belong to another actor.
                entries.remove_if(&name, |_, entry| entry.is_gone());
            }
        });
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Registry").field(&self.names()).finish()
    }
}

/// Why a name cannot be given or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Another actor has the name.
    #[error("the name `{name}` is taken")]
    Taken {
        /// The name.
        name: String,
    },
    /// No actor has the name.
    #[error("no actor is called `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// An actor has the name, and takes other messages.
    #[error("the actor `{name}` does not take messages of type `{asked}`")]
    OtherType {
        /// The name.
        name: String,
        /// The type of message that was asked for.
        asked: &'static str,
    },
}

/// An address of any type.
trait AnyAddress: Send + Sync {
    fn is_gone(&self) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<M: Send + 'static> AnyAddress for Address<M> {
    fn is_gone(&self) -> bool {
        self.is_closed()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
