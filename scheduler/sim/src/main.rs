//! `cohabit-sim`: runs simulated clusters and applications with faults from the command line.
//!
//! Data goes to standard output, messages to standard error. The exit code is that of the worst failure. An
//! invalid command line exits with 64, because 2 means that something never ended.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{Args, Parser, Subcommand, ValueEnum};
use cohabit_sim::{
    ApplicationSummary, Options, SwarmSummary, TraceDetail, application_command, command, run_application,
    run_twice,
};

/// Test the production code on simulated clusters and applications with faults
#[derive(Parser)]
#[command(name = "cohabit-sim", version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run seeds, each twice, and check that no invariant is violated
    Swarm {
        /// Range of seeds; LAST is excluded
        #[arg(long, value_name = "FIRST..LAST", value_parser = parse_seeds, default_value = "0..200")]
        seeds: Range<u64>,
        /// Number of threads [default: one for each CPU core]
        #[arg(long)]
        threads: Option<NonZeroUsize>,
        #[command(flatten)]
        fixed: FixedOptions,
        /// Output format
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Repeat one seed and print the end of its trace
    Repeat {
        /// The seed
        #[arg(long)]
        seed: u64,
        #[command(flatten)]
        fixed: FixedOptions,
        /// Print the whole trace
        #[arg(long)]
        trace: bool,
    },
    /// Run applications with actors and tasks, each seed twice, and check that no invariant is violated
    Applications {
        /// Range of seeds; LAST is excluded
        #[arg(long, value_name = "FIRST..LAST", value_parser = parse_seeds, default_value = "0..200")]
        seeds: Range<u64>,
        /// Number of threads [default: one for each CPU core]
        #[arg(long)]
        threads: Option<NonZeroUsize>,
        /// Repeat this one seed and print the end of its trace
        #[arg(long, conflicts_with_all = ["seeds", "threads"])]
        seed: Option<u64>,
        /// Print the whole trace
        #[arg(long, requires = "seed")]
        trace: bool,
    },
}

#[derive(Args, Clone, Copy)]
struct FixedOptions {
    /// Number of nodes in every cluster [default: drawn from the seed]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// Number of submissions [default: drawn from the seed]
    #[arg(long)]
    jobs: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// The exit code for an invalid command line.
const USAGE: u8 = 64;

fn main() -> io::Result<ExitCode> {
    match Arguments::try_parse() {
        Ok(arguments) => execute(arguments.action),
        Err(error) => {
            error.print()?;
            Ok(if error.use_stderr() { USAGE } else { 0 }.into())
        }
    }
}

fn execute(action: Action) -> io::Result<ExitCode> {
    match action {
        Action::Applications { seed: Some(seed), trace, .. } => repeat_application(seed, detail(trace)),
        Action::Applications { seed: None, seeds, threads, .. } => {
            let summary = run_applications(seeds, threads);
            print_applications(&summary)?;
            Ok(summary.exit_code().into())
        }
        Action::Swarm { seeds, threads, fixed, output } => {
            let summary = run_all(seeds, threads, &fixed.options());
            match output {
                Output::Table => print_table(&summary)?,
                Output::Json => print_json(&summary)?,
            }
            Ok(summary.exit_code().into())
        }
        Action::Repeat { seed, fixed, trace } => repeat(seed, &fixed.options(), detail(trace)),
    }
}

const fn detail(trace: bool) -> TraceDetail {
    if trace { TraceDetail::All } else { TraceDetail::Last(40) }
}

impl FixedOptions {
    const fn options(self) -> Options {
        Options { nodes: self.nodes, jobs: self.jobs }
    }
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let invalid = || format!("invalid range of seeds '{text}': expected FIRST..LAST, for example 0..1000");
    let (first, last) = text.split_once("..").ok_or_else(invalid)?;
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first < last => Ok(first..last),
        _ => Err(invalid()),
    }
}

fn run_all(seeds: Range<u64>, threads: Option<NonZeroUsize>, options: &Options) -> SwarmSummary {
    let all = Mutex::new(SwarmSummary::default());
    for_each_seed(seeds, threads, |seed| {
        let mut one = SwarmSummary::default();
        one.add(seed, options, run_twice(seed, options, TraceDetail::Nothing));
        all.lock().unwrap_or_else(PoisonError::into_inner).join(one);
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_applications(seeds: Range<u64>, threads: Option<NonZeroUsize>) -> ApplicationSummary {
    let all = Mutex::new(ApplicationSummary::default());
    for_each_seed(seeds, threads, |seed| {
        let mut one = ApplicationSummary::default();
        one.add(seed, run_application(seed, TraceDetail::Nothing));
        all.lock().unwrap_or_else(PoisonError::into_inner).join(one);
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the seeds; each thread takes the next one until none is left.
fn for_each_seed(seeds: Range<u64>, threads: Option<NonZeroUsize>, run: impl Fn(u64) + Sync) {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let (first, total) = (seeds.start, seeds.end - seeds.start);
    let next = AtomicU64::new(0);
    let work = || {
        while let Some(done) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|done| *done < total) {
            run(first + done);
            show_progress(done, total);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.map_or(1, NonZeroUsize::get) {
            scope.spawn(work);
        }
    });
}

/// Prints the progress if standard error is a terminal.
fn show_progress(done: u64, total: u64) {
    let mut errors = io::stderr();
    if errors.is_terminal() {
        let end = if done + 1 == total { "\n" } else { "" };
        // A lost terminal is no reason to stop.
        _ = write!(errors, "\r{} of {total} seeds{end}", done + 1);
    }
}

fn print_table(summary: &SwarmSummary) -> io::Result<()> {
    let mut out = io::stdout();
    for failed in &summary.failed {
        writeln!(out, "seed {}: {} at {:.6} s: {}", failed.seed, failed.kind, failed.at_s, failed.detail)?;
        print_lines(&mut out, &failed.job_events)?;
        writeln!(out, "  repeat with: {}", failed.command)?;
    }
    let SwarmSummary { seeds, events, ranks, crashes, breaks, clients, gpu_faults, .. } = summary;
    let SwarmSummary { stops, overdue_starts, simulated_s, .. } = summary;
    let days = simulated_s / 86_400.0;
    writeln!(out, "{seeds} seeds, {} failed", summary.failed.len())?;
    writeln!(
        out,
        "{events} events, {ranks} ranks ({clients} under MPS), {crashes} crashes, {breaks} broken links, \
         {gpu_faults} GPU faults, {stops} jobs stopped for others, {overdue_starts} started after too long a \
         wait in {days:.1} days"
    )
}

fn print_json(summary: &SwarmSummary) -> io::Result<()> {
    #[derive(serde::Serialize)]
    struct Document<'a> {
        schema: u32,
        #[serde(flatten)]
        summary: &'a SwarmSummary,
    }
    let mut out = io::stdout();
    serde_json::to_writer_pretty(&mut out, &Document { schema: 1, summary })?;
    writeln!(out)
}

fn repeat(seed: u64, options: &Options, keep: TraceDetail) -> io::Result<ExitCode> {
    let run = run_twice(seed, options, keep);
    let mut out = io::stdout();
    print_lines(&mut out, &run.trace)?;
    print_lines(&mut out, &run.job_events)?;
    let (events, simulated) = (run.counters.events, run.simulated);
    match run.failure {
        None => {
            writeln!(out, "seed {seed} passed: {events} events in {simulated}, digest {:016x}", run.digest)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(failure) => {
            writeln!(out, "seed {seed}: {failure}\nrepeat with: {}", command(seed, options))?;
            Ok(failure.kind.exit_code().into())
        }
    }
}

fn print_applications(summary: &ApplicationSummary) -> io::Result<()> {
    let mut out = io::stdout();
    for failed in &summary.failed {
        writeln!(out, "seed {}: {} at {:.6} s: {}", failed.seed, failed.kind, failed.at_s, failed.detail)?;
        writeln!(out, "  repeat with: {}", failed.command)?;
    }
    let it = &summary.counters;
    writeln!(out, "{} seeds, {} failed", summary.seeds, summary.failed.len())?;
    writeln!(
        out,
        "{} events, {} processes ({} killed), {} connections ({} broken), {} actors constructed {} times",
        it.events, it.processes, it.kills, it.dials, it.breaks, it.actors, it.constructions
    )?;
    writeln!(
        out,
        "{} calls, {} ended ({} with a value, {} by a restart), {} runs ended with nothing left",
        it.calls, it.finished, it.values, it.restarted, it.rests
    )?;
    writeln!(
        out,
        "{} tasks, {} ended ({} with a value, {} lost, {} without a runner, {} cancelled), {} deadlocks told",
        it.tasks,
        it.tasks_ended,
        it.task_values,
        it.task_losses,
        it.no_runners,
        it.cancelled_tasks,
        it.deadlocks
    )?;
    writeln!(
        out,
        "{} runners of tasks, {} starts ({} repeated), {} parked, {} given back, {} abandoned, \
         {} processes told to end",
        it.task_runners,
        it.task_starts,
        it.task_repeats,
        it.parked,
        it.returned,
        it.abandoned,
        it.orderly_ends
    )?;
    writeln!(
        out,
        "{} streams ({} sent to a further runner after items had arrived), {} items read, {} pauses",
        it.streams, it.resumed_streams, it.items, it.pauses
    )
}

fn repeat_application(seed: u64, keep: TraceDetail) -> io::Result<ExitCode> {
    let run = run_application(seed, keep);
    let mut out = io::stdout();
    print_lines(&mut out, &run.trace)?;
    let (events, simulated) = (run.counters.events, run.simulated);
    match run.failure {
        None => {
            writeln!(out, "seed {seed} passed: {events} events in {simulated}, digest {:016x}", run.digest)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(failure) => {
            writeln!(out, "seed {seed}: {failure}\nrepeat with: {}", application_command(seed))?;
            Ok(failure.kind.exit_code().into())
        }
    }
}

fn print_lines(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}
