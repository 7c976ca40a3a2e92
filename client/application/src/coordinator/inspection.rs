//! Answers what users ask about the application, as the head passes it on.

use std::collections::BTreeMap;
use std::time::Duration;

use cohabit_client::Error;
use cohabit_types::{ApplicationAnswer, ApplicationTopic};
use futures::future::join_all;
use tokio::time::sleep;

use super::application_jobs::ApplicationJobs;

/// Pause before the head is asked again after an error that may pass.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers questions as long as the head lets the coordinator. Those that come together about one topic get
/// one answer: processes are asked once for all of them.
pub(super) async fn answer_questions(
    jobs: &ApplicationJobs,
    answer: impl AsyncFn(ApplicationTopic) -> ApplicationAnswer,
) {
    loop {
        let questions = match jobs.questions().await {
            Ok(questions) => questions,
            // Who follows the jobs hears of it, too, and ends the application.
            Err(Error::NotAllowed(_)) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot wait for questions about the application: tries again");
                sleep(PAUSE).await;
                continue;
            }
        };
        let mut topics: BTreeMap<ApplicationTopic, Vec<u64>> = BTreeMap::new();
        for question in questions {
            topics.entry(question.topic).or_default().push(question.number);
        }
        let answer = &answer;
        let answers = topics.into_iter().map(|(topic, numbers)| async move {
            let found = answer(topic).await;
            for number in numbers {
                if let Err(error) = jobs.answer(number, found.clone()).await {
                    tracing::warn!(%error, %topic, "cannot answer a question about the application");
                }
            }
        });
        join_all(answers).await;
    }
}
