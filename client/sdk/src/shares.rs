//! Who has which share of the cluster.

use cohabit_types::{ShareReport, ShareTable};

use crate::Error;
use crate::call::{Client, short_call_context};
use crate::link::HeadConnection;

impl Client {
    /// What everybody holds, used and is entitled to.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn shares(&self) -> Result<ShareReport, Error> {
        let shares = |to: HeadConnection| async move { to.service.shares(short_call_context()).await };
        Ok(*self.call(shares).await?)
    }

    /// Divides the cluster by this table from now on. For admins; nothing changes where it is refused.
    ///
    /// # Errors
    /// Those of the link, and what is wrong with the table.
    pub async fn apply_shares(&self, table: &ShareTable) -> Result<(), Error> {
        self.ask_to_apply(table, false).await
    }

    /// Checks a table as [`Client::apply_shares`] would, and changes nothing. For admins.
    ///
    /// # Errors
    /// Those of the link, and what is wrong with the table.
    pub async fn check_shares(&self, table: &ShareTable) -> Result<(), Error> {
        self.ask_to_apply(table, true).await
    }

    async fn ask_to_apply(&self, table: &ShareTable, dry_run: bool) -> Result<(), Error> {
        let apply = |to: HeadConnection| {
            let table = Box::new(table.clone());
            async move { to.service.apply_shares(short_call_context(), table, dry_run).await }
        };
        self.call(apply).await
    }
}
