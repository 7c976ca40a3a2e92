//! `cohabit-sim`: simulated clusters under faults, from the command line.
//!
//! Data goes to standard output, messages to standard error. The exit code tells the worst that happened; a
//! command line that makes no sense is 64, for 2 means that something never ended.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Parser, Subcommand, ValueEnum};
use cohabit_sim::{Options, SwarmSummary, TraceDetail, command, run_twice};

/// Simulated clusters under faults, driven by the code of the real ones.
#[derive(Parser)]
#[command(name = "cohabit-sim", version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs seeds, each twice, and checks that every promise holds
    Swarm {
        /// Seeds from the first up to but without the last
        #[arg(long, value_name = "FIRST..LAST", value_parser = seeds, default_value = "0..200")]
        seeds: Range<u64>,
        /// So many threads, instead of one for each core
        #[arg(long)]
        threads: Option<NonZeroUsize>,
        #[command(flatten)]
        fixed: FixedOptions,
        /// How to print the result
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Repeats one seed and prints the end of its story
    Repeat {
        /// Which
        #[arg(long)]
        seed: u64,
        #[command(flatten)]
        fixed: FixedOptions,
        /// Print everything that happened
        #[arg(long)]
        trace: bool,
    },
}

#[derive(Args, Clone, Copy)]
struct FixedOptions {
    /// So many nodes in every cluster, instead of a number drawn from the seed
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// So many submissions, instead of a number drawn from the seed
    #[arg(long)]
    jobs: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// The exit code for a command line that makes no sense.
const USAGE: u8 = 64;

fn main() -> io::Result<ExitCode> {
    match Arguments::try_parse() {
        Ok(arguments) => act(arguments.action),
        Err(error) => {
            error.print()?;
            Ok(if error.use_stderr() { USAGE } else { 0 }.into())
        }
    }
}

fn act(action: Action) -> io::Result<ExitCode> {
    match action {
        Action::Swarm { seeds, threads, fixed, output } => {
            let threads = threads.or_else(|| std::thread::available_parallelism().ok());
            let summary = run_all(seeds, threads.map_or(1, NonZeroUsize::get), &fixed.options());
            match output {
                Output::Table => print_table(&summary)?,
                Output::Json => print_json(&summary)?,
            }
            Ok(summary.exit_code().into())
        }
        Action::Repeat { seed, fixed, trace } => {
            repeat(seed, &fixed.options(), if trace { TraceDetail::All } else { TraceDetail::Last(40) })
        }
    }
}

impl FixedOptions {
    const fn options(self) -> Options {
        Options { nodes: self.nodes, jobs: self.jobs }
    }
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("'{text}' is not a range of seeds: write it like 0..1000");
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first < last => Ok(first..last),
        _ => Err(wrong()),
    }
}

/// Every thread takes seed after seed.
fn run_all(seeds: Range<u64>, threads: usize, options: &Options) -> SwarmSummary {
    let (first, total) = (seeds.start, seeds.end - seeds.start);
    let next = AtomicU64::new(0);
    let all = Mutex::new(SwarmSummary::default());
    let work = || {
        while let Some(done) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|done| *done < total) {
            let seed = first + done;
            let run = run_twice(seed, options, TraceDetail::Nothing);
            let mut one = SwarmSummary::default();
            one.add(seed, options, run);
            all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join(one);
            show_progress(done, total);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Only for somebody who watches.
fn show_progress(done: u64, total: u64) {
    let mut errors = io::stderr();
    if errors.is_terminal() {
        let end = if done + 1 == total { "\n" } else { "" };
        // Nobody needs to hear that the terminal is gone.
        _ = write!(errors, "\r{} of {total} seeds{end}", done + 1);
    }
}

fn print_table(summary: &SwarmSummary) -> io::Result<()> {
    let mut out = io::stdout();
    for failed in &summary.failed {
        writeln!(out, "seed {}: {} at {:.6} s: {}", failed.seed, failed.kind, failed.at_s, failed.detail)?;
        print_lines(&mut out, &failed.job_events)?;
        writeln!(out, "  repeat it: {}", failed.command)?;
    }
    let SwarmSummary { seeds, events, ranks, crashes, breaks, clients, gpu_faults, simulated_s, .. } =
        summary;
    let days = simulated_s / 86_400.0;
    writeln!(out, "{seeds} seeds, {} failed", summary.failed.len())?;
    writeln!(
        out,
        "{events} events, {ranks} ranks ({clients} under MPS), {crashes} crashes, {breaks} broken links, \
         {gpu_faults} GPU faults in {days:.1} days"
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
            writeln!(out, "seed {seed} held: {events} events in {simulated}, digest {:016x}", run.digest)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(failure) => {
            writeln!(out, "seed {seed}: {failure}\nrepeat it: {}", command(seed, options))?;
            Ok(failure.kind.exit_code().into())
        }
    }
}

fn print_lines(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}
