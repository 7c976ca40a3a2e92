//! A fake of NVIDIA's management library, for the world that its environment names, or in whose `bin` it
//! lies. It has only the functions that Cohabit calls.
//!
//! ```text
//! library    what all functions share: the world, handles, scripted errors, writing results
//! system     initialisation, versions, and the list of GPUs
//! device     properties and readings of a GPU
//! processes  the processes on a GPU
//! wiring     how GPUs are connected
//! monitor    the performance monitor
//! events     critical errors
//! ```
#![expect(unsafe_code, reason = "the interface is one of C: answers go where the caller's pointers point to")]
#![expect(non_upper_case_globals, reason = "the names are NVIDIA's")]

mod device;
mod events;
mod library;
mod monitor;
mod processes;
mod system;
mod wiring;
