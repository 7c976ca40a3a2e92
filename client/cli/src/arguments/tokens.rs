//! `token`: who may do what.

use clap::{Args, Subcommand, ValueEnum};
use cohabit_client::proto::{Role, Span};
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::values;

// Arguments of `token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token and print it; it is never shown again
    Create(TokenCreateArguments),
    /// List tokens, without their secrets
    List(TokenListArguments),
    /// Make a token worthless, at once
    Revoke(TokenRevokeArguments),
}

impl TokenVerb {
    /// How the result is shown.
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
    /// What it allows: join as a worker, submit jobs and change one's own, or everything
    #[arg(long, value_enum)]
    pub(crate) role: RoleArgument,
    /// Whose it is: the user's name on jobs; the role's name and a number without it
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The account on workers' machines as which its jobs run; the one named like the token without it
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// How long it is good for: 30d; for ever without it
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    pub(crate) expires: Option<Span>,
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
    /// The token's name, as `token list` shows it
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArgument {
    /// Join as a worker
    Worker,
    /// Submit jobs and change one's own
    User,
    /// Everything
    Admin,
}

impl From<RoleArgument> for Role {
    fn from(word: RoleArgument) -> Role {
        match word {
            RoleArgument::Worker => Role::Worker,
            RoleArgument::User => Role::User,
            RoleArgument::Admin => Role::Admin,
        }
    }
}
