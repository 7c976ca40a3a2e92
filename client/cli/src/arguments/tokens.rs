//! Arguments of `token`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use cohabit_client::types::{Role, Span};
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::values;

// Arguments of `token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

// Commands on tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Create a token and print it, or write it to a file; it cannot be shown again
    Create(TokenCreateArguments),
    /// List tokens without their secrets
    List(TokenListArguments),
    /// Revoke a token immediately
    Revoke(TokenRevokeArguments),
}

impl TokenVerb {
    /// The display flags.
    pub(crate) fn display(&self) -> &DisplayArguments {
        match self {
            TokenVerb::Create(arguments) => &arguments.display,
            TokenVerb::List(arguments) => &arguments.display,
            TokenVerb::Revoke(arguments) => &arguments.display,
        }
    }
}

// Arguments of `token create`.
#[derive(Debug, Args)]
pub(crate) struct TokenCreateArguments {
    /// Role of the token, which determines what it permits
    #[arg(long, value_enum)]
    pub(crate) role: RoleArgument,
    /// Name of the token and user name of its jobs [default: the role and a number]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Account that its jobs run under on the nodes [default: the name of the token]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Name of the one node that a worker with this token may be: the first worker of this name that joins
    /// with it keeps it
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Time after which the token expires, such as 30d, or never [default: 1 year for a user or viewer, or
    /// as the head is set; never for a worker or an admin]
    #[arg(long, value_name = "TIME", value_parser = values::parse_expiry)]
    pub(crate) expires: Option<Span>,
    /// Write the token to this new file, which only you can read, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `token list`.
#[derive(Debug, Args)]
pub(crate) struct TokenListArguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArguments {
    /// Name of the token, as shown by `cohabit token list`
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// The role of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArgument {
    /// Join as a worker
    Worker,
    /// Submit jobs and change the user's own jobs
    User,
    /// Perform any action
    Admin,
    /// Look at jobs, nodes and shares, without output and commands; change nothing
    Viewer,
}

impl From<RoleArgument> for Role {
    fn from(word: RoleArgument) -> Role {
        match word {
            RoleArgument::Worker => Role::Worker,
            RoleArgument::User => Role::User,
            RoleArgument::Admin => Role::Admin,
            RoleArgument::Viewer => Role::Viewer,
        }
    }
}
