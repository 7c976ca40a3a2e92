//! Programs to try Cohabit with: small trainings that need no GPU and no download, and really learn.
//!
//! Everything a training program needs lies in [`train`]; the binaries `digits` and `charlm` are thin doors
//! to it, and the `cohabit` program embeds the same for its demo. Nothing here talks to a cluster: a program
//! learns what the cluster wants from its environment variables and its signals, like any user's own program.

pub mod train;
