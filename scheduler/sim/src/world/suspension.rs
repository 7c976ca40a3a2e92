//! What is suspended in the simulated cluster: worker daemons, executors and whole machines.
//!
//! What happens to a suspended process waits, and is noticed in its order when the process goes on: messages
//! that have arrived, the end of its link, timers.

use cohabit_types::{RankId, Span};

use super::World;
use crate::checks;
use crate::failure::SimFailure;
use crate::link::Side;
use crate::machine::Outbox;
use crate::node::{DaemonLink, Halt, Power};
use crate::sim_event::{LinkId, SimEvent, SimMessage};

/// After how long the head notices that it does not hear of a worker any more.
const SILENCE_NOTICE_DELAY: (Span, Span) = (Span::from_secs(1), Span::from_secs(40));

/// A daemon whose executor does not act kills the rank 30 s after the first SIGKILL, and tries every 10 s.
/// Nothing takes longer than 15 s to die.
const LONGEST_KILL: Span = Span::from_secs(60);

/// How long a daemon takes at most to open a link once nothing is in its way: it waits, its handshake fails
/// once, it waits again.
const LONGEST_RECONNECT: Span = Span::from_secs(75);

impl World<'_> {
    /// Puts an event aside whose process is suspended.
    pub(super) fn unless_halted(&mut self, event: SimEvent) -> Option<SimEvent> {
        if self.halted_nodes == 0 {
            return Some(event);
        }
        let Some(node) = self.halted_process_of(&event) else { return Some(event) };
        let stalled = if let SimEvent::Arrival(link, message) = event {
            let arrives = self.links[link.place()].arrives(self.now, Side::Worker);
            arrives.then_some(SimEvent::Read(link, message))
        } else {
            Some(event)
        };
        self.nodes[node].stalled.extend(stalled);
        None
    }

    /// The node whose suspended daemon, or paused machine, this event concerns.
    fn halted_process_of(&self, event: &SimEvent) -> Option<usize> {
        if let SimEvent::Machine(node, _)
        | SimEvent::DaemonBack(node, _)
        | SimEvent::ResumeExecutor(node, _) = event
        {
            return Some(*node).filter(|node| self.nodes[*node].halt == Some(Halt::Machine));
        }
        if let SimEvent::Daemon(node, ..) = event {
            return Some(*node).filter(|node| self.nodes[*node].halt.is_some());
        }
        let is_to_worker = |it: &SimMessage| it.to() == Side::Worker;
        let link = if let SimEvent::Broken(link, Side::Worker) = event {
            Some(link)
        } else if let SimEvent::Arrival(link, message) = event {
            Some(link).filter(|_| is_to_worker(message))
        } else {
            None
        };
        Some(self.links.get(link?.place())?.node).filter(|node| self.nodes[*node].halt.is_some())
    }

    /// Reads a message that had arrived before, unless the worker has closed its end since.
    pub(super) fn read(&mut self, link: LinkId, message: SimMessage) -> Result<(), SimFailure> {
        match self.links[link.place()].is_open(Side::Worker) {
            true => self.deliver(link, message),
            false => Ok(()),
        }
    }

    /// Suspends a daemon or pauses a machine, unless something is suspended there already.
    pub(super) fn halt(&mut self, node: usize, halt: Halt, length: Span) -> Result<(), SimFailure> {
        let there = &mut self.nodes[node];
        let is_there = halt == Halt::Machine || there.daemon.is_some();
        if there.power != Power::On || there.halt.is_some() || !is_there {
            return Ok(());
        }
        self.counters.suspensions += 1;
        there.halt = Some(halt);
        there.halts += 1;
        self.halted_nodes += 1;
        self.queue.put(self.now + length, SimEvent::Continue(node, there.halts));
        let mut out = Outbox::default();
        there.machine.lose_contact(self.now, &mut out);
        there.machine.set_daemon(self.now, false, &mut out);
        if halt == Halt::Machine {
            there.machine.pause(self.now, &mut out);
        }
        let link = there.daemon.as_ref().and_then(|daemon| daemon.link.id());
        let notices = self.breaks.span(SILENCE_NOTICE_DELAY);
        if let Some(link) = link.filter(|_| notices < length) {
            self.queue.put(self.now + notices, SimEvent::Broken(link, Side::Head));
            self.queue.put(self.now + notices, SimEvent::Broken(link, Side::Worker));
        }
        self.machine_outbox(node, out)
    }

    /// Lets a daemon or a machine go on.
    pub(super) fn let_go_on(&mut self, node: usize, halts: u64) -> Result<(), SimFailure> {
        if self.nodes[node].halts != halts {
            return Ok(());
        }
        let Some(halt) = self.nodes[node].halt.take() else { return Ok(()) };
        self.halted_nodes -= 1;
        self.nodes[node].last_halt_at = self.now;
        self.recorder.add(self.now, || format!("outside     {halt:?} of node {node} goes on"));
        let mut out = Outbox::default();
        self.nodes[node].machine.resume(self.now, &mut out);
        self.renew_contact(node, &mut out);
        self.machine_outbox(node, out)?;
        self.check(|| checks::check_running(self.now, &self.nodes, self.settings.max_running_jobs))?;
        for event in std::mem::take(&mut self.nodes[node].stalled) {
            self.dispatch(event)?;
        }
        let mut out = Outbox::default();
        let acts = self.nodes[node].daemon.is_some();
        self.nodes[node].machine.set_daemon(self.now, acts, &mut out);
        if acts {
            self.nodes[node].machine.end_orphans(self.now, &mut out);
        }
        self.machine_outbox(node, out)
    }

    /// Renews the leases of a daemon that goes on, if its link is whole.
    fn renew_contact(&mut self, node: usize, out: &mut Outbox) {
        let link = self.nodes[node].daemon.as_ref().map(|daemon| daemon.link);
        if let Some(DaemonLink::Established(link)) = link
            && self.reaches_head(link)
        {
            self.nodes[node].machine.renew_leases(self.now, out);
        }
    }

    pub(super) fn reaches_head(&self, link: LinkId) -> bool {
        self.head.is_up() && self.links[link.place()].is_whole()
    }

    /// Ends a suspension because the suspended process dies. What waited for it is lost with it.
    pub(super) fn end_halt(&mut self, node: usize) {
        if self.nodes[node].halt.take().is_some() {
            self.halted_nodes -= 1;
            for event in std::mem::take(&mut self.nodes[node].stalled) {
                self.queue.put(self.now, event);
            }
        }
    }

    /// Lets everything go on.
    pub(super) fn let_all_go_on(&mut self) -> Result<(), SimFailure> {
        for node in 0..self.nodes.len() {
            self.let_go_on(node, self.nodes[node].halts)?;
            let mut out = Outbox::default();
            self.nodes[node].machine.resume_executors(self.now, &mut out);
            self.machine_outbox(node, out)?;
        }
        Ok(())
    }

    pub(super) fn suspend_executor(
        &mut self,
        node: usize,
        number: usize,
        length: Span,
    ) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        if let Some(rank) = self.nodes[node].machine.suspend_executor(self.now, number, &mut out) {
            self.counters.suspensions += 1;
            self.queue.put(self.now + length, SimEvent::ResumeExecutor(node, rank));
        }
        self.machine_outbox(node, out)
    }

    pub(super) fn resume_executor(&mut self, node: usize, rank: RankId) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        self.nodes[node].machine.resume_executor(self.now, rank, &mut out);
        self.machine_outbox(node, out)
    }

    /// Expects that a rank which is sent SIGKILL ends soon, whatever its executor does.
    pub(super) fn expect_end(&mut self, node: usize, rank: RankId) {
        let generation = self.nodes[node].generation;
        self.queue.put(self.now + LONGEST_KILL, SimEvent::KilledLongAgo(node, generation, rank));
    }

    /// Checks that executors stop ranks because of the head only where it could not be reached.
    pub(super) fn check_orphans(&self, node: usize, orphans: &[RankId]) -> Result<(), SimFailure> {
        let Some(rank) = orphans.first() else { return Ok(()) };
        let there = &self.nodes[node];
        let acts = self.head.is_up() && there.daemon.is_some() && there.halt.is_none();
        let (slow_until, commit) = self.head.journal.slow_times();
        let hindered =
            [self.head.back_at, there.noticed_at, there.last_halt_at, there.cut_until, slow_until + commit];
        let hindered_until = hindered.into_iter().max().unwrap_or(self.now);
        match acts && hindered_until + LONGEST_RECONNECT < self.now {
            true => {
                let free = self.now.since(hindered_until);
                self.invariant(Err(format!(
                    "{rank} is stopped as an orphan, but nothing was in the way for {free}"
                )))
            }
            false => Ok(()),
        }
    }

    /// Checks that a rank has ended that its daemon has killed, unless the daemon could not act all the time.
    pub(super) fn check_killed(&self, node: usize, generation: u64, rank: RankId) -> Result<(), SimFailure> {
        let there = &self.nodes[node];
        let acted = there.generation == generation && there.daemon.is_some() && there.halt.is_none();
        let has_acted = acted && there.last_halt_at + LONGEST_KILL < self.now;
        match has_acted && there.machine.runs(rank) {
            true => self.invariant(Err(format!("{rank} runs {LONGEST_KILL} after its daemon sent SIGKILL"))),
            false => Ok(()),
        }
    }
}
