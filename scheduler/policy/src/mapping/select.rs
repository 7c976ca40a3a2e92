//! Which servers a job gets, and how many devices of each: the step SELECT.
//!
//! A job that fits one server always goes to the tightest one. Otherwise servers are walked level by level,
//! a level being all servers with equally many free devices: a few passes over the list, without memory for
//! each server. What the job computes or sends plays no part.

use std::cmp::Reverse;
use std::sync::Arc;

use super::server::same_model;
use super::split_mix::SplitMix64;
use super::{Selection, Server, Slot};

/// Devices for a job among the free ones, on distinct servers; `None` if too few are free.
///
/// Slots come in the order in which they were taken; among equals, the server that comes first in the list.
#[must_use]
pub(crate) fn select(servers: &[Server], devices: u32, selection: &Selection) -> Option<Vec<Slot>> {
    OpenServers::free(servers).select(devices, selection)
}

/// Servers with the number of devices that may be used on each.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenServers<'s> {
    servers: &'s [Server],
    counted: CapacityKind,
    /// Only servers of this model, if set.
    model: Option<&'s Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
enum CapacityKind {
    Free,
    All,
}

/// What one pass over some servers finds.
#[derive(Debug, Default)]
struct Survey {
    total: u64,
    /// The largest number of usable devices on one server.
    largest: u32,
    /// The server with the fewest usable devices that are enough.
    tightest: Option<Slot>,
}

impl<'s> OpenServers<'s> {
    /// The devices that no job uses.
    pub(super) const fn free(servers: &'s [Server]) -> OpenServers<'s> {
        OpenServers { servers, counted: CapacityKind::Free, model: None }
    }

    /// All devices.
    pub(super) const fn all(servers: &'s [Server]) -> OpenServers<'s> {
        OpenServers { servers, counted: CapacityKind::All, model: None }
    }

    /// The selection among all servers and, where there are several models of devices, among those of each
    /// model.
    pub(super) fn choices(
        self,
        devices: u32,
        selection: &Selection,
        models: &'s [Arc<str>],
    ) -> Vec<Vec<Slot>> {
        let each = models.iter().map(Some).filter(|_| models.len() > 1);
        let among = std::iter::once(None).chain(each);
        among.filter_map(|model| OpenServers { model, ..self }.select(devices, selection)).collect()
    }

    fn select(&self, devices: u32, selection: &Selection) -> Option<Vec<Slot>> {
        if devices == 0 {
            return Some(Vec::new());
        }
        let survey = survey(self.open(), devices);
        if survey.total < u64::from(devices) {
            return None;
        }
        let slots = match (selection, survey.tightest) {
            (Selection::Random(seed), _) => self.random(devices, *seed),
            (Selection::Consolidate | Selection::Fragments, Some(tightest)) => {
                vec![Slot { count: devices, ..tightest }]
            }
            (Selection::Consolidate, None) => self.consolidate(devices, survey.largest),
            (Selection::Fragments, None) => self.fragments(devices),
        };
        Some(slots)
    }

    /// The servers with usable devices, in order, each as one slot of all of them.
    fn open(&self) -> impl Iterator<Item = Slot> {
        let room = |server: &Server| match self.counted {
            CapacityKind::Free => server.free,
            CapacityKind::All => server.devices,
        };
        let named = |server: &Server| self.model.is_none_or(|model| same_model(model, &server.model));
        let slot = move |(index, server): (usize, &Server)| {
            let count = room(server);
            (count > 0 && named(server)).then_some(Slot { server: index, count })
        };
        self.servers.iter().enumerate().filter_map(slot)
    }

    /// Whole servers, the largest first, until one server holds the rest. No server holds all.
    fn consolidate(&self, devices: u32, largest: u32) -> Vec<Slot> {
        let largest_first = |slot: &Slot| (Reverse(slot.count), slot.server);
        let mut slots: Vec<Slot> = Vec::new();
        let mut need = devices;
        let mut level = largest;
        loop {
            for slot in self.open().filter(|slot| slot.count == level) {
                if need <= level {
                    break;
                }
                need -= level;
                slots.push(slot);
            }
            let last = slots.last().map(largest_first);
            let unused = self.open().filter(|slot| last.is_none_or(|last| largest_first(slot) > last));
            let rest = survey(unused, need);
            if let Some(tightest) = rest.tightest {
                slots.push(Slot { count: need, ..tightest });
                return slots;
            }
            level = rest.largest;
        }
    }

    /// The smallest remainders first.
    fn fragments(&self, devices: u32) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut need = devices;
        let mut level = 0;
        while let Some(next) = self.open().map(|slot| slot.count).filter(|count| *count > level).min() {
            level = next;
            for slot in self.open().filter(|slot| slot.count == level) {
                let count = slot.count.min(need);
                need -= count;
                slots.push(Slot { count, ..slot });
                if need == 0 {
                    return slots;
                }
            }
        }
        slots
    }

    /// Servers in a drawn order. The draw follows from the seed and from what is free.
    fn random(&self, devices: u32, seed: u64) -> Vec<Slot> {
        let mut open: Vec<Slot> = self.open().collect();
        let mut draws = SplitMix64::new(seed);
        draws.mix(u64::from(devices));
        open.iter().for_each(|slot| draws.mix(slot.server as u64 ^ (u64::from(slot.count) << 32)));
        let mut slots = Vec::new();
        let mut need = devices;
        while need > 0 && !open.is_empty() {
            let limit = u32::try_from(open.len()).unwrap_or(u32::MAX);
            let slot = open.swap_remove(draws.below(limit) as usize);
            let count = slot.count.min(need);
            need -= count;
            slots.push(Slot { count, ..slot });
        }
        slots
    }
}

/// One pass, which ends at the first server that fits exactly: none is tighter, and it holds everything.
fn survey(open: impl Iterator<Item = Slot>, devices: u32) -> Survey {
    let mut survey = Survey::default();
    for slot in open {
        survey.total += u64::from(slot.count);
        survey.largest = survey.largest.max(slot.count);
        if slot.count >= devices && survey.tightest.is_none_or(|tightest| slot.count < tightest.count) {
            survey.tightest = Some(slot);
        }
        if slot.count == devices {
            break;
        }
    }
    survey
}
