//! Why the pages cannot be served.

use std::net::SocketAddr;

use cohabit_client::types::Role;
use cohabit_http::{ListenError, TlsFileError};

/// Why the pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address can be reached from other machines, and there is no certificate.
    #[error(
        "--listen {0} can be reached from other machines, where the pages would travel without encryption: listen \
         on 127.0.0.1 and use `ssh -L 7071:127.0.0.1:7071 HOST`, or for a wall screen give --tls-cert FILE, \
         --tls-key FILE and a token with the role viewer"
    )]
    WithoutTls(SocketAddr),
    /// The address can be reached from other machines, and the token may do more than look.
    #[error(
        "--listen {address} can be reached from other machines, where the pages would act with the token of {user}, \
         which has the role {role}: use a token with the role viewer (`cohabit token create --role viewer`), or \
         listen on 127.0.0.1"
    )]
    NotViewer {
        /// The address.
        address: SocketAddr,
        /// Whose token it is.
        user: String,
        /// What it may do.
        role: Role,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    TlsFile(#[from] TlsFileError),
    /// The port is taken, or the system refuses it.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The head does not let this client in.
    #[error(transparent)]
    Head(#[from] cohabit_client::Error),
}
