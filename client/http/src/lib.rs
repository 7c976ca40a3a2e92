//! HTTP for the commands that serve something: limits of connections, TLS, and whom a request is for.
//!
//! The head speaks no HTTP; `cohabit web` and `cohabit export` are clients of it.

mod bind;
mod host;
mod serve;
mod tls;

pub use self::bind::{ListenError, bind};
pub use self::host::host_of_this_machine;
pub use self::serve::{HttpLimits, serve};
pub use self::tls::{TlsFileError, TlsFiles, TlsIdentity, host_text};
