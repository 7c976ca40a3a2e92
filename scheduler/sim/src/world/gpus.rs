//! GPUs in the simulated cluster: MPS daemons that answer after a while, their faults, and what monitors see.

use cohabit_types::{Bytes, DeviceId, Span};
use cohabit_worker_core::{MpsOrder, WorkerEvent};

use super::World;
use crate::failure::SimFailure;
use crate::machine::{FaultAttribution, FaultChance, ObservedMemory, Outbox};
use crate::sim_event::{DaemonSimEvent, SimEvent};

/// How long an MPS daemon takes for what it is told.
const MPS_ANSWER_DELAY: (Span, Span) = (Span::from_millis(5), Span::from_secs(15));
/// How often it does not work.
const MPS_FAILURE_PROBABILITY: f64 = 0.1;
/// How long it takes to restart a worker daemon.
const RESTART: Span = Span::from_secs(1);

impl World<'_> {
    /// An order to the actor of an MPS daemon; when nothing bad happens any more, everything works.
    pub(super) fn mps_ordered(&mut self, node: usize, device: DeviceId, order: MpsOrder) {
        let unlucky = self.gpus.chance(MPS_FAILURE_PROBABILITY) && !self.is_quiet();
        let luck = if unlucky { FaultChance::Bad } else { FaultChance::Good };
        if let Some(daemon) = &mut self.nodes[node].daemon {
            daemon.orders.insert(device.clone(), order);
        }
        let answer = DaemonSimEvent::Mps(device, order, luck);
        let at = self.now + self.gpus.span(MPS_ANSWER_DELAY);
        self.queue.put(at, SimEvent::Daemon(node, self.nodes[node].life, answer));
    }

    /// Each order is answered once.
    pub(super) fn mps_answers(
        &mut self,
        node: usize,
        device: DeviceId,
        order: MpsOrder,
        luck: FaultChance,
    ) -> Result<(), SimFailure> {
        let there = &mut self.nodes[node];
        if !there.daemon.as_mut().is_some_and(|daemon| daemon.takes_answer(&device, order)) {
            return Ok(());
        }
        match there.machine.carry_out(&device, order, luck) {
            Ok(word) => self.worker_event(node, WorkerEvent::Mps(device, word)),
            Err(detail) => self.invariant(Err(detail)),
        }
    }

    /// Before a client is told to have ended badly, the actor of its MPS daemon is asked for a fault; it
    /// first carries out the order that it has, which can only be to adopt while there are clients.
    pub(super) fn examine_mps(&mut self, node: usize, event: &WorkerEvent) -> Result<(), SimFailure> {
        let WorkerEvent::Exited(rank, ending) = event else { return Ok(()) };
        if ending.outcome.succeeded() {
            return Ok(());
        }
        for device in self.nodes[node].machine.served_by(*rank) {
            self.mps_answers(node, device, MpsOrder::Adopt, FaultChance::Good)?;
        }
        Ok(())
    }

    /// Without a worker daemon there is nobody to see the fault; the next one finds what came of it.
    pub(super) fn break_mps(
        &mut self,
        node: usize,
        number: usize,
        blame: FaultAttribution,
    ) -> Result<(), SimFailure> {
        let mut from_there = (node..self.nodes.len()).chain(0..node);
        let serving = from_there.find(|node| self.nodes[*node].machine.serves_clients());
        let Some(node) = serving else { return Ok(()) };
        let Some(seen) = self.nodes[node].machine.break_server(self.now, number, blame) else {
            return Ok(());
        };
        self.tally.gpu_faults += 1;
        // The actor sees the fault before any of its clients ends.
        self.worker_event(node, seen)?;
        let mut out = Outbox::default();
        self.nodes[node].machine.give_up(self.now, &mut self.gpus, &mut out);
        self.machine_outbox(node, out)
    }

    /// While no daemon runs there is nobody to notice; the next one is started by somebody who looks first.
    pub(super) fn lose_gpu(&mut self, node: usize, number: usize) -> Result<(), SimFailure> {
        if self.nodes[node].daemon.is_none() || self.nodes[node].machine.lose_gpu(number).is_none() {
            return Ok(());
        }
        self.tally.gpu_faults += 1;
        self.look(node, Bytes::ZERO, ObservedMemory::AsRequested)
    }

    pub(super) fn xid(&mut self, node: usize, number: usize, code: u64) -> Result<(), SimFailure> {
        match self.nodes[node].machine.gpu(number) {
            Some(device) => self.worker_event(node, WorkerEvent::Xid(device, code)),
            None => Ok(()),
        }
    }

    pub(super) fn look(
        &mut self,
        node: usize,
        strangers: Bytes,
        appetite: ObservedMemory,
    ) -> Result<(), SimFailure> {
        let samples = self.nodes[node].machine.look(strangers, appetite);
        match samples.is_empty() {
            true => Ok(()),
            false => self.worker_event(node, WorkerEvent::Sampled(samples)),
        }
    }

    /// Somebody looks after GPUs that are out of service or without MPS: the worker daemon starts anew.
    pub(super) fn restore_gpus(&mut self) -> Result<(), SimFailure> {
        for node in 0..self.nodes.len() {
            self.look(node, Bytes::ZERO, ObservedMemory::AsRequested)?;
            if self.nodes[node].needs_care() {
                self.crash_worker(node, RESTART)?;
            }
        }
        Ok(())
    }
}
