//! How long a polite user waits while a hostile one asks for as much as a user may, over many connections.
//!
//! `docs/SECURITY.md` quotes the figures.

use std::collections::BTreeMap;
use std::env::current_exe;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cohabit_net::{ClientServiceClient, Endpoint, Token, connect_client, context_for};
use cohabit_types::{Dependency, DependencyKind, Filter, JobChange, JobId, JobRef, JobRevision, JobSpec};
use futures::future::join_all;
use tokio::process::Command;

use super::{LIMIT, array, no_op_job, submit};
use crate::daemon::HeadProcess;
use crate::figures::{format_percentiles, print_figure};

const MEMBERS: u32 = 10_000;
/// Single jobs of the hostile user, each with arguments of this many bytes.
const JOBS: usize = 64;
const ARGUMENTS: usize = 64 << 10;
const CONNECTIONS: usize = 16;
/// Requests in flight on each connection.
const IN_FLIGHT: usize = 8;
/// The most ids that a request may name.
const IDS: u32 = 10_000;
/// The argument by which this program becomes the attacker.
pub(crate) const ATTACK: &str = "--attack";
/// Time for its connections.
const SETTLED: Duration = Duration::from_secs(2);
const SPAN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Members of the array that is held and released again and again: as many as may wait, beside other jobs.
const HELD: u32 = 9_000;
/// Jobs on which one job depends.
const DEPENDENCIES: u32 = 990;

/// The kinds of questions and changes that cost most.
#[derive(Clone, Copy)]
enum Attack {
    Show,
    Watch,
    Resolve,
    List,
    DryRun,
    Submit,
    /// Holds and releases an array.
    Hold,
    /// Submits jobs that depend on many, and then cancels those.
    Depend,
}

const ATTACKS: [(&str, Attack); 8] = [
    ("show", Attack::Show),
    ("watch", Attack::Watch),
    ("resolve", Attack::Resolve),
    ("list", Attack::List),
    ("dry-run", Attack::DryRun),
    ("submit", Attack::Submit),
    ("hold", Attack::Hold),
    ("depend", Attack::Depend),
];

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let (admin, polite) = (head.client().await, head.client().await);
    let queued = submit(&admin, array(MEMBERS)).await;
    let token = head.create_user("mallory").await;
    let mallory = head.client_of(&token).await;
    for _ in 0..JOBS {
        submit(&mallory, large_job()).await;
    }
    report("nobody else", ask(&polite, queued).await);
    for (name, _) in ATTACKS {
        // A user of its own, whose limits the attacks before have not used up.
        let token = head.create_user(&format!("mallory-{name}")).await;
        // A process of its own with the lowest priority: another machine would not take our processors.
        let mut attacker = Command::new("nice");
        attacker.args(["-n", "19"]).arg(current_exe().unwrap()).args([ATTACK, name]);
        attacker.arg(head.address()).arg(head.token_file(&token)).arg(queued.number.to_string());
        let mut attacker = attacker.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        tokio::time::sleep(SETTLED).await;
        report(&format!("floods of {name}"), ask(&polite, queued).await);
        attacker.kill().await.unwrap();
    }
}

/// The attacking process: the name of the attack, the head's address, the file of a token, and the number of
/// an array.
pub(crate) async fn attack(arguments: &[String]) {
    let [name, address, token, array] = arguments else { panic!("{arguments:?}") };
    let (_, attack) = ATTACKS.into_iter().find(|(known, _)| known == name).unwrap();
    let endpoint = Endpoint { address: address.clone(), token: Token::read_file(Path::new(token)).unwrap() };
    let links = join_all((0..CONNECTIONS).map(|_| connect_client(&endpoint))).await;
    let links: Vec<ClientServiceClient> = links.into_iter().map(|link| link.unwrap().0).collect();
    let array = match attack {
        Attack::Hold => submit(&links[0], held(HELD)).await,
        Attack::Depend => submit(&links[0], held(DEPENDENCIES)).await,
        Attack::Show | Attack::Watch | Attack::Resolve | Attack::List | Attack::DryRun | Attack::Submit => {
            JobId::new(array.parse().unwrap())
        }
    };
    join_all(links.into_iter().map(|link| attack_with(link, attack, array))).await;
}

fn held(members: u32) -> JobSpec {
    JobSpec { held: true, ..array(members) }
}

/// A job that depends on all members of this array one by one.
fn dependent(array: JobId) -> JobSpec {
    let on = |index| Dependency { job: JobId::member(array.number, index), when: DependencyKind::AfterOk };
    JobSpec { depends_on: (0..DEPENDENCIES).map(on).collect(), ..no_op_job() }
}

fn report(beside: &str, times: BTreeMap<&str, Vec<Duration>>) {
    for (what, times) in times {
        print_figure("head-hostile", &format!("{what} beside {beside}"), &format_percentiles(times));
    }
}

fn large_job() -> JobSpec {
    JobSpec::command(vec!["/bin/true".to_owned(), "x".repeat(ARGUMENTS)], "/tmp".to_owned())
}

/// What a polite user asks, for a while.
async fn ask(link: &ClientServiceClient, array: JobId) -> BTreeMap<&'static str, Vec<Duration>> {
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let end = Instant::now() + SPAN;
    while Instant::now() < end {
        let begin = Instant::now();
        link.show(context_for(LIMIT), vec![JobId::member(array.number, 7)]).await.unwrap().unwrap();
        times.entry("show").or_default().push(begin.elapsed());
        let begin = Instant::now();
        link.list(context_for(LIMIT), Filter { limit: 20, ..Filter::default() }).await.unwrap().unwrap();
        times.entry("list").or_default().push(begin.elapsed());
        let begin = Instant::now();
        submit(link, no_op_job()).await;
        times.entry("submit").or_default().push(begin.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    times
}

/// Asks this without end; refusals are what it deserves.
async fn attack_with(link: ClientServiceClient, attack: Attack, array: JobId) {
    let one = || async {
        loop {
            let context = context_for(LIMIT);
            let ids = || (0..IDS).map(|index| JobId::member(array.number, index));
            match attack {
                Attack::Show => drop(link.show(context, ids().collect()).await),
                Attack::Watch => {
                    let known = ids().map(|job| JobRevision { job, revision: 0 });
                    drop(link.watch(context, known.collect()).await);
                }
                Attack::Resolve => {
                    let references = (0..IDS).map(|index| JobRef::Name(format!("no-such-job-{index}")));
                    drop(link.resolve(context, references.collect()).await);
                }
                Attack::List => {
                    let all = Filter { limit: u32::MAX, ..Filter::default() };
                    drop(link.list(context, all).await);
                }
                Attack::DryRun => drop(link.dry_run(context, Box::new(large_job())).await),
                Attack::Submit => drop(link.submit(context, Box::new(large_job()), None).await),
                Attack::Hold => {
                    drop(link.change_jobs(context, JobChange::Hold, vec![array]).await);
                    drop(link.change_jobs(context_for(LIMIT), JobChange::Release, vec![array]).await);
                }
                Attack::Depend => {
                    let accepted = link.submit(context, Box::new(dependent(array)), None).await;
                    if !matches!(accepted, Ok(Ok(_))) {
                        drop(link.change_jobs(context_for(LIMIT), JobChange::Cancel, vec![array]).await);
                    }
                }
            }
        }
    };
    join_all((0..IN_FLIGHT).map(|_| one())).await;
}
