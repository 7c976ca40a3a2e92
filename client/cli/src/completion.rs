//! Candidates for shell completion that only the head knows: jobs, applications and nodes.
//!
//! A shell that completes waits for the answer, so there is one attempt within [`LIMIT`]. Whatever goes
//! wrong, no head among it, means no candidates: a message would stand in the middle of the line that is
//! typed.

use std::env;
use std::ffi::OsStr;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use cohabit_client::types::{ApplicationOwner, Filter, JobRecord, Span};
use cohabit_client::{Client, ConnectOptions, Error, Token};
use cohabit_console::printable_line;
use cohabit_settings::{RawSettings, SettingKey, Settings};
use futures::TryStreamExt as _;
use tokio::time::timeout;

use crate::arguments::CommandLine;
use crate::clock::now;

/// The environment variable by which the script of a shell asks for candidates.
pub(crate) const VARIABLE: &str = "COHABIT_COMPLETE";

/// The flag of jobs that have to end first.
const DEPENDENCIES: &str = "depends_on";

/// How long a shell waits for the head.
const LIMIT: Duration = Duration::from_secs(1);

/// The most candidates of one kind.
const MOST_CANDIDATES: usize = 200;

/// Jobs that have ended within this time are candidates of commands that only read.
const RECENT: Span = Span::from_secs(24 * 3_600);

/// The jobs of this user that have not ended.
pub(crate) fn live_jobs(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, async |client| Ok(job_words(&jobs(client, Span::ZERO).await?)))
}

/// The same, and those that have ended within a day.
pub(crate) fn recent_jobs(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, async |client| Ok(job_words(&jobs(client, RECENT).await?)))
}

/// The command line, with candidates for the flags that other crates describe.
pub(crate) fn command() -> Command {
    let mut command = CommandLine::command();
    // Only then do subcommands have their flags.
    command.build();
    let has_dependencies = |it: &&mut Command| it.get_arguments().any(|flag| flag.get_id() == DEPENDENCIES);
    for found in command.get_subcommands_mut().filter(has_dependencies) {
        let with_candidates = |flag: Arg| flag.add(ArgValueCompleter::new(dependencies));
        *found = std::mem::take(found).mut_arg(DEPENDENCIES, with_candidates);
    }
    command
}

/// A list of dependencies: the jobs are candidates for the last word of it.
fn dependencies(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let start = text.rfind([',', ':']).map_or(0, |at| at + 1);
    let (before, last) = text.split_at(start);
    let found = live_jobs(OsStr::new(last));
    found.into_iter().map(|candidate| candidate.add_prefix(before)).collect()
}

/// Live applications of all users.
pub(crate) fn applications(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, async |client| {
        let found = client.applications_of(ApplicationOwner::Anyone).await?;
        Ok(found.into_iter().map(|it| (it.name, format!("job {} of {}", it.job, it.user))).collect())
    })
}

/// Names of nodes.
pub(crate) fn nodes(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, async |client| {
        let found = client.nodes().await?;
        Ok(found.into_iter().map(|it| (it.name, it.state.word().to_owned())).collect())
    })
}

/// The words that begin with what is typed, each with a description.
fn candidates(
    current: &OsStr,
    ask: impl AsyncFnOnce(&Client) -> Result<Vec<(String, String)>, Error>,
) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    let words = ask_head(ask).unwrap_or_default();
    // A word with control characters would drive the terminal.
    let fits = |word: &str| word.starts_with(typed) && printable_line(word) == word && !word.is_empty();
    let fitting = words.into_iter().filter(|(word, _)| fits(word)).take(MOST_CANDIDATES);
    fitting.map(|(word, help)| CompletionCandidate::new(word).help(Some(describe(&help).into()))).collect()
}

fn describe(help: &str) -> String {
    printable_line(help).into_owned()
}

/// What the head answers within the limit.
fn ask_head<T>(ask: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async {
        let connected = async {
            let client = Client::connect(connect_options()?).await.ok()?.with_retry_timeout(Duration::ZERO);
            ask(&client).await.ok()
        };
        timeout(LIMIT, connected).await.ok()?
    });
    // A name server that does not answer would hold the runtime up.
    runtime.shutdown_background();
    answer
}

/// The head that the line, which is being typed, would talk to.
fn connect_options() -> Option<ConnectOptions> {
    let words: Vec<String> = env::args_os().filter_map(|word| word.into_string().ok()).collect();
    let settings = Settings::with_flags(typed_flags(&words)).ok()?;
    let token = Token::read_file(&settings.token_file().ok()?.path).ok()?;
    Some(ConnectOptions { head: settings.head_address().ok()?, token })
}

/// The flags among these words that name the head and the token.
fn typed_flags(words: &[String]) -> RawSettings {
    let mut flags = RawSettings::new();
    for key in [SettingKey::Head, SettingKey::TokenFile, SettingKey::State] {
        let flag = format!("--{}", key.name());
        let joined = |word: &String| word.strip_prefix(&flag)?.strip_prefix('=').map(str::to_owned);
        let apart = words.windows(2).find(|pair| pair[0] == flag).map(|pair| pair[1].clone());
        let value = apart.or_else(|| words.iter().find_map(joined));
        // `--state` takes states of jobs, too; a path has a slash there.
        flags.extend(value.filter(|it| key != SettingKey::State || it.contains('/')).map(|it| (key, it)));
    }
    flags
}

/// The jobs of this user that live, or have ended within this time; the newest first.
async fn jobs(client: &Client, within: Span) -> Result<Vec<JobRecord>, Error> {
    let user = Some(client.accepted().await?.by.user);
    let filter = Filter { user, ended_after: Some(now() - within), ..Filter::default() };
    let mut jobs: Vec<JobRecord> = client.list(filter).try_collect().await?;
    jobs.retain(|job| within > Span::ZERO || !job.state.is_terminal());
    jobs.reverse();
    Ok(jobs)
}

/// Numbers and names of jobs. A name that has several jobs stands once, for its newest.
fn job_words(jobs: &[JobRecord]) -> Vec<(String, String)> {
    let numbers = jobs.iter().map(|job| (job.id.to_string(), format!("{}, {}", job.name, job.state.word())));
    let mut words: Vec<(String, String)> = numbers.take(MOST_CANDIDATES).collect();
    for job in jobs {
        if !words.iter().any(|(word, _)| *word == job.name) {
            words.push((job.name.clone(), format!("job {}, {}", job.id, job.state.word())));
        }
        if words.len() >= 2 * MOST_CANDIDATES {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{array, pending, running};

    #[test]
    fn jobs_are_completed_by_number_and_by_name_once() {
        let older = JobRecord { name: "eval".into(), ..running() };
        let words = job_words(&[pending(), older, array()]);
        let words: Vec<(&str, &str)> =
            words.iter().map(|(word, help)| (word.as_str(), help.as_str())).collect();
        assert_eq!(
            words,
            [
                ("14", "eval, PENDING"),
                ("12", "eval, RUNNING"),
                ("9", "sweep, RUNNING"),
                ("eval", "job 14, PENDING"),
                ("sweep", "job 9, RUNNING"),
            ]
        );
    }

    #[test]
    fn the_flags_of_the_line_name_the_head() {
        let typed = |line: &str| typed_flags(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let flags = typed("cohabit -- cohabit cancel --head a:1 --token-file=t --state PENDING");
        let expected = [(SettingKey::Head, "a:1".to_owned()), (SettingKey::TokenFile, "t".to_owned())];
        assert_eq!(flags, expected.into());
        assert_eq!(typed("cohabit show --state ./s"), [(SettingKey::State, "./s".to_owned())].into());
        assert!(typed("cohabit show --head").is_empty());
    }
}
