//! Asks the head, at most once a second however many scrape.

use std::sync::Arc;
use std::time::Duration;

use cohabit_client::{Client, Error};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::exposition::{TextForm, open_metrics, prometheus};
use crate::families::ClusterFigures;

/// An answer is good for so long.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The last answer, in both forms.
#[derive(Debug)]
pub(crate) struct Scraper {
    client: Client,
    last: Mutex<Option<ScrapedTexts>>,
}

#[derive(Debug, Clone)]
struct ScrapedTexts {
    at: Instant,
    open_metrics: Arc<str>,
    prometheus: Arc<str>,
}

impl Scraper {
    pub(crate) fn new(client: Client) -> Scraper {
        // A scrape that waits for a head that is away says nothing in time.
        Scraper { client: client.with_retry_timeout(Duration::ZERO), last: Mutex::new(None) }
    }

    /// The metrics now. Others who ask meanwhile get the same answer.
    ///
    /// # Errors
    /// Those of the link: the head is away, or does not let the client in.
    pub(crate) async fn scrape(&self, form: TextForm) -> Result<Arc<str>, Error> {
        let mut last = self.last.lock().await;
        let texts = match &*last {
            Some(texts) if texts.at.elapsed() < GOOD_FOR => texts.clone(),
            Some(_) | None => {
                *last = None;
                last.insert(self.ask().await?).clone()
            }
        };
        Ok(match form {
            TextForm::OpenMetrics => texts.open_metrics,
            TextForm::Prometheus => texts.prometheus,
        })
    }

    async fn ask(&self) -> Result<ScrapedTexts, Error> {
        let (figures, nodes) = tokio::try_join!(self.client.figures(), self.client.nodes())?;
        let text = open_metrics(ClusterFigures { figures, nodes }).expect("a String takes any text");
        let prometheus = prometheus(&text).into();
        Ok(ScrapedTexts { at: Instant::now(), open_metrics: text.into(), prometheus })
    }
}
