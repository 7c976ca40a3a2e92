//! Files stored by the SHA-256 of their content, and folders as lists of such files.
//!
//! ```text
//! folder ── Manifest ──▶ its files by hash ──▶ ContentStore (head) ──▶ ContentStore (node) ──▶ write_tree
//! ```
//!
//! A [`Manifest`] lists the files of a folder. It is stored like any other file, so the hash of a manifest
//! names a folder with all that is in it, and what two folders have in common is stored once. A
//! [`ContentStore`] takes files piece by piece, checks their content, and gives up the least recently used
//! when it is full. [`write_tree`] makes a folder of a manifest again.
//!
//! This crate knows neither users nor links. Everything that touches the disk blocks.
#![warn(missing_docs)]

mod content_store;
mod error;
mod hash;
mod manifest;
mod stored_files;
mod tree;
mod tree_walk;

pub use content_store::{ContentStore, StoreKind, StoreLimits};
pub use error::ContentError;
pub use hash::{ContentHasher, hash_of, hash_of_file};
pub use manifest::{FileContent, FileSelection, MOST_FILES, Manifest, ManifestError, ManifestFile};
pub use tree::{remove_unchanged, write_tree};
