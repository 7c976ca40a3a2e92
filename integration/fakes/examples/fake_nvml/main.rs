//! A fake of NVIDIA's management library, for a world that its environment names or in whose `bin` folder it
//! lies. It has the functions that Cohabit calls; programs that ask for others learn that this library lacks
//! them.
//!
//! ```text
//! library    what is the same for all functions: the world, handles, scripted faults, where answers go
//! system     begin, end, versions, and which GPUs there are
//! device     what a GPU is and shows
//! processes  who is on a GPU
//! wiring     how GPUs reach each other
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
