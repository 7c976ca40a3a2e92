//! Keeps the head's certificate valid while the head runs.

use std::time::{Duration, SystemTime};

use cohabit_actor::blocking;
use cohabit_net::CertificateRenewal;
use tokio::time::sleep;

/// Checks the certificate again and again. The pause is elapsed time, which no change of the clock stretches.
pub(super) async fn keep_valid(renewal: CertificateRenewal, every: Duration) {
    loop {
        sleep(every).await;
        let check = renewal.clone();
        if let Err(error) = blocking(move || check.check(SystemTime::now())).await {
            tracing::error!(%error, "cannot renew the certificate of this head; it keeps the present one");
        }
    }
}
