//! Which clients of an MPS server may take more memory than their rank: those that dropped the variable with
//! their limit, if the server's own limit is higher. It is that of the rank with the highest.

use std::collections::BTreeMap;

use cohabit_gpu::process::variable_of;
use cohabit_types::{Bytes, RankId};

use super::enforcement::RankPid;

/// The variable with the limit of a client.
const LIMIT: &str = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

/// The variable by which a client finds its daemon. A process that shows neither has ended, or cannot be
/// read, and says nothing about its limit.
const PIPE: &str = "CUDA_MPS_PIPE_DIRECTORY";

/// The limits of the ranks on a GPU, for each of their processes.
#[derive(Debug, Default, Clone)]
pub(crate) struct ClientLimits {
    of_ranks: BTreeMap<RankId, Bytes>,
    /// The limit that the server was seen to have for new clients.
    of_server: Option<Bytes>,
}

impl ClientLimits {
    pub(crate) fn insert(&mut self, rank: RankId, limit: Bytes) {
        self.of_ranks.insert(rank, limit);
    }

    pub(crate) fn remove(&mut self, rank: RankId) {
        self.of_ranks.remove(&rank);
    }

    /// What the server is to limit clients to, if there are any.
    pub(crate) fn highest(&self) -> Option<Bytes> {
        self.of_ranks.values().max().copied()
    }

    /// Notes the server's own limit, or that it has none.
    pub(crate) fn note_server(&mut self, limit: Option<Bytes>) {
        self.of_server = limit;
    }

    /// Of these processes, those that no limit keeps within that of their rank. Blocks.
    pub(crate) fn unlimited(&self, clients: &[RankPid]) -> Vec<RankPid> {
        self.unlimited_among(clients, |pid, name| variable_of(pid, name)?.into_string().ok())
    }

    fn unlimited_among(
        &self,
        clients: &[RankPid],
        variable_of: impl Fn(i32, &str) -> Option<String>,
    ) -> Vec<RankPid> {
        let is_limited = |(rank, pid): &RankPid| {
            let Some(limit) = self.of_ranks.get(rank) else { return true };
            let within = |other: Bytes| other <= *limit;
            match variable_of(*pid, LIMIT) {
                _ if self.of_server.is_some_and(within) => true,
                Some(text) => parse(&text).is_some_and(within),
                None => variable_of(*pid, PIPE).is_none(),
            }
        };
        clients.iter().filter(|client| !is_limited(client)).copied().collect()
    }
}

/// The limit for the only GPU of a client, in the form in which this worker sets it: `0=20480M`.
fn parse(text: &str) -> Option<Bytes> {
    let megabytes: u64 = text.strip_prefix("0=")?.strip_suffix('M')?.parse().ok()?;
    Some(Bytes(megabytes.checked_mul(1 << 20)?)).filter(|limit| *limit > Bytes::ZERO)
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobId;

    use super::*;

    fn rank(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    #[test]
    fn a_client_is_limited_by_its_variable_or_by_the_server() {
        let mut limits = ClientLimits::default();
        limits.insert(rank(1), Bytes(10 << 30));
        limits.insert(rank(2), Bytes(20 << 30));
        assert_eq!(limits.highest(), Some(Bytes(20 << 30)));
        let clients = [10, 11, 12, 13, 14].map(|pid| (rank(1), pid));
        let clients = [&clients[..], &[(rank(2), 20)]].concat();
        let variable = |pid, name: &str| match (pid, name) {
            (10, LIMIT) => Some("0=10240M".to_owned()),
            (11, LIMIT) => Some("0=20480M".to_owned()),
            (12, LIMIT) => Some("0=0M".to_owned()),
            // This one has ended.
            (14, _) => None,
            (_, PIPE) => Some("/pipe".to_owned()),
            _ => None,
        };
        let unlimited = |limits: &ClientLimits| limits.unlimited_among(&clients, variable);
        assert_eq!(unlimited(&limits), [(rank(1), 11), (rank(1), 12), (rank(1), 13), (rank(2), 20)]);
        limits.note_server(Some(Bytes(20 << 30)));
        assert_eq!(unlimited(&limits), [(rank(1), 11), (rank(1), 12), (rank(1), 13)]);
        limits.remove(rank(1));
        assert_eq!(unlimited(&limits), []);
    }
}
