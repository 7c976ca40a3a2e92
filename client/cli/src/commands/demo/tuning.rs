//! `demo --tune`: two training jobs that give ranges of cores, and a head that is told how much each gains by
//! them.
//!
//! One job draws distorted images with as many threads as it may have cores, the other computes with one.
//! First they run with proportional shares. Then the head is started again with `tune=on`, and the jobs
//! exchange cores while they run. Where the worker cannot change shares, the jobs run once, and the output
//! says that nothing was enforced.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cohabit_client::types::{Enforcement, JobId, JobRecord, NodeRecord, counted};
use cohabit_client::{Client, JobBuilder};
use cohabit_console::{CommandError, CommandErrorKind, Screen, output};

use super::cluster::DemoCluster;
use super::cpu_time::{CpuClock, CpuUse};
use super::jobs::this_program;
use super::speeds::{JobReading, JobSpeed, line, report};
use crate::config::{RawSettings, SettingKey};
use crate::daemon::run_blocking;

const POLICY: &str = "hybrid:tune=on";
const TABLE: &str = "sensitivity.csv";
/// With fewer cores, each job holds one, or one core is free anyway.
const FEWEST_CORES: u32 = 4;
/// Points of each pixel, squared: drawing them takes most of the time of a step.
const POINTS: &str = "24";
/// More than can be done: the jobs are cancelled in the end.
const EPOCHS: &str = "100000000";
const STEPS: &str = "1000000000";
const TIME_LIMIT: Duration = Duration::from_secs(900);

/// A line is printed this often.
const PERIOD: Duration = Duration::from_secs(2);
/// A job gets used to its share,
const SETTLING: u32 = 2;
/// and then its speed is measured, over at least so many periods and steps.
const MEASURED: u32 = 6;
const FEWEST_STEPS: u64 = 10;
/// A job is first changed 30 s after its start. A machine that is interpreted makes few steps.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Runs the jobs and prints what they hold, use and do.
pub(super) async fn show(cluster: &mut DemoCluster) -> Result<(), CommandError> {
    let node = cluster.client.nodes().await?.into_iter().next();
    let node = node.ok_or_else(|| CommandError::new(CommandErrorKind::Internal, "the worker has left"))?;
    output::print_text(&introduction(&node))?;
    if let Some(why) = why_fixed(&node) {
        output::print_text(&why)?;
        cluster.restart_head(tuned(cluster, node.cpus).await?).await?;
        let mut watch = Watch::start(cluster, &node).await?;
        let speeds = watch.measure(cluster).await?;
        let phases = [("fixed", speeds)];
        return output::print_text(&format!("\n{}", report(&watch.names(), &phases, Screen::of_stdout())));
    }
    let mut watch = Watch::start(cluster, &node).await?;
    let before = watch.measure(cluster).await?;
    output::print_text(&format!("The head is started again with --policy {POLICY}; the jobs go on.\n"))?;
    cluster.restart_head(tuned(cluster, node.cpus).await?).await?;
    watch.until_first_has_more(cluster).await?;
    let after = watch.measure(cluster).await?;
    let phases = [("proportional", before), ("tuned", after)];
    output::print_text(&format!("\n{}", report(&watch.names(), &phases, Screen::of_stdout())))
}

fn introduction(node: &NodeRecord) -> String {
    let (cores, most) = (node.cpus, most_cores(node));
    format!(
        "A head and a worker with two host slots are running in this process, on {cores} cores. Two training jobs take\n\
         a slot each and may have 1 to {most} cores: digits draws distorted images with {most} threads, charlm computes \
         with one.\n"
    )
}

/// What a job may have at most: all cores but the one that the other job needs.
fn most_cores(node: &NodeRecord) -> u32 {
    node.cpus.saturating_sub(1).max(2)
}

/// Why no cores can be exchanged on this node, if so.
fn why_fixed(node: &NodeRecord) -> Option<String> {
    match &node.isolation.host_limits {
        Enforcement::Unenforced(why) => Some(format!(
            "This worker cannot limit cores, so shares stay as they are and nothing here was enforced:\n{why}.\n\
             ALLOTTED is what the head accounts for, CPU USED is what the process of the job took, by /proc.\n"
        )),
        Enforcement::Enforced if node.cpus < FEWEST_CORES => Some(format!(
            "This node has {}: each job needs one of them, and an exchange needs {FEWEST_CORES}.\n",
            counted(node.cpus, "core", "cores")
        )),
        Enforcement::Enforced => None,
    }
}

/// The settings of a head that tunes, with a table of how much each job gains by cores.
async fn tuned(cluster: &DemoCluster, cores: u32) -> Result<RawSettings, CommandError> {
    let file = cluster.folder().join(TABLE);
    let setting = file.display().to_string();
    let written = move || std::fs::write(&file, sensitivity(cores)).map_err(|error| failed(&file, &error));
    run_blocking(written).await?;
    Ok([(SettingKey::Policy, POLICY.to_owned()), (SettingKey::Sensitivity, setting)].into())
}

fn failed(file: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("{}: {error}", file.display()))
}

/// `digits` is as much faster as it has more cores, `charlm` is not.
fn sensitivity(cores: u32) -> String {
    let rows = (1..=cores).map(|cores| format!("digits,{cores},,{cores}\ncharlm,{cores},,1\n"));
    "profile,cores,memory_gb,speed\n".to_owned() + &rows.collect::<String>()
}

/// The two jobs, and when they were looked at last.
struct Watch {
    began: Instant,
    jobs: Vec<WatchedTraining>,
    folder: PathBuf,
    is_enforced: bool,
}

struct WatchedTraining {
    id: JobId,
    name: &'static str,
    clock: Option<CpuClock>,
    last: Option<JobReading>,
}

impl Watch {
    /// Submits both jobs.
    async fn start(cluster: &DemoCluster, node: &NodeRecord) -> Result<Watch, CommandError> {
        let most = most_cores(node);
        let threads = most.to_string();
        let loader = ["--hidden", "64", "--distort", POINTS, "--loader-threads", &threads];
        let digits = [&["digits", "--epochs", EPOCHS], &loader[..]].concat();
        let charlm = ["charlm", "--steps", STEPS, "--hidden", "64", "--batch-size", "8"];
        let mut jobs = Vec::new();
        for (name, words) in [("digits", &digits[..]), ("charlm", &charlm[..])] {
            let id = submit(cluster, name, words, most).await?;
            jobs.push(WatchedTraining { id, name, clock: None, last: None });
        }
        let is_enforced = node.isolation.host_limits == Enforcement::Enforced;
        Ok(Watch { began: Instant::now(), jobs, folder: cluster.folder().to_owned(), is_enforced })
    }

    fn names(&self) -> Vec<String> {
        self.jobs.iter().map(|job| job.name.to_owned()).collect()
    }

    /// Waits until both jobs make steps with their present shares, and measures.
    async fn measure(&mut self, cluster: &DemoCluster) -> Result<Vec<JobSpeed>, CommandError> {
        let begin = Instant::now();
        while self.jobs.iter().any(|job| job.last.is_none()) {
            self.look(&cluster.client).await?;
            self.check_patience(begin)?;
        }
        for _ in 0..SETTLING {
            self.look(&cluster.client).await?;
        }
        let before: Vec<Option<JobReading>> = self.jobs.iter().map(|job| job.last).collect();
        let begin = Instant::now();
        for period in 1.. {
            self.look(&cluster.client).await?;
            if period >= MEASURED && self.fewest_steps(&before) >= FEWEST_STEPS {
                break;
            }
            self.check_patience(begin)?;
        }
        let both = self.jobs.iter().zip(before);
        Ok(both.filter_map(|(job, before)| Some(job.last?.since(before?))).collect())
    }

    /// The steps since these readings of the job that made fewest.
    fn fewest_steps(&self, before: &[Option<JobReading>]) -> u64 {
        let both = self.jobs.iter().zip(before);
        let steps = both.filter_map(|(job, before)| Some(job.last?.step.saturating_sub((*before)?.step)));
        steps.min().unwrap_or(0)
    }

    /// Waits until the first job has got more cores.
    async fn until_first_has_more(&mut self, cluster: &DemoCluster) -> Result<(), CommandError> {
        let cores = |watch: &Watch| watch.jobs.first().and_then(|job| job.last).map(|last| last.cores);
        let (begin, before) = (Instant::now(), cores(self));
        while cores(self) <= before {
            self.look(&cluster.client).await?;
            self.check_patience(begin)?;
        }
        Ok(())
    }

    fn check_patience(&self, begin: Instant) -> Result<(), CommandError> {
        if begin.elapsed() < LONGEST_WAIT {
            return Ok(());
        }
        let jobs: Vec<String> = self.jobs.iter().map(|job| format!("{} ({})", job.id, job.name)).collect();
        let message = format!(
            "nothing happened to the jobs {} within {} s: is the machine busy?",
            jobs.join(" and "),
            LONGEST_WAIT.as_secs()
        );
        Err(CommandError::new(CommandErrorKind::Internal, message))
    }

    /// Looks at both jobs after a period, and prints a line.
    async fn look(&mut self, client: &Client) -> Result<(), CommandError> {
        tokio::time::sleep(PERIOD).await;
        let ids: Vec<JobId> = self.jobs.iter().map(|job| job.id).collect();
        let records = client.show(&ids).await?;
        let mut parts = Vec::new();
        for (job, record) in self.jobs.iter_mut().zip(&records) {
            check_alive(record)?;
            let cpu = job.cpu_use(self.folder.clone(), self.is_enforced).await?;
            let reading = cpu.and_then(|cpu| reading(record, cpu));
            if let (Some(last), Some(now)) = (job.last, reading) {
                parts.push(line(job.name, now.since(last)));
            }
            job.last = reading.or(job.last);
        }
        if parts.len() < self.jobs.len() {
            return Ok(());
        }
        let seconds = self.began.elapsed().as_secs_f64();
        output::print_text(&format!("{seconds:6.1} s  {}", parts.join("   ")))
    }
}

impl WatchedTraining {
    async fn cpu_use(&mut self, folder: PathBuf, is_enforced: bool) -> Result<Option<CpuUse>, CommandError> {
        let (id, clock) = (self.id, self.clock.take());
        let found = move || {
            let clock = clock.or_else(|| CpuClock::of_job(id, &folder, is_enforced));
            let used = clock.as_ref().and_then(CpuClock::read);
            Ok((clock, used))
        };
        let (clock, used) = run_blocking(found).await?;
        self.clock = clock;
        Ok(used)
    }
}

fn reading(record: &JobRecord, cpu: CpuUse) -> Option<JobReading> {
    let progress = record.progress.as_ref()?;
    let cores = record.latest()?.host.first()?.cpus;
    Some(JobReading { at: Instant::now(), cores, cpu, step: progress.step, step_at: progress.at })
}

fn check_alive(record: &JobRecord) -> Result<(), CommandError> {
    if !record.state.is_terminal() {
        return Ok(());
    }
    let message =
        format!("job {} of the demo ended with state {}: {}", record.id, record.state, record.reason);
    Err(CommandError::new(CommandErrorKind::Internal, message))
}

async fn submit(
    cluster: &DemoCluster,
    name: &str,
    words: &[&str],
    cores: u32,
) -> Result<JobId, CommandError> {
    let job = JobBuilder::new(this_program()?)
        .arg("train")
        .args(words.iter().copied())
        .name(name)
        .gpus(1.0)
        .cpus(1)
        .cpus_up_to(cores)
        .time_limit(TIME_LIMIT)
        .workdir(cluster.folder());
    Ok(job.submit(&cluster.client).await?.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lets_only_one_of_the_jobs_gain() {
        assert_eq!(
            sensitivity(2),
            "profile,cores,memory_gb,speed\ndigits,1,,1\ncharlm,1,,1\ndigits,2,,2\ncharlm,2,,1\n"
        );
    }
}
