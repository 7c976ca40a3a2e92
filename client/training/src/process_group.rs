//! The ranks that train one network together, each on its own part of every step's examples.
//!
//! A team of one exchanges nothing; a larger one meets by the environment that `torchrun`, or Cohabit, gives
//! to each rank, and then forms a [`Ring`]. All ranks hear the same sums, so all take the same steps and end
//! at the same one. What is printed, reported and saved is the first rank's business alone.

mod rendezvous;
mod ring;

use std::env;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};

use self::rendezvous::RankRendezvous;
use self::ring::Ring;

/// The ranks of a training; this process is one of them.
pub(crate) struct ProcessGroup {
    shard: Shard,
    /// To the other ranks, if there are any.
    ring: Option<Ring>,
}

/// Which part of each step's examples is this rank's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

/// What the signals of any rank ask of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignalRequests {
    /// To end after this step.
    pub(crate) end: bool,
    /// To save a checkpoint.
    pub(crate) checkpoint: bool,
}

impl ProcessGroup {
    /// This process and no other.
    pub(crate) fn alone() -> Self {
        Self { shard: Shard::ALL, ring: None }
    }

    /// The team that the environment tells of: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Waits for its
    /// other ranks.
    pub(crate) fn from_environment() -> Result<Self> {
        let shard = Shard { rank: number("RANK")?, ranks: number("WORLD_SIZE")? };
        ensure!(shard.rank < shard.ranks, "RANK is {} of WORLD_SIZE {}", shard.rank, shard.ranks);
        if shard.ranks == 1 {
            return Ok(Self::alone());
        }
        let meeting = RankRendezvous {
            name: ["COHABIT_JOB_ID", "COHABIT_ATTEMPT"]
                .map(|name| env::var(name).unwrap_or_default())
                .join("/"),
            rank: shard.rank,
            ranks: shard.ranks,
            host: variable("MASTER_ADDR")?,
            port: number("MASTER_PORT")?,
        };
        Self::meet(&meeting)
    }

    fn meet(meeting: &RankRendezvous) -> Result<Self> {
        let shard = Shard { rank: meeting.rank, ranks: meeting.ranks };
        Ok(Self { shard, ring: Some(meeting.form_ring()?) })
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn is_first(&self) -> bool {
        self.shard.rank == 0
    }

    /// Replaces the values by their sums over all ranks, the same bits everywhere.
    pub(crate) fn sum(&mut self, values: &mut [f32]) -> Result<()> {
        self.ring.as_mut().map_or(Ok(()), |ring| ring.sum(values))
    }

    /// What any rank wishes, all do.
    pub(crate) fn agree(&mut self, requests: SignalRequests) -> Result<SignalRequests> {
        let mut votes = [requests.end, requests.checkpoint].map(|wished| f32::from(u8::from(wished)));
        self.sum(&mut votes)?;
        let [end, checkpoint] = votes.map(|votes| votes > 0.0);
        Ok(SignalRequests { end, checkpoint })
    }

    /// What the first rank says to the others; to itself it says nothing.
    pub(crate) fn broadcast_from_first(
        &mut self,
        say: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(ring) = &mut self.ring else { return Ok(None) };
        if self.shard.rank == 0 {
            return ring.broadcast(say()?).map(|_| None);
        }
        ring.broadcast(Vec::new()).map(Some)
    }
}

impl Shard {
    /// That of a rank that is alone.
    pub(crate) const ALL: Shard = Shard { rank: 0, ranks: 1 };

    /// This rank's part of the examples of a step, and the weight of its mean among the means of all ranks.
    ///
    /// Where there are fewer examples than ranks, some look at one that does not count.
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
            "--data-parallel needs {name} in the environment: submit it with \
             `--launch per-gpu`, or start it by torchrun"
        )
    })
}

fn number<N: FromStr>(name: &str) -> Result<N> {
    let text = variable(name)?;
    text.parse().ok().with_context(|| format!("{name} is '{text}', which is no number for it"))
}

#[cfg(test)]
pub(crate) mod tests;
