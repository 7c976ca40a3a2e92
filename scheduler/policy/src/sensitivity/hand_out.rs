//! What is free on a node is handed out: to the job that gains most speed for a core, then for a byte of
//! memory.

use cohabit_types::{Bytes, HostShare};

use super::job_curve::JobCurve;

/// Speeds that differ by less are equal.
const NO_GAIN: f64 = 1e-9;

/// A job that may be given more.
#[derive(Debug, Clone)]
pub(crate) struct ShareClaim {
    /// What it has.
    pub(crate) share: HostShare,
    /// What it may have at most.
    pub(crate) most: HostShare,
    /// Its devices: what a gain of speed is worth.
    pub(crate) weight: f64,
    /// How fast it is with a share, if that is known.
    pub(crate) curve: Option<JobCurve>,
}

/// One step of the hand-out.
#[derive(Debug, Clone, Copy)]
struct Step {
    claim: usize,
    to: HostShare,
    /// What it gains for each unit of the resource.
    gain: f64,
}

/// Hands out what is free: in each step the job gets more that gains most speed for each core, over any
/// number of levels of its table; then for each byte of memory. Jobs of which nothing is known get what
/// nobody gains by, level by level, so that something becomes known. Returns what is left.
pub(crate) fn hand_out(mut free: HostShare, claims: &mut [ShareClaim]) -> HostShare {
    let mut cores = KnownSteps::of(claims);
    let mut memory = KnownSteps::of(claims);
    loop {
        let step = best(claims, |claim, it| cores.step(claim, it, free, |it| it.core_step(free.cpus)))
            .or_else(|| {
                best(claims, |claim, it| memory.step(claim, it, free, |it| it.memory_step(free.memory)))
            })
            .or_else(|| best(claims, |_, it| it.trial(free)));
        let Some(Step { claim, to, .. }) = step else { return free };
        (cores.0[claim], memory.0[claim]) = (None, None);
        let claim = &mut claims[claim];
        free = free.saturating_sub(to.saturating_sub(claim.share));
        claim.share = to;
    }
}

/// A share that a claim could go to, and its gain for each unit of the resource.
type Gain = (HostShare, f64);

/// The best steps of all claims, as far as they are known: that of a claim is looked for again once it has
/// another share, or too little is left for it.
struct KnownSteps(Vec<Option<Option<Gain>>>);

impl KnownSteps {
    fn of(claims: &[ShareClaim]) -> KnownSteps {
        KnownSteps(vec![None; claims.len()])
    }

    fn step(
        &mut self,
        claim: usize,
        it: &ShareClaim,
        free: HostShare,
        find: impl Fn(&ShareClaim) -> Option<Gain>,
    ) -> Option<Gain> {
        let fits =
            |step: &Option<Gain>| step.is_none_or(|(to, _)| to.saturating_sub(it.share).is_within(free));
        let known = self.0[claim].filter(fits);
        *self.0[claim].insert(known.unwrap_or_else(|| find(it)))
    }
}

/// The step with the largest gain; of equal ones that of the first claim.
fn best(claims: &[ShareClaim], mut step: impl FnMut(usize, &ShareClaim) -> Option<Gain>) -> Option<Step> {
    let steps = claims.iter().enumerate().filter_map(|(claim, it)| {
        let (to, gain) = step(claim, it)?;
        Some(Step { claim, to, gain })
    });
    steps.reduce(|best, step| if step.gain > best.gain + NO_GAIN { step } else { best })
}

impl ShareClaim {
    fn core_step(&self, free: u32) -> Option<Gain> {
        let curve = self.curve.as_ref()?;
        let most = self.most.cpus.min(self.share.cpus.saturating_add(free));
        let steps = curve.core_steps(self.share.cpus, most);
        let steps = steps.map(|cpus| (HostShare { cpus, ..self.share }, f64::from(cpus - self.share.cpus)));
        self.largest_gain(curve, steps)
    }

    fn memory_step(&self, free: Bytes) -> Option<Gain> {
        let curve = self.curve.as_ref()?;
        let most = self.most.memory.min(self.share.memory + free);
        let steps = curve.memory_steps(self.share.memory, most);
        let more = |memory: Bytes| memory.saturating_sub(self.share.memory).0 as f64;
        let steps = steps.map(|memory| (HostShare { memory, ..self.share }, more(memory)));
        self.largest_gain(curve, steps)
    }

    /// The step that gains most for each unit of the resource, if any gains something.
    fn largest_gain(&self, curve: &JobCurve, steps: impl Iterator<Item = (HostShare, f64)>) -> Option<Gain> {
        let now = curve.speed(self.share);
        let gains = steps.map(|(to, units)| (to, self.weight * (curve.speed(to) - now), units));
        let gains = gains.filter(|(_, gain, _)| *gain > NO_GAIN).map(|(to, gain, units)| (to, gain / units));
        gains.reduce(|best, step| if step.1 > best.1 + NO_GAIN * best.1 { step } else { best })
    }

    /// The next level of a job of which nothing is known, of one resource at a time: the job with the
    /// smallest part of its range first.
    fn trial(&self, free: HostShare) -> Option<Gain> {
        let HostShare { cpus, memory } = self.share;
        let more_cpus = cpus.clamp(1, 4).min(free.cpus).min(self.most.cpus.saturating_sub(cpus));
        let more_memory = memory.min(free.memory).min(self.most.memory.saturating_sub(memory));
        let part = |has: f64, most: f64| -has / most.max(1.0);
        match &self.curve {
            None if more_cpus > 0 => {
                let to = HostShare { cpus: cpus + more_cpus, memory };
                Some((to, part(f64::from(cpus), f64::from(self.most.cpus))))
            }
            Some(curve) if curve.knows_memory() => None,
            None if self.most.cpus > 0 => None,
            None | Some(_) if more_memory > Bytes::ZERO => {
                let to = HostShare { cpus, memory: memory + more_memory };
                Some((to, part(memory.0 as f64, self.most.memory.0 as f64)))
            }
            None | Some(_) => None,
        }
    }
}
