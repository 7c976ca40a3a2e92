//! `models`: what the head has learned of interference.

use clap::{Args, Subcommand};
use cohabit_client::proto::ModelChoice;

use super::{ConnectionArguments, DisplayArguments};

// Arguments of `models`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArguments {
    #[command(subcommand)]
    verb: Option<ModelsVerb>,
    #[command(flatten)]
    list: ModelsListArguments,
}

// What to do with models, if they are not to be listed.
#[derive(Debug, Subcommand)]
enum ModelsVerb {
    /// Go by this version until told otherwise
    Use(ModelsUseArguments),
}

// Arguments of `models` that lists them.
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
    /// The number of a version; base, for what the head was started with; auto, for the best that it learns
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
        match &self.verb {
            Some(ModelsVerb::Use(arguments)) => Some(arguments.model),
            None => None,
        }
    }

    /// Of which head.
    pub(crate) fn connection(&self) -> &ConnectionArguments {
        match &self.verb {
            Some(ModelsVerb::Use(arguments)) => &arguments.connection,
            None => &self.list.connection,
        }
    }

    /// How the result is shown.
    pub(crate) fn display(&self) -> &DisplayArguments {
        match &self.verb {
            Some(ModelsVerb::Use(arguments)) => &arguments.display,
            None => &self.list.display,
        }
    }
}
