//! Answers about one job, asked for once for all tabs that show it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cohabit_client::Error;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

/// How long an answer is shown again.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// How long the head may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Answers that are kept; an older one is asked for again.
const MOST: usize = 256;

/// What was answered, and when.
type Answered<V> = Arc<AsyncMutex<Option<(Instant, Arc<V>)>>>;

/// The answers by what was asked.
#[derive(Debug)]
pub(crate) struct AnswerCache<K, V>(Mutex<HashMap<K, Answered<V>>>);

impl<K, V> Default for AnswerCache<K, V> {
    fn default() -> AnswerCache<K, V> {
        AnswerCache(Mutex::default())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error(transparent)]
    Head(#[from] Error),
    #[error("the head did not answer in time: reload the page in a while")]
    Late,
}

impl<K: Eq + Hash + Clone, V> AnswerCache<K, V> {
    /// The answer, asked for unless there is a fresh one; the last one while the head is away. Those who ask
    /// the same at once wait for one answer.
    pub(crate) async fn get(
        &self,
        key: K,
        ask: impl Future<Output = Result<V, Error>>,
    ) -> Result<Arc<V>, AnswerError> {
        self.renew(key, |age, _| age < FRESH_FOR, |_| ask).await
    }

    /// The same for answers that say themselves how long they are good, and that are made from the last one.
    pub(crate) async fn renew<F: Future<Output = Result<V, Error>>>(
        &self,
        key: K,
        is_fresh: impl FnOnce(Duration, &V) -> bool,
        ask: impl FnOnce(Option<Arc<V>>) -> F,
    ) -> Result<Arc<V>, AnswerError> {
        let answered = self.place(key);
        let mut answered = timeout(PATIENCE, answered.lock()).await.map_err(|_| AnswerError::Late)?;
        if let Some((at, answer)) = &*answered
            && is_fresh(at.elapsed(), answer)
        {
            return Ok(Arc::clone(answer));
        }
        let last = answered.as_ref().map(|(_, answer)| Arc::clone(answer));
        let asked = timeout(PATIENCE, ask(last)).await.map_err(|_| AnswerError::Late);
        match (asked.and_then(|asked| Ok(asked?)), &*answered) {
            (Ok(answer), _) => {
                let answer = Arc::new(answer);
                *answered = Some((Instant::now(), Arc::clone(&answer)));
                Ok(answer)
            }
            // The page says that the head is away.
            (Err(AnswerError::Late | AnswerError::Head(Error::Unreachable(_))), Some((_, answer))) => {
                Ok(Arc::clone(answer))
            }
            (Err(error), _) => Err(error),
        }
    }

    fn place(&self, key: K) -> Answered<V> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST && !answers.contains_key(&key) {
            answers.clear();
        }
        Arc::clone(answers.entry(key).or_default())
    }
}
