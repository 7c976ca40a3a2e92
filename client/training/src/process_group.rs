//! The ranks that train one network together, each on its part of the examples of every step.
//!
//! A group of one exchanges nothing. The ranks of a larger group find each other through the environment
//! variables that `torchrun` or Cohabit sets, and form a [`Ring`]. All ranks receive the same sums, so all
//! take the same steps and stop after the same one. Only the first rank prints, reports and saves.

mod rendezvous;
mod ring;

use std::env;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};

use self::rendezvous::RankRendezvous;
use self::ring::Ring;

/// The group of ranks that this process belongs to.
pub(crate) struct ProcessGroup {
    shard: Shard,
    /// The connections to other ranks, if there are any.
    ring: Option<Ring>,
}

/// The part of the examples of each step that a rank processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

/// Requests that signals to any rank make to all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignalRequests {
    /// Stop after this step.
    pub(crate) end: bool,
    /// Save a checkpoint.
    pub(crate) checkpoint: bool,
}

impl ProcessGroup {
    /// A group of this process only.
    pub(crate) fn alone() -> Self {
        Self { shard: Shard::ALL, ring: None }
    }

    /// The group that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe. Waits for the other ranks.
    pub(crate) fn from_environment() -> Result<Self> {
        let shard = Shard { rank: number("RANK")?, ranks: number("WORLD_SIZE")? };
        ensure!(shard.rank < shard.ranks, "RANK is {} of WORLD_SIZE {}", shard.rank, shard.ranks);
        if shard.ranks == 1 {
            return Ok(Self::alone());
        }
        let rendezvous = RankRendezvous {
            name: ["COHABIT_JOB_ID", "COHABIT_ATTEMPT"]
                .map(|name| env::var(name).unwrap_or_default())
                .join("/"),
            rank: shard.rank,
            ranks: shard.ranks,
            host: variable("MASTER_ADDR")?,
            port: number("MASTER_PORT")?,
        };
        Self::join(&rendezvous)
    }

    fn join(rendezvous: &RankRendezvous) -> Result<Self> {
        let shard = Shard { rank: rendezvous.rank, ranks: rendezvous.ranks };
        Ok(Self { shard, ring: Some(rendezvous.form_ring()?) })
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn is_first(&self) -> bool {
        self.shard.rank == 0
    }

    /// Replaces the values with their sums over all ranks; every rank gets the same bits.
    pub(crate) fn sum(&mut self, values: &mut [f32]) -> Result<()> {
        self.ring.as_mut().map_or(Ok(()), |ring| ring.sum(values))
    }

    /// Combines the requests of all ranks: what one rank requests, all ranks do.
    pub(crate) fn agree(&mut self, requests: SignalRequests) -> Result<SignalRequests> {
        let mut votes = [requests.end, requests.checkpoint].map(|requested| f32::from(u8::from(requested)));
        self.sum(&mut votes)?;
        let [end, checkpoint] = votes.map(|votes| votes > 0.0);
        Ok(SignalRequests { end, checkpoint })
    }

    /// Sends bytes of the first rank to all others; returns none on the first rank.
    pub(crate) fn broadcast_from_first(
        &mut self,
        message: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(ring) = &mut self.ring else { return Ok(None) };
        if self.shard.rank == 0 {
            return ring.broadcast(message()?).map(|_| None);
        }
        ring.broadcast(Vec::new()).map(Some)
    }
}

impl Shard {
    /// The shard of a single rank.
    pub(crate) const ALL: Shard = Shard { rank: 0, ranks: 1 };

    /// This rank's part of the examples of a step, and the weight of its mean among those of all ranks.
    ///
    /// If there are fewer examples than ranks, some ranks get an example with weight 0.
    pub(crate) fn part<'a, T>(&self, examples: &'a [T]) -> (&'a [T], f64) {
        let edge = |rank: u32| examples.len() * rank as usize / self.ranks as usize;
        let part = &examples[edge(self.rank)..edge(self.rank + 1)];
        match part.len() {
            0 => (&examples[..1], 0.0),
            count => (part, count as f64 / examples.len() as f64),
        }
    }
}

fn variable(name: &str) -> Result<String> {
    env::var(name).ok().filter(|value| !value.is_empty()).with_context(|| {
        format!(
            "--data-parallel needs the environment variable {name}: submit the job with `--launch per-gpu`, or start \
             it with torchrun"
        )
    })
}

fn number<N: FromStr>(name: &str) -> Result<N> {
    let text = variable(name)?;
    text.parse().ok().with_context(|| format!("{name} is '{text}', which is not a valid number"))
}

#[cfg(test)]
pub(crate) mod tests;
