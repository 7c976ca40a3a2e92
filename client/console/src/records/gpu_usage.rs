//! What an attempt did with its GPUs, in words.

use cohabit_types::{AttemptId, Bytes, Span, UsageRecord};

/// What an attempt did with its GPUs, all of its ranks together; nothing if that was not measured. `usage`
/// may have records of others.
#[must_use]
pub fn attempt_usage(usage: &[UsageRecord], attempt: AttemptId) -> Option<String> {
    let of_attempt = || usage.iter().filter(move |it| it.rank.attempt == attempt);
    let seconds = |part: fn(&UsageRecord) -> Span| of_attempt().map(part).map(Span::as_secs_f64).sum::<f64>();
    let measured = seconds(|it| it.usage.measured);
    if measured <= 0.0 {
        return None;
    }
    let busy = 100.0 * seconds(|it| it.usage.busy) / measured;
    let idle = seconds(|it| it.usage.idle);
    let fullest = of_attempt()
        .filter_map(|it| Some((it.usage.memory?, it.usage.capacity)))
        .max_by_key(|(memory, _)| *memory)
        .map(|(memory, capacity): (Bytes, Bytes)| format!("at most {memory} of {capacity}"));
    let energy = of_attempt().filter_map(|it| it.usage.energy).reduce(|sum, more| sum + more);
    let shared = of_attempt().any(|it| it.usage.shared);
    let parts = [
        Some(format!("{busy:.0}% busy of {}", whole_seconds(measured))),
        (idle > 0.0).then(|| format!("idle {}", whole_seconds(idle))),
        fullest,
        energy.map(|energy| format!("{energy:.1} Wh")),
        shared.then(|| "with other jobs on the GPU".to_owned()),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn whole_seconds(seconds: f64) -> Span {
    Span::from_secs_f64(seconds.round())
}

#[cfg(test)]
mod tests {
    use cohabit_types::{DeviceId, DeviceUsage, JobId, Share, Time, UsageCurve};

    use super::*;

    fn record(attempt: u32, measured: u64, busy: u64) -> UsageRecord {
        UsageRecord {
            rank: JobId::new(7).attempt(attempt).rank(0),
            user: "ada".into(),
            node: "gpu1".into(),
            share: Share::WHOLE,
            at: Time::EPOCH,
            live: false,
            usage: DeviceUsage {
                device: DeviceId("GPU-1".into()),
                held: Span::from_secs(measured),
                measured: Span::from_secs(measured),
                busy: Span::from_secs(busy),
                idle: Span::ZERO,
                memory: None,
                capacity: Bytes(80 << 30),
                energy: None,
                shared: false,
                curve: UsageCurve::default(),
            },
        }
    }

    #[test]
    fn all_ranks_of_an_attempt_count_and_no_other_attempt() {
        let job = JobId::new(7);
        let mut idle = record(2, 900, 0);
        idle.usage.idle = Span::from_secs(660);
        idle.usage.energy = Some(12.25);
        idle.usage.memory = Some(Bytes(3 << 30));
        idle.usage.shared = true;
        let usage = [record(1, 100, 100), record(2, 300, 120), idle];
        assert_eq!(attempt_usage(&usage, job.attempt(1)).unwrap(), "100% busy of 1 min 40 s");
        assert_eq!(
            attempt_usage(&usage, job.attempt(2)).unwrap(),
            "10% busy of 20 min 0 s, idle 11 min 0 s, at most 3 GiB of 80 GiB, 12.2 Wh, with other jobs on the GPU"
        );
        assert_eq!(attempt_usage(&usage, job.attempt(3)), None);
        assert_eq!(attempt_usage(&usage, JobId::new(8).attempt(1)), None);
        assert_eq!(attempt_usage(&[record(1, 0, 0)], job.attempt(1)), None);
    }
}
