//! What a worker keeps may be away with it for a while: after a broken link, or a restart.

use std::time::Duration;

use cohabit_types::RefusalCode;
use tokio::time::{Instant, sleep};

use crate::Error;

/// How long a worker may be away before it is given up: what it holds for a client ends by then.
const ABSENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(200);

/// Asks again while the worker is away: while the head answers that what it keeps cannot be reached now.
///
/// # Errors
/// The last answer, once that lasts for longer than any worker keeps what a client does not ask for.
pub async fn while_away<T, Asked: Future<Output = Result<T, Error>>>(
    ask: impl Fn() -> Asked,
) -> Result<T, Error> {
    let begin = Instant::now();
    loop {
        match ask().await {
            Err(Error::Refused(refusal))
                if refusal.code == RefusalCode::Unavailable && begin.elapsed() < ABSENCE =>
            {
                sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}
