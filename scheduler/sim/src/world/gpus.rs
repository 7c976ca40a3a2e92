//! GPUs in the simulated cluster: MPS actors that answer after a delay, faults, and samples of the monitor.

use cohabit_types::{Bytes, DeviceId, Span};
use cohabit_worker_core::{MpsOrder, WorkerEvent};

use super::World;
use crate::failure::SimFailure;
use crate::machine::{FaultAttribution, FaultChance, ObservedMemory, Outbox};
use crate::sim_event::{DaemonSimEvent, SimEvent};

/// How long an MPS actor takes for an order.
const MPS_ANSWER_DELAY: (Span, Span) = (Span::from_millis(5), Span::from_secs(15));
/// Probability that an order to start a server fails.
const MPS_FAILURE_PROBABILITY: f64 = 0.1;
/// How long it takes to restart a worker daemon.
const RESTART: Span = Span::from_secs(1);

impl World<'_> {
    /// Schedules the answer of an MPS actor to an order. In the quiet phase every order succeeds.
    pub(super) fn schedule_mps_answer(&mut self, node: usize, device: DeviceId, order: MpsOrder) {
        let fails = self.gpus.chance(MPS_FAILURE_PROBABILITY) && !self.is_quiet();
        let chance = if fails { FaultChance::Fails } else { FaultChance::Succeeds };
        if let Some(daemon) = &mut self.nodes[node].daemon {
            daemon.orders.insert(device.clone(), order.clone());
        }
        let answer = DaemonSimEvent::Mps(device, order, chance);
        let at = self.now + self.gpus.span(MPS_ANSWER_DELAY);
        self.queue.put(at, SimEvent::Daemon(node, self.nodes[node].generation, answer));
    }

    /// Delivers the answer to an order, unless the daemon no longer waits for it.
    pub(super) fn deliver_mps_answer(
        &mut self,
        node: usize,
        device: DeviceId,
        order: MpsOrder,
        chance: FaultChance,
    ) -> Result<(), SimFailure> {
        let there = &mut self.nodes[node];
        if !there.daemon.as_mut().is_some_and(|daemon| daemon.take_pending_order(&device, &order)) {
            return Ok(());
        }
        match there.machine.carry_out(&device, order, chance) {
            Ok(word) => self.worker_event(node, WorkerEvent::Mps(device, word)),
            Err(detail) => self.invariant(Err(detail)),
        }
    }

    /// Checks the MPS server for a fault before a client is reported to have ended badly. The actor first
    /// carries out its pending order, which can only be to adopt while there are clients.
    pub(super) fn check_for_mps_fault(&mut self, node: usize, event: &WorkerEvent) -> Result<(), SimFailure> {
        let WorkerEvent::Exited(rank, ending) = event else { return Ok(()) };
        if ending.outcome.succeeded() {
            return Ok(());
        }
        for device in self.nodes[node].machine.served_by(*rank) {
            self.deliver_mps_answer(node, device, MpsOrder::Adopt(None), FaultChance::Succeeds)?;
        }
        Ok(())
    }

    /// Breaks an MPS server. Without a worker daemon nobody observes the fault; the next daemon finds its
    /// consequences.
    pub(super) fn break_mps(
        &mut self,
        node: usize,
        number: usize,
        attribution: FaultAttribution,
    ) -> Result<(), SimFailure> {
        let mut from_there = (node..self.nodes.len()).chain(0..node);
        let machine = |node: usize| &self.nodes[node].machine;
        let serving = from_there.find(|node| machine(*node).serves_clients() && !machine(*node).is_paused());
        let Some(node) = serving else { return Ok(()) };
        let Some(event) = self.nodes[node].machine.break_mps_server(self.now, number, attribution) else {
            return Ok(());
        };
        self.counters.gpu_faults += 1;
        // The actor observes the fault before any of its clients ends.
        self.worker_event(node, event)?;
        let mut out = Outbox::default();
        self.nodes[node].machine.end_hanging_clients(self.now, &mut self.gpus, &mut out);
        self.machine_outbox(node, out)
    }

    /// Makes a GPU stop responding, unless no daemon runs: nobody would notice, and the next daemon starts
    /// with repaired GPUs.
    pub(super) fn lose_gpu(&mut self, node: usize, number: usize) -> Result<(), SimFailure> {
        if self.nodes[node].daemon.is_none() || self.nodes[node].machine.lose_gpu(number).is_none() {
            return Ok(());
        }
        self.counters.gpu_faults += 1;
        self.sample_gpus(node, Bytes::ZERO, ObservedMemory::AsRequested)
    }

    pub(super) fn report_xid(&mut self, node: usize, number: usize, code: u64) -> Result<(), SimFailure> {
        match self.nodes[node].machine.gpu(number) {
            Some(device) => self.worker_event(node, WorkerEvent::Xid(device, code)),
            None => Ok(()),
        }
    }

    pub(super) fn sample_gpus(
        &mut self,
        node: usize,
        foreign_memory: Bytes,
        observed: ObservedMemory,
    ) -> Result<(), SimFailure> {
        let samples = self.nodes[node].machine.sample_gpus(foreign_memory, observed);
        match samples.is_empty() {
            true => Ok(()),
            false => self.worker_event(node, WorkerEvent::Sampled(samples)),
        }
    }

    /// Repairs GPUs that are out of service or without MPS, by restarting their worker daemon.
    pub(super) fn restore_gpus(&mut self) -> Result<(), SimFailure> {
        for node in 0..self.nodes.len() {
            self.sample_gpus(node, Bytes::ZERO, ObservedMemory::AsRequested)?;
            if self.nodes[node].needs_repair() {
                self.crash_worker(node, RESTART)?;
            }
        }
        Ok(())
    }
}
