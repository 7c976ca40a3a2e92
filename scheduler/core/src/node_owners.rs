//! The accounts that own nodes: the worker of such a node is not root and serves that account alone.

use std::collections::BTreeMap;

use cohabit_types::OwnerKey;

/// The accounts that own nodes. The key of each is the place of its first node in the order of joining.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct NodeOwners(BTreeMap<String, OwnerKey>);

impl NodeOwners {
    /// The owners of the nodes with these accounts and places.
    pub(crate) fn of<'n>(owned_nodes: impl Iterator<Item = (&'n str, u64)>) -> NodeOwners {
        let mut owners: BTreeMap<String, OwnerKey> = BTreeMap::new();
        for (account, ordinal) in owned_nodes {
            let own = OwnerKey(ordinal);
            owners.entry(account.to_owned()).and_modify(|key| *key = own.min(*key)).or_insert(own);
        }
        NodeOwners(owners)
    }

    pub(crate) fn key(&self, account: &str) -> Option<OwnerKey> {
        self.0.get(account).copied()
    }
}
