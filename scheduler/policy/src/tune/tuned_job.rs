//! What a job has in any case: as much as makes it as fast as its rightful share would.

use cohabit_types::{Demand, HostShare};

use crate::NodeView;
use crate::sensitivity::{JobCurve, ShareClaim};

/// A job that gets its part of a node, with what it has in any case.
#[derive(Debug, Clone)]
pub(super) struct TunedJob {
    /// What it needs.
    pub(super) least: HostShare,
    /// As much as makes it as fast as its rightful share: no more is kept for it, and no less.
    base: HostShare,
    most: HostShare,
    weight: f64,
    pub(super) curve: Option<JobCurve>,
    /// Whether it may be given more although nobody knows what for.
    may_try: bool,
}

impl TunedJob {
    /// The part of a job with this demand on a node. `least` is what can be left to it.
    pub(super) fn on(
        node: &NodeView,
        demand: &Demand,
        least: HostShare,
        curve: Option<JobCurve>,
    ) -> TunedJob {
        let devices = demand.devices();
        let rights = node.fair_share(demand, devices).at_least(least);
        let most = demand.most_host().at_least(least);
        let base = curve.as_ref().map_or(rights, |curve| curve.knee(least, rights));
        let weight = f64::from(devices.max(1)) * demand.share().as_f64();
        TunedJob { least, base, most, weight, curve, may_try: false }
    }

    /// The same, given more although nobody knows what for, or not.
    pub(super) fn open_to_trial(self, may_try: bool) -> TunedJob {
        TunedJob { may_try, ..self }
    }

    /// A claim that begins with this share, and may get as much as it has in any case.
    pub(super) fn up_to_base(&self, share: HostShare) -> ShareClaim {
        ShareClaim { most: self.base, ..self.up_to_most(share) }
    }

    /// A claim that begins with this share, and may get as much as it is allowed.
    pub(super) fn up_to_most(&self, share: HostShare) -> ShareClaim {
        let most = if self.curve.is_some() || self.may_try { self.most } else { share };
        ShareClaim { share, most, weight: self.weight, curve: self.curve.clone() }
    }

    /// How much work it does with this share, if that is known.
    pub(super) fn value(&self, share: HostShare) -> Option<f64> {
        self.curve.as_ref().map(|curve| self.weight * curve.speed(share))
    }
}
