//! The levels of a share (section 4): multiples of the proportional share, within what the job may have.

use cohabit_types::{Bytes, Demand, HostShare};

use crate::NodeView;
use crate::sensitivity::JobCurve;

/// L: the number of levels.
pub const LEVELS: usize = 5;

/// Thirds of the proportional cores, and multiples of the proportional memory, of each level.
const MULTIPLES: [(u32, u64); LEVELS] = [(1, 1), (3, 1), (6, 1), (3, 2), (9, 2)];

/// The level of the proportional share.
pub(super) const PROPORTIONAL: usize = 1;

/// The share of each level; `None` where the job may not start at it.
pub(super) type LevelShares = [Option<HostShare>; LEVELS];

/// The shares of a job's levels on a node; `None` where a level is the same as one before, or is not free.
/// A job that gives no range has the proportional level alone.
pub(super) fn shares_of(node: &NodeView, demand: &Demand, curve: Option<&JobCurve>) -> LevelShares {
    let mut shares = [None; LEVELS];
    if !demand.is_fungible() {
        shares[PROPORTIONAL] = Some(node.starting_share(demand, demand.devices()));
        return shares;
    }
    let rights = node.fair_share(demand, demand.devices());
    shares[PROPORTIONAL] = Some(rights.at_most(node.host_free()).at_least(demand.least_host()));
    for level in (0..LEVELS).filter(|level| *level != PROPORTIONAL) {
        let (thirds, memory) = MULTIPLES[level];
        let wanted = HostShare {
            cpus: (rights.cpus * thirds).div_ceil(3),
            memory: Bytes(rights.memory.0.saturating_mul(memory)),
        };
        let wanted = wanted.at_least(demand.least_host()).at_most(demand.most_host());
        let share = curve.map_or(wanted, |curve| curve.knee(demand.least_host(), wanted));
        let is_new = !shares.contains(&Some(share));
        shares[level] = Some(share).filter(|share| is_new && share.is_within(node.host_free()));
    }
    shares
}

/// The shares for agents that know one level: the proportional share is all that a job may start with.
pub(super) fn fixed_share_of(node: &NodeView, demand: &Demand) -> LevelShares {
    let mut shares = [None; LEVELS];
    shares[0] = shares_of(node, demand, None)[PROPORTIONAL];
    shares
}
