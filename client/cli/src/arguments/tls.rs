//! The certificate of `web` and `export`.

use std::path::PathBuf;

use clap::Args;
use cohabit_http::TlsFiles;

// What is served by HTTPS.
#[derive(Debug, Args)]
pub(crate) struct TlsArguments {
    /// Certificate, as PEM, with those between it and its authority: HTTPS is served instead of HTTP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM; nobody else may read the file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl TlsArguments {
    /// Both files, if they are given.
    pub(crate) fn files(self) -> Option<TlsFiles> {
        let (certificate, key) = self.tls_cert.zip(self.tls_key)?;
        Some(TlsFiles { certificate, key })
    }
}
