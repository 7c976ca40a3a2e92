//! The training loop: steps until it is done, stopped, or has failed.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cohabit_fakes::mps::Fault;
use cohabit_fakes::{FakeWorld, GpuRoute};
use nix::sys::signal::{SigSet, Signal};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::errors::CudaError;
use crate::pace::step_time;
use crate::reports::{self, Progress};

/// The exit code, unless it failed.
pub(crate) fn run(arguments: &Arguments, world: &FakeWorld) -> Result<u8, CudaError> {
    let told_to_stop = listen(arguments)?;
    let mut context = Context::create(arguments, world)?;
    introduce(&context);
    context.allocate(arguments, arguments.alloc)?;
    if arguments.follow.is_some() {
        return follow(arguments, &context);
    }
    let mut followers = start_followers(arguments)?;
    let ended = train(arguments, &mut context, &told_to_stop);
    for follower in &mut followers {
        // It ends by itself when its input does.
        drop(follower.stdin.take());
        follower.wait()?;
    }
    ended
}

/// Marks the output as that of a fake.
fn introduce(context: &Context) {
    let gpu = &context.gpus[0];
    let by = match context.process.via {
        GpuRoute::Client(server) => format!("through MPS server {server}"),
        GpuRoute::Itself | GpuRoute::Server | GpuRoute::Foreign | GpuRoute::Graphics => "without MPS".into(),
    };
    let memory =
        context.limits.memory.map_or("no limit".into(), |bytes| format!("at most {} MiB", bytes >> 20));
    let percentage = context.limits.percentage;
    println!(
        "This is a fake CUDA program on {} ({}): {by}, memory: {memory}, compute: {percentage}%",
        gpu.model, gpu.uuid
    );
}

fn train(arguments: &Arguments, context: &mut Context, told_to_stop: &AtomicBool) -> Result<u8, CudaError> {
    let mut progress = Progress::open(arguments.steps)?;
    let begin = if arguments.checkpoint { reports::last_step() } else { 0 };
    for step in begin + 1..=arguments.steps {
        std::thread::sleep(step_time(arguments, context));
        for (_, bytes) in arguments.alloc_after.iter().filter(|(at, _)| *at == step) {
            context.allocate(arguments, *bytes)?;
        }
        if arguments.fault_at == Some(step) {
            context.fault(Fault::Memory)?;
            wait_for_fault(context);
        }
        if arguments.anonymous_fault_at == Some(step) {
            context.fault(Fault::Other)?;
            wait_for_fault(context);
        }
        match context.check() {
            Err(error) if arguments.ignore_fault => {
                println!("goes on in spite of: {error}");
                stay();
            }
            checked => checked?,
        }
        progress.report(step)?;
        if told_to_stop.load(Ordering::SeqCst) {
            reports::keep(step)?;
            println!("stopped at step {step}, which is kept");
            return Ok(0);
        }
        if arguments.hang_after == Some(step) {
            stay();
        }
    }
    Ok(arguments.exit)
}

/// The culprit gets the error at its next synchronisation, which is now.
fn wait_for_fault(context: &Context) {
    while context.check().is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

/// Handles SIGTERM as scripted; the flag becomes true when it has arrived and must be handled.
fn listen(arguments: &Arguments) -> Result<Arc<AtomicBool>, CudaError> {
    let told_to_stop = Arc::new(AtomicBool::new(false));
    if !arguments.ignore_term && !arguments.checkpoint {
        return Ok(told_to_stop);
    }
    let term = SigSet::from(Signal::SIGTERM);
    term.thread_block().map_err(std::io::Error::from)?;
    if arguments.checkpoint {
        let flag = Arc::clone(&told_to_stop);
        std::thread::spawn(move || flag.store(term.wait().is_ok(), Ordering::SeqCst));
    }
    Ok(told_to_stop)
}

/// The other processes of this program.
fn start_followers(arguments: &Arguments) -> Result<Vec<Child>, CudaError> {
    let program = std::env::args_os().next().unwrap_or_default();
    let pid = std::process::id().to_string();
    let follower = |_| -> std::io::Result<Child> {
        let mut command = Command::new(&program);
        // Scripted failures apply to the first process only.
        command.args(["--follow", &pid, "--alloc", &arguments.alloc.to_string()]).stdin(Stdio::piped());
        if let Some(world) = &arguments.world {
            command.arg("--world").arg(world);
        }
        let chosen = [(arguments.bypass_mps, "--bypass-mps"), (arguments.ignore_fault, "--ignore-fault")];
        command.args(chosen.iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag));
        if arguments.ignore_term || arguments.checkpoint {
            command.arg("--ignore-term");
        }
        command.spawn()
    };
    Ok((1..arguments.processes).map(follower).collect::<Result<_, _>>()?)
}

/// Uses the GPU as long as the first process does.
fn follow(arguments: &Arguments, context: &Context) -> Result<u8, CudaError> {
    let leader = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    while !leader.is_finished() {
        if !arguments.ignore_fault {
            context.check()?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(0)
}
