//! Creates actors that share a job.

use std::fmt;
use std::future::{Future, ready};

use cohabit_application_core::{Lifetime, MAX_ACTORS};
use serde::{Deserialize, Serialize};

use crate::builder::ActorBuilder;
use crate::claim_setters::claim_setters;
use crate::described_actor::{DescribedActor, create_actors};
use crate::error::{Error, Result};
use crate::handle::{ActorPointer, RemoteActor};
use crate::options::{ActorOptions, Claims};
use crate::process::MemberProcess;

/// A change of what the attribute of an actor says.
type OptionChange = Box<dyn FnOnce(&mut ActorOptions) + Send>;

/// Actors that start, begin anew and end together: one job, of which each is a process.
///
/// ```no_run
/// # use cohabit::{Gang, GangMember, Result};
/// # struct Shard;
/// # #[cohabit::actor]
/// # impl Shard {
/// #     fn new(path: String, member: GangMember) -> Self { Shard }
/// #     fn gradient(&mut self, step: u64) -> f32 { 0.0 }
/// # }
/// # async fn train() -> Result<()> {
/// let gang = Gang::of(4).gpus(1).start().await?;
/// let shards = gang.spawn(|member| Shard::remote("/data/digits", member)).await?;
/// let gradient = shards[2].gradient(1).await?;
/// # Ok(())
/// # }
/// ```
///
/// - All of its processes get a place, or none. What each of them claims is what the attribute of the actors
///   says; the methods of the gang change it, for all of them.
/// - Members with one GPU each may be on any nodes, those without GPUs are on one node, and others each on a
///   node of their own. Cores and memory are claimed for all of them on each node that has one.
/// - If the process of one ends, or a method of one panics, all processes end and start again, `restarts`
///   times, with the next incarnation of each. If one is stopped, or its constructor fails, all end.
/// - They live as long as somebody holds a handle of any of them.
/// - With one GPU each, or none, their processes have the variables of `torchrun`: `RANK`, `WORLD_SIZE`,
///   `LOCAL_RANK`, `MASTER_ADDR`, `MASTER_PORT`.
#[must_use = "a gang is created by .spawn()"]
pub struct Gang {
    size: usize,
    changes: Result<Vec<OptionChange>>,
}

/// One of the members of a gang. It can be an argument of its constructor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GangMember {
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
}

impl Gang {
    /// A gang of so many members, 1 to 1,000.
    pub fn of(size: usize) -> Gang {
        Gang { size, changes: Ok(Vec::new()) }
    }

    claim_setters!();

    /// How often its processes may be started again after one of them ended.
    pub fn restarts(self, restarts: u32) -> Gang {
        self.set(Ok(restarts), |options, restarts| options.restarts = restarts)
    }

    /// Checks its size and each of its claims. Its processes start when [`spawn`](Gang::spawn) says what they
    /// run.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has no member or more than 1,000, or a claim is no number of GPUs or bytes.
    pub fn start(self) -> impl Future<Output = Result<Gang>> {
        ready(self.checked())
    }

    /// Creates its actors, each described by its own call of the function, and returns their handles by rank.
    /// It waits until the values of references in their arguments are known, and returns when the
    /// application knows them. Their processes start then, and calls wait for them.
    ///
    /// # Errors
    /// [`Error::Refused`] if they can never run, claim or live differently, or a name is taken;
    /// [`Error::Dependency`] if the call of a reference in their arguments failed.
    pub async fn spawn<A: RemoteActor>(
        self,
        mut describe: impl FnMut(GangMember) -> ActorBuilder<A>,
    ) -> Result<Vec<A::Handle>> {
        let Gang { size, changes } = self.checked()?;
        let process = MemberProcess::current()?;
        let described = (0..size).map(|rank| describe(GangMember { rank, size }).describe());
        let described = described.collect::<Result<Vec<DescribedActor>>>()?;
        let (lifetime, mut options) = common(&described)?;
        changes?.into_iter().for_each(|change| change(&mut options));
        let actors = create_actors(process, lifetime, &options, described).await?;
        Ok(actors.into_iter().map(|actor| A::handle(ActorPointer::held(process, actor))).collect())
    }

    fn checked(self) -> Result<Gang> {
        match self.size {
            1..=MAX_ACTORS => {}
            size => {
                let text = format!(
                    "a gang has 1 to {MAX_ACTORS} members, not {size}: give another number to Gang::of"
                );
                return Err(Error::Refused(text));
            }
        }
        let changes = Ok(self.changes?);
        Ok(Gang { changes, ..self })
    }

    fn claim<V: Send + 'static>(
        self,
        value: Result<V>,
        set: impl FnOnce(&mut Claims, V) + Send + 'static,
    ) -> Gang {
        self.set(value, |options, value| set(&mut options.claims, value))
    }

    fn set<V: Send + 'static>(
        mut self,
        value: Result<V>,
        set: impl FnOnce(&mut ActorOptions, V) + Send + 'static,
    ) -> Gang {
        match (&mut self.changes, value) {
            (Ok(changes), Ok(value)) => changes.push(Box::new(|options| set(options, value))),
            (Ok(_), Err(error)) => self.changes = Err(error),
            (Err(_), _) => {}
        }
        self
    }
}

/// How all of them live, and what their processes claim.
///
/// # Errors
/// If they differ.
fn common(described: &[DescribedActor]) -> Result<(Lifetime, ActorOptions)> {
    let of = |actor: &DescribedActor| (actor.lifetime, actor.options.claims, actor.options.restarts);
    let first = described.first().ok_or_else(|| Error::Refused("a gang has no member".into()))?;
    let other = described.iter().position(|actor| of(actor) != of(first));
    match other {
        None => Ok((first.lifetime, first.options)),
        Some(rank) => Err(Error::Refused(format!(
            "the members of a gang live alike and claim the same, and the one of rank {rank} is described \
             otherwise than that of rank 0: say what they claim with the methods of Gang"
        ))),
    }
}

impl fmt::Debug for Gang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gang").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gang_has_members() {
        for size in [0, MAX_ACTORS + 1] {
            let error = Gang::of(size).checked().map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(&format!("1 to 1000 members, not {size}")), "{error}");
        }
        let error = Gang::of(2).gpus(-1).restarts(2).checked().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("-1"), "{error}");
        assert!(Gang::of(2).gpus(0.5).gpus(2).memory("4G").enforced().checked().is_ok());
    }
}
