//! Problems of the head itself: it cannot write its journal, or cannot be reached. They are in no feed, so
//! the head is asked from time to time.

use std::time::{Duration, Instant};

use cohabit_client::{Client, Error};
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use crate::clock::wall_clock;
use crate::message::{Message, MessageUrgency};

/// How often the head is asked.
const INTERVAL: Duration = Duration::from_secs(15);
/// A head that restarts is away for less.
const AWAY_LIMIT: Duration = Duration::from_secs(300);

/// What the head answered.
#[derive(Debug)]
enum HeadAnswer {
    /// Its problems.
    Problems(Vec<String>),
    /// It cannot be reached, for this reason.
    Unreachable(String),
    /// Nothing that tells whether it has problems.
    Other,
}

impl From<Result<Vec<String>, Error>> for HeadAnswer {
    fn from(answer: Result<Vec<String>, Error>) -> HeadAnswer {
        match answer {
            Ok(problems) => HeadAnswer::Problems(problems),
            Err(Error::Unreachable(why)) => HeadAnswer::Unreachable(why.to_string()),
            Err(_) => HeadAnswer::Other,
        }
    }
}

/// What is known of the head's problems.
#[derive(Debug, Default)]
struct HeadProblems {
    /// When the head could first not be reached.
    away_since: Option<Instant>,
    /// Whether a problem was told, and its end was not.
    is_told: bool,
}

impl HeadProblems {
    /// What to tell after this answer.
    fn note(&mut self, answer: HeadAnswer, now: Instant) -> Option<Message> {
        let problem = match answer {
            HeadAnswer::Problems(problems) => {
                self.away_since = None;
                problems.into_iter().next()
            }
            HeadAnswer::Unreachable(why) => {
                let since = *self.away_since.get_or_insert(now);
                if now.duration_since(since) < AWAY_LIMIT {
                    return None;
                }
                let minutes = AWAY_LIMIT.as_secs() / 60;
                Some(format!("the head has not been reached for {minutes} minutes: {why}"))
            }
            HeadAnswer::Other => return None,
        };
        let message = |urgency, title, text: &str| {
            let at = wall_clock();
            Message::plain(format!("head-{}", at.as_micros()), "head-problem", urgency, at, title, text)
        };
        match (problem, self.is_told) {
            (Some(text), false) => {
                self.is_told = true;
                Some(message(MessageUrgency::High, "The head has a problem", &text))
            }
            (None, true) => {
                self.is_told = false;
                Some(message(MessageUrgency::Low, "The head works again", "it accepts changes"))
            }
            (Some(_), true) | (None, false) => None,
        }
    }
}

/// Asks the head until the program is to end.
pub(crate) async fn watch_head(
    client: Client,
    tell: broadcast::Sender<Message>,
    mut stop: watch::Receiver<bool>,
) {
    let mut problems = HeadProblems::default();
    loop {
        let answer = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            answer = client.head_problems() => answer,
        };
        if let Some(message) = problems.note(answer.into(), Instant::now()) {
            // Without a channel for it, nobody listens.
            let _ = tell.send(message);
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(INTERVAL) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_once_and_so_is_its_end() {
        let (mut problems, now) = (HeadProblems::default(), Instant::now());
        let mut titles = Vec::new();
        for answer in [vec![], vec!["no space"], vec!["no space, for longer"], vec![], vec![], vec!["again"]]
        {
            let answer = HeadAnswer::Problems(answer.into_iter().map(str::to_owned).collect());
            titles.push(problems.note(answer, now).map(|message| message.title));
        }
        let (problem, end) =
            (Some("The head has a problem".to_owned()), Some("The head works again".to_owned()));
        assert_eq!(titles, [None, problem.clone(), None, end, None, problem]);
    }

    #[test]
    fn a_head_that_is_away_is_told_after_minutes() {
        let (mut problems, now) = (HeadProblems::default(), Instant::now());
        let mut away = |secs| {
            let answer = HeadAnswer::Unreachable("connection refused".into());
            problems.note(answer, now + Duration::from_secs(secs)).map(|message| message.text())
        };
        assert_eq!((away(0), away(299)), (None, None));
        assert!(away(300).unwrap().contains("not been reached for 5 minutes"));
        assert_eq!(away(600), None);
        assert_eq!(
            problems.note(HeadAnswer::Problems(Vec::new()), now).unwrap().title,
            "The head works again"
        );
    }
}
