//! What members tell the coordinator of objects.

use cohabit_types::RankId;

use crate::coordinator::Coordinator;
use crate::coordinator_effect::CoordinatorEffect;
use crate::directory::Holding;
use crate::held::HeldId;
use crate::holders::Unheld;
use crate::object_frames::ToDirectory;

impl Coordinator {
    /// A member has said something about an object.
    pub(crate) fn received_object(
        &mut self,
        from: RankId,
        report: ToDirectory,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let holding = match report {
            ToDirectory::Share { object, value } => {
                self.lend(HeldId::Object(object), from);
                self.directory.share(object, from, value, effects)
            }
            ToDirectory::Resolve { object, value } => self.directory.resolve(object, value, effects),
            ToDirectory::Watch { object, lender } => {
                // What the coordinator lends may have come to it before what its maker says of it.
                let lender = if lender == self.own { object.maker } else { lender };
                self.directory.watch(object, from, lender, &self.members, effects)
            }
            ToDirectory::Stored { stored, carries } => {
                self.lend(HeldId::Object(stored.object), from);
                self.object_stored(from, stored, carries, effects)
            }
            ToDirectory::Open { request, object } => {
                self.directory.open(object, (from, request), &self.members, effects)
            }
            ToDirectory::Made { object, lineage } => self.lineage_known(object, *lineage, effects),
            ToDirectory::Remade { object, remake, runner } => {
                return self.object_remade(object, (from, remake), runner, effects);
            }
            ToDirectory::NotRemade { object, remake, error } => {
                return self.object_not_remade(object, (from, remake), &error, effects);
            }
            ToDirectory::Said { object } => return self.member_said(from, object, effects),
        };
        let unneeded = self.account(holding);
        if !unneeded.is_empty() {
            self.settle(unneeded, Unheld::default(), effects);
        }
    }

    /// Changes the counters of holders; what the coordinator is to let go of comes back.
    pub(crate) fn account(&mut self, Holding { taken, lent, released }: Holding) -> Vec<HeldId> {
        let own = self.own;
        taken.into_iter().for_each(|held| self.lend(held, own));
        lent.into_iter().for_each(|(to, held)| self.lend(held, to));
        released
    }
}
