//! Immutable objects in shared memory that the kernel protects against every write.
//!
//! ```text
//! value ── ObjectWriter ── size ──▶ (a store admits it) ──▶ FreshMemory ── write, seal ──▶ SealedMemory
//!                                                                                            │ a descriptor
//!              send_message / receive_message: to another process, which checks the seals ◀──┤
//!              SpillFile: to disk and back                                               ◀──┤
//! value ◀── read_object ◀── MemoryMapping, read-only ◀── map ◀───────────────────────────────┘
//! ```
//!
//! An object is a value's serde body, then its [`Buffer`]s, each aligned to 64 bytes. A buffer that is read
//! is a window into the mapping: nothing is copied. Memory is a `memfd`: it has no name, so nothing is left
//! when processes are killed, and it lives as long as a descriptor or a mapping of it.
//!
//! This crate decides nothing: which objects are in memory is for the store
//! (`cohabit-application-core`), who may connect is for the shells.
//!
//! # Where to start reading
//!
//! ```text
//! memfd     memory that is filled, sealed, checked       mapping   read-only views, the only unsafe code
//! object    values to objects and back                   layout    the header, and its checks
//! buffer    what goes out of line                        scope     how a buffer knows that it does
//! passing   descriptors over Unix sockets                spill     files without a name
//! reading   files at places
//! ```

mod buffer;
mod errors;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod layout;
mod mapping;
mod memfd;
mod object;
mod passing;
mod reading;
mod scope;
mod spill;
#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use errors::{MemoryError, ObjectError};
pub use layout::{BUFFER_ALIGNMENT, MAX_BODY, MAX_BUFFERS};
pub use mapping::{MemoryMapping, WeakMapping};
pub use memfd::{FreshMemory, MAX_OBJECT, SealedMemory};
pub use object::{ObjectWriter, read_object, read_object_seed, write_object};
pub use passing::{ReceivedMessage, receive_message, send_message};
pub use spill::SpillFile;
