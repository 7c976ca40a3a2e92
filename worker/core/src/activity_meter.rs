//! When a rank of an interactive job last did something, as far as its GPUs do not tell: it has none, or it
//! shares them, and the driver tells how busy a GPU is, not who keeps it busy (decision 065).

use std::collections::BTreeMap;

use cohabit_types::{Bytes, DeviceId, Span, Time};

/// An open shell, or a notebook server without a running cell, takes less of a core than this.
const ACTIVE_FROM: f64 = 0.05;

/// The longest time over which processor time is measured: short work, such as a prompt that is drawn, shall
/// not count.
const LONGEST_WINDOW: Span = Span::from_secs(60);

/// So many windows lie within the time after which a rank is told to be idle, at least.
const WINDOWS: u64 = 4;

/// The signs of life of one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActivityMeter {
    window_length: Span,
    /// When the present window began, and what was taken in it.
    window: Option<(Time, Span)>,
    /// The processor time that was read last.
    last_read: Span,
    /// Since when there was no sign, once there were readings.
    quiet_since: Option<Time>,
    /// What it held when it was last seen.
    memory: BTreeMap<DeviceId, Bytes>,
}

impl ActivityMeter {
    /// Of a rank that is told to be idle after this time.
    pub(crate) fn new(idle_after: Span) -> ActivityMeter {
        let window_length = Span::from_micros(idle_after.as_micros() / WINDOWS).min(LONGEST_WINDOW);
        ActivityMeter {
            window_length,
            window: None,
            last_read: Span::ZERO,
            quiet_since: None,
            memory: BTreeMap::new(),
        }
    }

    /// Its processes have taken so much processor time since it started.
    pub(crate) fn read_processor_time(&mut self, now: Time, used: Span) {
        let before = std::mem::replace(&mut self.last_read, used);
        let Some((began, taken)) = self.window else {
            self.window = Some((now, Span::ZERO));
            return self.acted(now);
        };
        if used < before {
            // Without cgroups, the time of processes for which nobody waited goes with them.
            self.acted(now);
        }
        let (length, taken) = (now.since(began), taken + (used - before));
        if length < self.window_length {
            self.window = Some((began, taken));
            return;
        }
        self.window = Some((now, Span::ZERO));
        let of_a_core = taken.as_secs_f64() / length.as_secs_f64().max(1e-6);
        // What happened in a gap between readings is unknown.
        let is_gap = length > self.window_length + LONGEST_WINDOW;
        if of_a_core >= ACTIVE_FROM || is_gap {
            self.acted(now);
        }
    }

    /// It holds so much memory of a GPU.
    pub(crate) fn read_memory(&mut self, now: Time, device: &DeviceId, memory: Bytes) {
        if self.memory.insert(device.clone(), memory) != Some(memory) {
            self.acted(now);
        }
    }

    /// It has certainly done something.
    pub(crate) fn acted(&mut self, now: Time) {
        self.quiet_since = Some(now);
    }

    /// Since when it has done nothing, as far as this meter tells; `None` before its processor time was read.
    pub(crate) fn quiet_since(&self) -> Option<Time> {
        self.quiet_since.filter(|_| self.window.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    /// Told after 20 minutes, so read over whole minutes.
    fn meter() -> ActivityMeter {
        ActivityMeter::new(Span::from_secs(1_200))
    }

    #[test]
    fn it_is_quiet_while_it_takes_less_than_a_twentieth_of_a_core() {
        let mut meter = meter();
        assert_eq!(meter.quiet_since(), None);
        // The server of a notebook: a hundredth of a core.
        (0..=300).step_by(2).for_each(|secs| {
            meter.read_processor_time(at(secs), Span::from_millis(50_000 + secs * 10));
        });
        assert_eq!(meter.quiet_since(), Some(at(0)));
        meter.read_processor_time(at(360), Span::from_millis(60_000));
        assert_eq!(meter.quiet_since(), Some(at(360)));
    }

    #[test]
    fn a_prompt_that_is_drawn_is_no_work() {
        let mut meter = meter();
        for minute in 0..10 {
            // Half a second of work for each key that is pressed, one a minute.
            meter.read_processor_time(at(minute * 60), Span::from_millis(minute * 500));
            meter.read_processor_time(at(minute * 60 + 2), Span::from_millis(minute * 500 + 500));
        }
        assert_eq!(meter.quiet_since(), Some(at(0)));
    }

    #[test]
    fn other_signs_count_and_gaps_are_unknown() {
        let mut meter = meter();
        meter.read_processor_time(at(0), Span::ZERO);
        let device = DeviceId("gpu".into());
        meter.read_memory(at(10), &device, Bytes(5));
        meter.read_memory(at(20), &device, Bytes(5));
        assert_eq!(meter.quiet_since(), Some(at(10)));
        meter.acted(at(30));
        assert_eq!(meter.quiet_since(), Some(at(30)));
        meter.read_processor_time(at(3_000), Span::ZERO);
        assert_eq!(meter.quiet_since(), Some(at(3_000)));
    }

    #[test]
    fn processes_for_which_nobody_waits_are_a_sign_of_life() {
        let mut meter = meter();
        meter.read_processor_time(at(0), Span::from_millis(10));
        meter.read_processor_time(at(2), Span::from_millis(260));
        meter.read_processor_time(at(4), Span::from_millis(10));
        assert_eq!(meter.quiet_since(), Some(at(4)));
    }

    #[test]
    fn a_short_time_is_measured_in_short_windows() {
        let mut meter = ActivityMeter::new(Span::from_secs(4));
        meter.read_processor_time(at(0), Span::ZERO);
        meter.read_processor_time(at(2), Span::from_millis(200));
        assert_eq!(meter.quiet_since(), Some(at(2)));
        meter.read_processor_time(at(4), Span::from_millis(210));
        assert_eq!(meter.quiet_since(), Some(at(2)));
    }
}
