//! Arguments of `models`.

use clap::{Args, Subcommand};
use cohabit_client::types::ModelChoice;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;

// Arguments of `models`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArguments {
    #[command(subcommand)]
    verb: Option<ModelsVerb>,
    #[command(flatten)]
    list: ModelsListArguments,
}

// Commands on models other than to list them.
#[derive(Debug, Subcommand)]
enum ModelsVerb {
    /// Use this version until you choose another one
    Use(ModelsUseArguments),
}

// Arguments of `models` without a command.
#[derive(Debug, Args)]
struct ModelsListArguments {
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

// Arguments of `models use`.
#[derive(Debug, Args)]
struct ModelsUseArguments {
    /// Version number, 'base' for the source that the head was started with, or 'auto' for the best version
    #[arg(value_name = "VERSION")]
    model: ModelChoice,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

impl ModelsArguments {
    /// The model to choose; none where the models are only listed.
    pub(crate) fn choice(&self) -> Option<ModelChoice> {
        self.verb.as_ref().map(|ModelsVerb::Use(arguments)| arguments.model)
    }

    /// The head to ask.
    pub(crate) fn connection(&self) -> &ConnectionArguments {
        match &self.verb {
            Some(ModelsVerb::Use(arguments)) => &arguments.connection,
            None => &self.list.connection,
        }
    }

    /// The display flags.
    pub(crate) fn display(&self) -> &DisplayArguments {
        match &self.verb {
            Some(ModelsVerb::Use(arguments)) => &arguments.display,
            None => &self.list.display,
        }
    }
}
