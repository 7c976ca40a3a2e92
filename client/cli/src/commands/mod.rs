//! The subcommands: one file for each, and the dispatch.
//!
//! A command returns an exit code or an error, and prints through `cohabit_console::output` only. Start
//! reading at [`dispatch`].

mod actors;
mod application_logs;
mod application_waits;
mod applications;
mod change;
mod code;
mod completions;
mod cp;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod dry_run;
mod error_output;
mod exec;
#[cfg(feature = "worker")]
mod executor;
mod explain;
#[cfg(feature = "export")]
mod export;
mod forward;
#[cfg(feature = "head")]
mod head;
mod history;
mod job_reference;
mod last;
mod line_merge;
mod list;
mod log_lines;
mod logs;
mod merged_logs;
mod metrics;
mod models;
mod nodes;
mod notebook;
#[cfg(feature = "notify")]
mod notify;
mod objects;
mod own_input;
#[cfg(feature = "worker")]
mod profile;
mod report;
mod reserve;
mod run;
mod selection;
#[cfg(all(feature = "head", feature = "worker"))]
mod service;
mod session_notices;
mod share;
mod shell;
mod show;
mod slurm;
mod slurm_shims;
mod snapshot;
mod submission;
mod submit;
mod sweep;
mod tasks;
mod terminal;
mod token;
mod top;
#[cfg(feature = "demo")]
mod train;
#[cfg(all(feature = "head", feature = "worker"))]
mod up;
mod update;
mod wait;
#[cfg(feature = "web")]
mod web;
mod worker;

use std::process::ExitCode;

use cohabit_client::types::JobChange;
use cohabit_console::CommandError;

use crate::arguments::Verb;
use crate::process::block_on;
use crate::script::Script;

/// Runs a subcommand. `script` is the script that the command of `submit` or `run` names.
pub(crate) fn dispatch(verb: Verb, script: Option<Script>) -> Result<ExitCode, CommandError> {
    match verb {
        Verb::Submit(arguments) => block_on(submit::submit(arguments, script)),
        Verb::Run(arguments) => block_on(run::run(arguments, script)),
        Verb::Sweep(arguments) => block_on(sweep::sweep(*arguments, script)),
        Verb::Shell(arguments) => block_on(shell::shell(arguments)),
        Verb::Exec(arguments) => block_on(exec::exec(arguments)),
        Verb::Notebook(arguments) => block_on(notebook::notebook(*arguments)),
        Verb::Cp(arguments) => block_on(cp::cp(arguments)),
        Verb::Forward(arguments) => block_on(forward::forward(arguments)),
        Verb::Attach(arguments) => block_on(shell::attach(arguments)),
        Verb::List(arguments) => block_on(list::list(arguments)),
        Verb::Last(arguments) => block_on(last::last(arguments)),
        Verb::History(arguments) => block_on(history::history(arguments)),
        Verb::Show(arguments) => block_on(show::show(arguments)),
        Verb::Logs(arguments) => block_on(logs::logs(arguments)),
        Verb::Metrics(arguments) => block_on(metrics::metrics(arguments)),
        Verb::Update(arguments) => block_on(update::update(arguments)),
        Verb::Wait(arguments) => block_on(wait::wait(arguments)),
        Verb::Cancel(arguments) => block_on(change::cancel(arguments)),
        Verb::Hold(arguments) => block_on(change::change(JobChange::Hold, arguments)),
        Verb::Release(arguments) => block_on(change::change(JobChange::Release, arguments)),
        Verb::Requeue(arguments) => block_on(change::change(JobChange::Requeue, arguments)),
        Verb::Explain(arguments) => block_on(explain::explain(arguments)),
        Verb::Applications(arguments) => block_on(applications::applications(arguments)),
        Verb::Actors(arguments) => block_on(actors::actors(arguments)),
        Verb::Tasks(arguments) => block_on(tasks::tasks(arguments)),
        Verb::Objects(arguments) => block_on(objects::objects(arguments)),
        Verb::Code(arguments) => block_on(code::code(arguments)),
        Verb::Nodes(arguments) => block_on(nodes::nodes(arguments)),
        Verb::Models(arguments) => block_on(models::models(arguments)),
        Verb::Report(arguments) => block_on(report::report(*arguments)),
        Verb::Share(arguments) => block_on(share::share(arguments)),
        Verb::Reserve(arguments) => block_on(reserve::reserve(arguments)),
        Verb::Token(arguments) => block_on(token::token(arguments.verb)),
        Verb::Worker(arguments) => worker::worker(arguments.verb),
        #[cfg(all(feature = "head", feature = "worker"))]
        Verb::Service(arguments) => service::service(&arguments),
        Verb::SlurmShims(arguments) => slurm_shims::slurm_shims(&arguments),
        Verb::Slurm(arguments) => block_on(slurm::slurm(arguments)),
        Verb::Top(arguments) => block_on(top::top(arguments)),
        #[cfg(feature = "web")]
        Verb::Web(arguments) => block_on(web::web(arguments)),
        #[cfg(feature = "export")]
        Verb::Export(arguments) => export::export(arguments),
        #[cfg(feature = "notify")]
        Verb::Notify(arguments) => notify::notify(arguments),
        Verb::Doctor(arguments) => doctor::doctor(arguments),
        #[cfg(feature = "simulate")]
        Verb::Simulate(arguments) => cohabit_lab::simulate::run(&arguments),
        #[cfg(all(feature = "simulate", feature = "predict"))]
        Verb::Policy(arguments) => cohabit_lab::policy::run(&arguments),
        #[cfg(feature = "predict")]
        Verb::Predict(arguments) => cohabit_lab::predict::run(&arguments),
        #[cfg(feature = "worker")]
        Verb::Profile(arguments) => profile::profile(&arguments),
        Verb::Completions(arguments) => completions::completions(arguments.shell),
        #[cfg(feature = "head")]
        Verb::Head(arguments) => head::head(arguments.verb),
        #[cfg(all(feature = "head", feature = "worker"))]
        Verb::Up(arguments) => up::up(arguments),
        #[cfg(feature = "worker")]
        Verb::Executor(_) | Verb::CopyReader => Ok(executor::run(&verb)),
        #[cfg(feature = "demo")]
        Verb::Demo(arguments) => demo::demo(arguments),
        #[cfg(feature = "demo")]
        Verb::Train(arguments) => Ok(train::train(&arguments.program)),
    }
}
