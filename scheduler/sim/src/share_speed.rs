//! Measures how fast processes are with their shares of cores and host memory, relative to the proportional
//! share of their machine.

use cohabit_types::{Span, Time};

/// Tracks the speed of one process by its share, from its start on.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct ShareSpeedTracker {
    /// Since when the present speed holds; `None` before the process runs.
    present: Option<(Time, f64)>,
    past: ShareSpeed,
}

/// Device time, and the sum of that time multiplied by the speed in it.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct ShareSpeed {
    /// In seconds.
    device_time: f64,
    weighted: f64,
}

impl ShareSpeedTracker {
    /// Records that the process has this speed from now on.
    pub(crate) fn record(&mut self, now: Time, speed: f64) {
        self.past = self.total_at(now);
        self.present = Some((now, speed));
    }

    /// The time of one device up to this moment.
    pub(crate) fn total_at(&self, now: Time) -> ShareSpeed {
        let Some((since, speed)) = self.present else { return self.past };
        self.past + ShareSpeed::of(now.since(since), speed)
    }
}

impl ShareSpeed {
    fn of(span: Span, speed: f64) -> ShareSpeed {
        let device_time = span.as_secs_f64();
        ShareSpeed { device_time, weighted: device_time * speed }
    }

    /// The same on so many devices.
    pub(crate) fn on_devices(self, devices: f64) -> ShareSpeed {
        ShareSpeed { device_time: self.device_time * devices, weighted: self.weighted * devices }
    }

    /// The mean speed, weighted by device time; 1 without any.
    #[cfg(feature = "learned")]
    pub(crate) fn mean(self) -> f64 {
        if self.device_time > 0.0 { self.weighted / self.device_time } else { 1.0 }
    }
}

impl std::ops::Add for ShareSpeed {
    type Output = ShareSpeed;
    fn add(self, other: ShareSpeed) -> ShareSpeed {
        ShareSpeed {
            device_time: self.device_time + other.device_time,
            weighted: self.weighted + other.weighted,
        }
    }
}

impl std::iter::Sum for ShareSpeed {
    fn sum<I: Iterator<Item = ShareSpeed>>(all: I) -> ShareSpeed {
        all.fold(ShareSpeed::default(), std::ops::Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_speed_is_weighted_by_device_time() {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let mut process = ShareSpeedTracker::default();
        assert_eq!(process.total_at(at(5)), ShareSpeed::default());
        process.record(at(5), 1.0);
        process.record(at(15), 2.0);
        let one = process.total_at(at(25)).on_devices(1.0);
        let other = ShareSpeed::of(Span::from_secs(10), 0.5).on_devices(2.0);
        assert_eq!(one, ShareSpeed { device_time: 20.0, weighted: 30.0 });
        assert_eq!(one + other, ShareSpeed { device_time: 40.0, weighted: 40.0 });
    }
}
