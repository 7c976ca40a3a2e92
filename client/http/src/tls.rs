//! TLS for what other machines reach: it has a certificate of the site, not of the cluster.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{Error, ServerConfig};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The largest file that is read: a chain of certificates is a few KiB.
const LARGEST_FILE: u64 = 1 << 20;

/// Where the certificate and its key are, both as PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate first, then those between it and its authority.
    pub certificate: PathBuf,
    /// The key, which nobody but its owner may read.
    pub key: PathBuf,
}

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{flag} {}: {why}", file.display())]
pub struct TlsFileError {
    /// The flag that names the file.
    flag: &'static str,
    /// The file.
    file: PathBuf,
    /// What is wrong, and what to do.
    why: String,
}

/// A certificate with its key, ready to accept connections.
#[derive(Debug)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl TlsIdentity {
    /// Reads both files.
    ///
    /// # Errors
    /// When a file cannot be read, holds something else or too much, others may read the key, or the key
    /// belongs to another certificate.
    pub async fn load(files: TlsFiles) -> Result<TlsIdentity, TlsFileError> {
        let file = files.certificate.clone();
        let read = spawn_blocking(move || TlsIdentity::read(&files)).await;
        read.unwrap_or_else(|error| Err(TlsFileError { flag: "--tls-cert", file, why: error.to_string() }))
    }

    /// The same. Blocks on the disk.
    fn read(files: &TlsFiles) -> Result<TlsIdentity, TlsFileError> {
        let TlsFiles { certificate: certificate_file, key: key_file } = files;
        let problem = |file: &Path, flag, why: String| TlsFileError { flag, file: file.to_owned(), why };
        let of_certificate = |why| problem(certificate_file, "--tls-cert", why);
        let of_key = |why| problem(key_file, "--tls-key", why);
        let pem = open(certificate_file).and_then(read).map_err(|error| of_certificate(error.to_string()))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let chain = chain.map_err(|error| of_certificate(format!("it is no PEM file: {error}")))?;
        let Some(certificate) = chain.first().cloned() else {
            return Err(of_certificate("it has no certificate (BEGIN CERTIFICATE)".to_owned()));
        };
        let file = open(key_file).map_err(|error| of_key(error.to_string()))?;
        let mode = file.metadata().map_err(|error| of_key(error.to_string()))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let key = key_file.display();
            return Err(of_key(format!("others may read it, its mode is {mode:o}: `chmod 600 {key}`")));
        }
        let pem = read(file).map_err(|error| of_key(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|error| of_key(format!("it has no private key (BEGIN PRIVATE KEY): {error}")))?;
        let config =
            server_config(chain, key).map_err(|error| match matches!(error, Error::InconsistentKeys(_)) {
                true => {
                    of_key(format!("it is not the key of the certificate in {}", certificate_file.display()))
                }
                false => of_certificate(format!("it cannot be used: {error}")),
            })?;
        ParsedCertificate::try_from(&certificate)
            .map_err(|error| of_certificate(format!("it cannot be used: {error}")))?;
        Ok(TlsIdentity { config: Arc::new(config), certificate })
    }

    /// Whether the certificate is for this name or address of a host.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let (Ok(certificate), Ok(name)) =
            (ParsedCertificate::try_from(&self.certificate), ServerName::try_from(host))
        else {
            return false;
        };
        verify_server_name(&certificate, &name).is_ok()
    }

    /// The TLS handshake of a connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(Arc::clone(&self.config)).accept(stream).await
    }

    /// The host in the addresses that are printed: that which is listened on, or a name of this machine where
    /// that is every address.
    #[must_use]
    pub fn public_host(&self, listen: IpAddr) -> String {
        if !listen.is_unspecified() {
            return host_text(listen);
        }
        let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        name.filter(|name| self.is_for(name)).unwrap_or_else(|| "localhost".to_owned())
    }
}

/// An address as it stands in a URL.
#[must_use]
pub fn host_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn read(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= LARGEST_FILE {
        true => Ok(bytes),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 1 MiB")),
    }
}

#[cfg(test)]
mod tests;
