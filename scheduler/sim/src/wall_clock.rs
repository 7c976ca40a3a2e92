//! The wall clock of a machine, which somebody may set to any time.
//!
//! The daemon and the executors use the clock's value at the start of the machine plus the time passed since.
//! The head follows the wall clock, but never runs backwards.

use cohabit_types::{Span, Time};

/// The head does not report a jump of its clock that is at most this long.
const MAX_UNREPORTED_JUMP: Span = Span::from_secs(1);

/// What the clocks of machines show at first, so that they can be set back by years.
const AGE: Span = Span::from_secs(10_000 * 86_400);

/// A clock with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallClock {
    shows: Offset,
    showed_at_start: Offset,
}

/// The offset of a clock from the true time.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Offset {
    ahead: Span,
    behind: Span,
}

/// A change of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStep {
    /// Forward by this span.
    Ahead(Span),
    /// Back by this span.
    Back(Span),
}

impl Offset {
    fn step(&mut self, step: ClockStep) {
        match step {
            ClockStep::Ahead(span) => self.ahead = self.ahead + span,
            ClockStep::Back(span) => self.behind = self.behind + span,
        }
    }

    /// The time shown, never before the epoch.
    fn read(self, now: Time) -> Time {
        now + self.ahead - self.behind
    }
}

impl Default for WallClock {
    fn default() -> WallClock {
        let first = Offset { ahead: AGE, behind: Span::ZERO };
        WallClock { shows: first, showed_at_start: first }
    }
}

impl WallClock {
    /// The time for the processes of this machine.
    pub(crate) fn read(self, now: Time) -> Time {
        self.showed_at_start.read(now)
    }

    /// What it shows to whoever looks at it.
    pub(crate) fn shown(self, now: Time) -> Time {
        self.shows.read(now)
    }

    pub(crate) fn step(&mut self, step: ClockStep) {
        self.shows.step(step);
    }

    /// Restarts the machine: its processes take over the wall clock's present value.
    pub(crate) const fn start(&mut self) {
        self.showed_at_start = self.shows;
    }
}

/// The clock of the head. While the wall clock shows less than this clock has shown, it runs at half speed.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct HeadClock {
    wall: Offset,
    /// A true time, and what this clock showed then.
    known: (Time, Time),
    was_set_back: bool,
}

impl HeadClock {
    /// The time for the head.
    pub(crate) fn read(&self, now: Time) -> Time {
        let (then, shown) = self.known;
        let slowly = Span::from_micros(now.since(then).as_micros() / 2);
        self.wall.read(now).max(shown + slowly)
    }

    /// Sets the wall clock. Returns how far this clock jumped forward, if that is more than a second.
    pub(crate) fn step(&mut self, now: Time, step: ClockStep) -> Option<Span> {
        let shown = self.read(now);
        self.known = (now, shown);
        self.wall.step(step);
        self.was_set_back |= matches!(step, ClockStep::Back(_));
        Some(self.read(now).since(shown)).filter(|jump| *jump > MAX_UNREPORTED_JUMP)
    }

    /// Starts a head that knows no time later than `last`.
    pub(crate) const fn start(&mut self, now: Time, last: Time) {
        self.known = (now, last);
    }

    /// Whether it has counted all the time that has passed. It misses some while it runs at half speed, and
    /// all of it while the head is down.
    pub(crate) const fn missed_nothing(&self) -> bool {
        !self.was_set_back
    }
}
