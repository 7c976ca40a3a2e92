//! What the clock on a machine's wall shows: somebody may set it, and it tells the truth about nothing.
//!
//! Daemon and executors go by what it showed when the machine was started, and by what has passed since. The
//! head follows it, but never backwards.

use cohabit_types::{Span, Time};

/// A head takes a leap that is no longer for the passing of time.
const UNNOTICED: Span = Span::from_secs(1);

/// A clock that is off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallClock {
    shows: Offset,
    showed_at_start: Offset,
}

/// How far it is off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Offset {
    ahead: Span,
    behind: Span,
}

/// Somebody sets a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStep {
    /// It shows so much more than before.
    Ahead(Span),
    /// It shows so much less than before.
    Back(Span),
}

impl Offset {
    fn step(&mut self, step: ClockStep) {
        match step {
            ClockStep::Ahead(span) => self.ahead = self.ahead + span,
            ClockStep::Back(span) => self.behind = self.behind + span,
        }
    }

    /// What is shown; the epoch, where it would be earlier.
    fn read(self, now: Time) -> Time {
        now + self.ahead - self.behind
    }
}

impl WallClock {
    /// What time it is for those on this machine.
    pub(crate) fn read(self, now: Time) -> Time {
        self.showed_at_start.read(now)
    }

    pub(crate) fn step(&mut self, step: ClockStep) {
        self.shows.step(step);
    }

    /// The machine is started anew.
    pub(crate) const fn start(&mut self) {
        self.showed_at_start = self.shows;
    }
}

/// The head's clock: while the one on the wall shows less than this one has shown, it goes on at half its
/// pace.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct HeadClock {
    wall: Offset,
    /// A true time, and what this one showed then.
    known: (Time, Time),
    was_set_back: bool,
}

impl HeadClock {
    /// What time it is for the head.
    pub(crate) fn read(&self, now: Time) -> Time {
        let (then, shown) = self.known;
        let slowly = Span::from_micros(now.since(then).as_micros() / 2);
        self.wall.read(now).max(shown + slowly)
    }

    /// Somebody sets the one on the wall; how far this one leaps, if it is far enough to be noticed.
    pub(crate) fn step(&mut self, now: Time, step: ClockStep) -> Option<Span> {
        let shown = self.read(now);
        self.known = (now, shown);
        self.wall.step(step);
        self.was_set_back |= matches!(step, ClockStep::Back(_));
        Some(self.read(now).since(shown)).filter(|leapt| *leapt > UNNOTICED)
    }

    /// A head starts that knows no time later than this.
    pub(crate) const fn start(&mut self, now: Time, last: Time) {
        self.known = (now, last);
    }

    /// Whether it counted all time that has passed: while it is slow it misses some, and from a head's end to
    /// its next start all.
    pub(crate) const fn missed_nothing(&self) -> bool {
        !self.was_set_back
    }
}
