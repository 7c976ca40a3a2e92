//! Questions to all processes of the application, or all stores, at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cohabit_application_core::{MemberDescription, RequestNumber};
use cohabit_types::RankId;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long processes have for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Those that are open: `K` are asked and answer `A`.
#[derive(Debug)]
pub(super) struct Surveys<K, A> {
    last: RequestNumber,
    open: BTreeMap<RequestNumber, Survey<K, A>>,
}

#[derive(Debug)]
struct Survey<K, A> {
    waiting: BTreeSet<K>,
    answers: Vec<(K, A)>,
    complete: Arc<Notify>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct SurveyResult<K, A> {
    pub(super) answers: Vec<(K, A)>,
    /// Those that have not answered in time.
    pub(super) silent: Vec<K>,
}

/// What processes have said of themselves.
pub(super) type MemberAnswers = SurveyResult<RankId, MemberDescription>;

/// The end of a survey.
#[derive(Debug)]
pub(super) struct SurveyEnd(Arc<Notify>);

impl<K, A> Default for SurveyResult<K, A> {
    fn default() -> SurveyResult<K, A> {
        SurveyResult { answers: Vec::new(), silent: Vec::new() }
    }
}

impl<K, A> Default for Surveys<K, A> {
    fn default() -> Surveys<K, A> {
        Surveys { last: RequestNumber(0), open: BTreeMap::new() }
    }
}

impl<K: Ord, A> Surveys<K, A> {
    /// The number of the next one.
    pub(super) fn next(&mut self) -> RequestNumber {
        self.last = RequestNumber(self.last.0 + 1);
        self.last
    }

    /// These were asked.
    pub(super) fn open(&mut self, request: RequestNumber, asked: BTreeSet<K>) -> SurveyEnd {
        let complete = Arc::new(Notify::new());
        let survey = Survey { waiting: asked, answers: Vec::new(), complete: Arc::clone(&complete) };
        survey.look();
        self.open.insert(request, survey);
        SurveyEnd(complete)
    }

    /// One has answered.
    pub(super) fn answered(&mut self, by: K, request: RequestNumber, answer: A) {
        if let Some(survey) = self.open.get_mut(&request)
            && survey.waiting.remove(&by)
        {
            survey.answers.push((by, answer));
            survey.look();
        }
    }

    /// One has ended, and answers nothing any more.
    pub(super) fn ended(&mut self, ended: &K) {
        for survey in self.open.values_mut() {
            survey.waiting.remove(ended);
            survey.look();
        }
    }

    /// Nobody waits for further answers.
    pub(super) fn close(&mut self, request: RequestNumber) -> SurveyResult<K, A> {
        let closed = self.open.remove(&request);
        let result = |survey: Survey<K, A>| SurveyResult {
            answers: survey.answers,
            silent: survey.waiting.into_iter().collect(),
        };
        closed.map(result).unwrap_or_default()
    }
}

impl<K, A> Survey<K, A> {
    fn look(&self) {
        if self.waiting.is_empty() {
            self.complete.notify_one();
        }
    }
}

impl SurveyEnd {
    /// Waits until all have answered or ended, or for as long as they have.
    pub(super) async fn wait(&self) {
        let _complete = timeout(PATIENCE, self.0.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobId;
    use futures::FutureExt;

    use super::*;

    fn member(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    #[tokio::test]
    async fn a_survey_ends_with_the_last_answer_and_those_that_ended_are_not_silent() {
        let mut surveys = Surveys::default();
        let request = surveys.next();
        let end = surveys.open(request, [member(1), member(2), member(3)].into());
        surveys.answered(member(1), request, MemberDescription::default());
        surveys.answered(member(1), request, MemberDescription::default());
        surveys.answered(member(9), request, MemberDescription::default());
        surveys.ended(&member(2));
        assert!(end.wait().now_or_never().is_none(), "the third has not answered");
        surveys.answered(member(3), request, MemberDescription::default());
        end.wait().now_or_never().expect("all have answered");
        let result = surveys.close(request);
        let answered: Vec<RankId> = result.answers.iter().map(|(member, _)| *member).collect();
        assert_eq!((answered, result.silent), (vec![member(1), member(3)], vec![]));
        surveys.answered(member(3), request, MemberDescription::default());
        assert!(surveys.open.is_empty());
    }

    #[tokio::test]
    async fn those_that_do_not_answer_are_silent() {
        let mut surveys = Surveys::default();
        let (first, second) = (surveys.next(), surveys.next());
        surveys.open(first, [member(1), member(2)].into());
        surveys.answered(member(2), first, MemberDescription::default());
        let end = surveys.open(second, BTreeSet::new());
        end.wait().now_or_never().expect("nobody was asked");
        assert_eq!(surveys.close(first).silent, [member(1)]);
        assert_eq!(surveys.close(first).silent, [], "it is closed");
    }
}
